// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/multipart.h"

#include <algorithm>
#include <cctype>

#include "bridge/local/http/types.h"

namespace bridge::local::execd {
namespace {

// A part's headers may be so long; real ones have some hundred bytes.
constexpr size_t kMaxHeaderBytes = 64 * 1024;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool IsTokenChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("!#$%&'*+-.^_`{|}~").find(c) != std::string_view::npos;
}

std::string_view TakeToken(std::string_view& text) {
  size_t n = 0;
  while (n < text.size() && IsTokenChar(text[n])) ++n;
  const std::string_view token = text.substr(0, n);
  text.remove_prefix(n);
  return token;
}

// After the opening quote. A backslash quotes only '"' and itself: some browsers send Windows
// paths.
std::optional<std::string> TakeQuoted(std::string_view& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return out;
    }
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\')) ++i;
    out += text[i];
  }
  return std::nullopt;
}

// The value of an extended parameter: charset'language'%41%42.
std::string DecodeExtended(std::string_view value) {
  const size_t first = value.find('\'');
  const size_t second = first == std::string_view::npos ? first : value.find('\'', first + 1);
  if (second == std::string_view::npos) return std::string(value);
  return http::PercentDecode(value.substr(second + 1));
}

PartHead ParseHead(std::string_view headers) {
  PartHead head;
  while (!headers.empty()) {
    const size_t end = std::min(headers.find("\r\n"), headers.size());
    const std::string_view line = headers.substr(0, end);
    headers.remove_prefix(std::min(end + 2, headers.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (!http::EqualsIgnoreCase(Trim(line.substr(0, colon)), "content-disposition")) continue;
    const auto media = ParseMediaType(line.substr(colon + 1));
    if (!media || media->type != "form-data") continue;
    if (const auto it = media->params.find("name"); it != media->params.end()) {
      head.name = it->second;
    }
    if (const auto it = media->params.find("filename"); it != media->params.end()) {
      head.filename = it->second;
    }
  }
  return head;
}

}  // namespace

std::optional<MediaType> ParseMediaType(std::string_view text) {
  const size_t semicolon = std::min(text.find(';'), text.size());
  MediaType out{http::AsciiLower(Trim(text.substr(0, semicolon))), {}};
  if (out.type.empty()) return std::nullopt;
  text.remove_prefix(semicolon);
  while (!(text = Trim(text)).empty()) {
    if (text.front() != ';') return std::nullopt;
    text = Trim(text.substr(1));
    if (text.empty()) break;  // a trailing semicolon is forgiven
    std::string name = http::AsciiLower(TakeToken(text));
    if (name.empty() || !text.starts_with('=')) return std::nullopt;
    text.remove_prefix(1);
    std::string value;
    if (text.starts_with('"')) {
      text.remove_prefix(1);
      auto quoted = TakeQuoted(text);
      if (!quoted) return std::nullopt;
      value = std::move(*quoted);
    } else {
      value = std::string(TakeToken(text));
      if (value.empty()) return std::nullopt;
    }
    if (name.back() == '*') {
      name.pop_back();
      value = DecodeExtended(value);
    }
    out.params[std::move(name)] = std::move(value);
  }
  return out;
}

// The buffer begins with a line end that nobody sent, so that a boundary at the very start of the
// body looks like every other.
MultipartParser::MultipartParser(std::string_view boundary, PartSink& sink)
    : delimiter_("\r\n--" + std::string(boundary)), sink_(sink), buffer_("\r\n") {}

bool MultipartParser::Fail() {
  state_ = State::kFailed;
  return false;
}

bool MultipartParser::Feed(std::string_view bytes) {
  if (state_ == State::kFailed) return false;
  buffer_.append(bytes);
  while (Step()) {
  }
  buffer_.erase(0, position_);
  position_ = 0;
  return state_ != State::kFailed;
}

bool MultipartParser::Step() {
  switch (state_) {
    case State::kPreamble:
      return StepPreamble();
    case State::kAfterBoundary:
      return StepAfterBoundary();
    case State::kHeaders:
      return StepHeaders();
    case State::kBody:
      return StepBody();
    case State::kDone:  // an epilogue means nothing
      Consume(rest().size());
      return false;
    case State::kFailed:
      return false;
  }
  return false;
}

bool MultipartParser::StepPreamble() {
  const size_t at = rest().find(delimiter_);
  if (at == std::string_view::npos) {
    const size_t keep = std::min(rest().size(), delimiter_.size() - 1);
    Consume(rest().size() - keep);
    return false;
  }
  Consume(at + delimiter_.size());
  state_ = State::kAfterBoundary;
  return true;
}

// "--" ends the body; else blanks and a line end begin a part.
bool MultipartParser::StepAfterBoundary() {
  const std::string_view text = rest();
  if (text.starts_with("--")) {
    Consume(2);
    state_ = State::kDone;
    return true;
  }
  const size_t end = text.find("\r\n");
  if (end == std::string_view::npos) return text.size() > kMaxHeaderBytes ? Fail() : false;
  if (!Trim(text.substr(0, end)).empty()) return Fail();
  // The line end stays: it may be the first half of the empty line of a part without headers.
  Consume(end);
  state_ = State::kHeaders;
  return true;
}

bool MultipartParser::StepHeaders() {
  const std::string_view text = rest();  // begins with "\r\n"
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) return text.size() > kMaxHeaderBytes ? Fail() : false;
  const PartHead head = ParseHead(end < 2 ? std::string_view() : text.substr(2, end - 2));
  Consume(end + 4);
  state_ = State::kBody;
  at_body_start_ = true;
  return sink_.BeginPart(head) ? true : Fail();
}

bool MultipartParser::StepBody() {
  const std::string_view text = rest();
  if (at_body_start_) {
    // An empty part may lack the line end before its boundary.
    const std::string_view bare = std::string_view(delimiter_).substr(2);
    const std::string_view begin = text.substr(0, bare.size());
    if (begin.size() < bare.size() && bare.starts_with(begin)) return false;
    at_body_start_ = false;
    if (begin == bare) {
      Consume(bare.size());
      state_ = State::kAfterBoundary;
      return sink_.EndPart() ? true : Fail();
    }
  }
  const size_t at = text.find(delimiter_);
  if (at != std::string_view::npos) {
    if (at > 0 && !sink_.PartData(text.substr(0, at))) return Fail();
    if (!sink_.EndPart()) return Fail();
    Consume(at + delimiter_.size());
    state_ = State::kAfterBoundary;
    return true;
  }
  // All but what may be the beginning of a delimiter.
  const size_t keep = std::min(text.size(), delimiter_.size() - 1);
  if (text.size() > keep) {
    if (!sink_.PartData(text.substr(0, text.size() - keep))) return Fail();
    Consume(text.size() - keep);
  }
  return false;
}

}  // namespace bridge::local::execd
