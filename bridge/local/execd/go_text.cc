// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/go_text.h"

#include <sys/wait.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace bridge::local::execd {
namespace {

constexpr std::array<const char*, 16> kSignals = {"",
                                                  "hangup",
                                                  "interrupt",
                                                  "quit",
                                                  "illegal instruction",
                                                  "trace/breakpoint trap",
                                                  "aborted",
                                                  "bus error",
                                                  "floating point exception",
                                                  "killed",
                                                  "user defined signal 1",
                                                  "segmentation fault",
                                                  "user defined signal 2",
                                                  "broken pipe",
                                                  "alarm clock",
                                                  "terminated"};

constexpr char kHex[] = "0123456789abcdef";

bool IsContinuation(std::string_view text, size_t i, unsigned char low, unsigned char high) {
  if (i >= text.size()) return false;
  const auto c = static_cast<unsigned char>(text[i]);
  return c >= low && c <= high;
}

void AppendUnicodeEscape(std::string& out, unsigned code) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(code >> shift) & 0xf];
}

// Writes the escape of one ASCII character that may not stand for itself; false when it may.
bool AppendAsciiEscape(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return true;
    case '\\':
      out += "\\\\";
      return true;
    case '\b':
      out += "\\b";
      return true;
    case '\f':
      out += "\\f";
      return true;
    case '\n':
      out += "\\n";
      return true;
    case '\r':
      out += "\\r";
      return true;
    case '\t':
      out += "\\t";
      return true;
    default:
      if (c >= 0x20 && c != '<' && c != '>' && c != '&') return false;
      AppendUnicodeEscape(out, c);
      return true;
  }
}

}  // namespace

std::string GoErrno(int error) {
  const char* text = strerrordesc_np(error);
  if (text == nullptr) return "errno " + std::to_string(error);
  std::string words = text;
  words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
  return words;
}

std::string GoPathError(std::string_view operation, std::string_view path, int error) {
  std::string out(operation);
  out.append(" ").append(path).append(": ").append(GoErrno(error));
  return out;
}

std::string GoSignal(int signal) {
  if (signal > 0 && signal < static_cast<int>(kSignals.size())) return kSignals[signal];
  return "signal " + std::to_string(signal);
}

std::string GoWaitStatus(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    std::string text = "signal: " + GoSignal(WTERMSIG(wait_status));
    if (WCOREDUMP(wait_status)) text += " (core dumped)";
    return text;
  }
  const int code = WEXITSTATUS(wait_status);
  return code == 0 ? "" : "exit status " + std::to_string(code);
}

std::string GoQuote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const int length = Utf8SequenceLength(text);
    const auto c = static_cast<unsigned char>(text[0]);
    if (length > 1) {
      out.append(text.substr(0, length));
      text.remove_prefix(length);
      continue;
    }
    text.remove_prefix(1);
    constexpr std::string_view kNamed = "\a\b\f\n\r\t\v";
    constexpr std::string_view kLetters = "abfnrtv";
    if (const size_t i = kNamed.find(static_cast<char>(c)); i != std::string_view::npos) {
      out += '\\';
      out += kLetters[i];
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (length == 0 || c < 0x20 || c == 0x7f) {
      out += "\\x";
      out += kHex[c >> 4];
      out += kHex[c & 0xf];
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

int Utf8SequenceLength(std::string_view text) {
  const auto c = static_cast<unsigned char>(text[0]);
  if (c < 0x80) return 1;
  if (c >= 0xc2 && c <= 0xdf) return IsContinuation(text, 1, 0x80, 0xbf) ? 2 : 0;
  if (c >= 0xe0 && c <= 0xef) {
    const unsigned char low = c == 0xe0 ? 0xa0 : 0x80;
    const unsigned char high = c == 0xed ? 0x9f : 0xbf;
    return IsContinuation(text, 1, low, high) && IsContinuation(text, 2, 0x80, 0xbf) ? 3 : 0;
  }
  if (c >= 0xf0 && c <= 0xf4) {
    const unsigned char low = c == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = c == 0xf4 ? 0x8f : 0xbf;
    return IsContinuation(text, 1, low, high) && IsContinuation(text, 2, 0x80, 0xbf) &&
                   IsContinuation(text, 3, 0x80, 0xbf)
               ? 4
               : 0;
  }
  return 0;
}

void AppendGoJsonString(std::string& out, std::string_view text) {
  out += '"';
  size_t plain = 0;  // where the run of characters that stand for themselves begins
  size_t i = 0;
  const auto flush = [&](size_t end) { out.append(text.substr(plain, end - plain)); };
  while (i < text.size()) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&') {
      ++i;
      continue;
    }
    if (c < 0x80) {
      flush(i);
      AppendAsciiEscape(out, c);
      plain = ++i;
      continue;
    }
    const int length = Utf8SequenceLength(text.substr(i));
    if (length == 0) {
      flush(i);
      out += "\\ufffd";
      plain = ++i;
      continue;
    }
    const std::string_view rune = text.substr(i, length);
    if (rune == "\xe2\x80\xa8" || rune == "\xe2\x80\xa9") {
      flush(i);
      out += rune[2] == '\xa8' ? "\\u2028" : "\\u2029";
      plain = i + length;
    }
    i += length;
  }
  flush(text.size());
  out += '"';
}

std::string GoTime(int64_t seconds, int64_t nanoseconds) {
  const time_t whole = seconds;
  struct tm utc = {};
  gmtime_r(&whole, &utc);
  char buffer[64];
  strftime(buffer, sizeof(buffer), "%Y-%m-%dT%H:%M:%S", &utc);
  std::string out = buffer;
  if (nanoseconds != 0) {
    snprintf(buffer, sizeof(buffer), ".%09d", static_cast<int>(nanoseconds));
    std::string fraction = buffer;
    fraction.erase(fraction.find_last_not_of('0') + 1);
    out += fraction;
  }
  return out + "Z";
}

std::string GoDuration(int64_t milliseconds) {
  if (milliseconds < 1000) return milliseconds == 0 ? "0s" : std::to_string(milliseconds) + "ms";
  const int64_t hours = milliseconds / 3'600'000;
  const int64_t minutes = milliseconds / 60'000;
  std::string out;
  if (hours > 0) out += std::to_string(hours) + "h";
  if (minutes > 0) out += std::to_string(minutes % 60) + "m";
  out += std::to_string(milliseconds / 1000 % 60);
  if (milliseconds % 1000 != 0) {
    std::string fraction = std::to_string(1000 + milliseconds % 1000).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    out += "." + fraction;
  }
  return out + "s";
}

int64_t ParseHttpTime(std::string_view text) {
  const std::string copy(text);
  struct tm utc = {};
  const char* end = strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  if (end == nullptr || *end != '\0') return -1;
  return timegm(&utc);
}

}  // namespace bridge::local::execd
