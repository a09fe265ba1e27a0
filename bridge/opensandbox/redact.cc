// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/redact.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "bridge/base/ascii.h"

namespace bridge {
namespace {

constexpr size_t kShortestSecret = 4;

// Parts of names whose values are secrets. "key" alone is not among them: it names columns, cache
// entries and map keys far more often.
constexpr std::string_view kSecretWords[] = {
    "token",      "secret",      "passwd",      "password",       "passphrase",
    "apikey",     "api_key",     "api-key",     "accesskey",      "access_key",
    "access-key", "privatekey",  "private_key", "private-key",    "credential",
    "auth_key",   "session_key", "signing_key", "encryption_key",
};
// Headers whose whole value is one.
constexpr std::string_view kSecretHeaders[] = {"authorization",
                                               "cookie",
                                               "set-cookie",
                                               "open-sandbox-api-key",
                                               "opensandbox-egress-auth",
                                               "opensandbox-secure-access"};
// What issuers put in front of their keys; at least 16 more characters follow.
constexpr std::string_view kKeyPrefixes[] = {
    "sk-",         "sk_live_", "rk_live_", "ghp_",  "gho_",  "ghs_",      "ghu_",
    "github_pat_", "glpat-",   "xoxb-",    "xoxp-", "xapp-", "AKIA",      "ASIA",
    "AIza",        "ya29.",    "hf_",      "npm_",  "pypi-", "dckr_pat_", "eyJ",
};
// Environment of a container that says nothing about its user.
constexpr std::string_view kHarmlessNames[] = {"PATH", "HOME",     "LANG", "LC_ALL",        "TERM",
                                               "TZ",   "HOSTNAME", "PWD",  "OPENSANDBOX_ID"};

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

bool IsNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}
bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsQuote(char c) { return c == '"' || c == '\''; }
// Ends a value that is not quoted.
bool EndsValue(char c) {
  return IsBlank(c) || IsQuote(c) || c == ',' || c == ';' || c == '&' || c == ')' || c == '}' ||
         c == ']' || c == '\n' || c == '\r';
}

bool IsSecretName(std::string_view name) {
  return std::any_of(std::begin(kSecretWords), std::end(kSecretWords),
                     [&](std::string_view word) { return ContainsIgnoreCase(name, word); });
}

bool IsSecretHeader(std::string_view name) {
  return std::any_of(std::begin(kSecretHeaders), std::end(kSecretHeaders),
                     [&](std::string_view word) { return EqualsIgnoreCase(name, word); });
}

// Copies a line while parts of it are replaced.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }
  void Replace(size_t begin, size_t end) {
    if (begin >= end || begin < done_) return;
    result_.append(text_.substr(done_, begin - done_));
    result_.append(kRedacted);
    done_ = end;
    changed_ = true;
  }
  std::string Finish(bool* changed) {
    *changed |= changed_;
    result_.append(text_.substr(done_));
    return std::move(result_);
  }

 private:
  const std::string_view text_;
  std::string result_;
  size_t done_ = 0;
  bool changed_ = false;
};

size_t ValueEnd(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && !EndsValue(text[end])) ++end;
  return end;
}

// A quoted value may hold blanks; its backslashes keep quotes in it.
size_t QuotedEnd(std::string_view text, size_t begin, char quote) {
  size_t end = begin;
  while (end < text.size() && text[end] != quote) end += text[end] == '\\' ? 2 : 1;
  return std::min(end, text.size());
}

// NAME=value, NAME: value, "name": "value", --name value is not looked at.
std::string HideAssignments(std::string_view text, bool* changed) {
  Line line(text);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '=' && text[i] != ':') continue;
    size_t name_end = i;
    while (name_end > 0 && IsBlank(text[name_end - 1])) --name_end;
    if (name_end > 0 && IsQuote(text[name_end - 1])) --name_end;
    if (name_end > 0 && text[name_end - 1] == '\\') --name_end;  // JSON within JSON
    size_t name_begin = name_end;
    while (name_begin > 0 && IsNameChar(text[name_begin - 1])) --name_begin;
    const std::string_view name = text.substr(name_begin, name_end - name_begin);
    const bool header = IsSecretHeader(name);
    if (!header && !IsSecretName(name)) continue;

    size_t begin = i + 1;
    while (begin < text.size() && IsBlank(text[begin])) ++begin;
    if (begin < text.size() && text[begin] == '\\') ++begin;
    size_t end = 0;
    if (begin < text.size() && IsQuote(text[begin])) {
      ++begin;
      end = QuotedEnd(text, begin, text[begin - 1]);
    } else {
      end = header ? text.find_first_of("\r\n\"'", begin) : ValueEnd(text, begin);
    }
    end = std::min(end, text.size());
    line.Replace(begin, end);
    i = std::max(i, end > 0 ? end - 1 : end);
  }
  return line.Finish(changed);
}

// scheme://user:password@host
std::string HideUserInfo(std::string_view text, bool* changed) {
  Line line(text);
  for (size_t at = text.find("://"); at != std::string_view::npos; at = text.find("://", at + 3)) {
    const size_t begin = at + 3;
    const size_t end = text.find_first_of("/?# \t\"'<>\r\n", begin);
    const size_t sign = text.substr(0, end).rfind('@');
    if (sign != std::string_view::npos && sign > begin) line.Replace(begin, sign);
  }
  return line.Finish(changed);
}

// "Bearer x", "Basic x", and keys that show their issuer.
std::string HideTokens(std::string_view text, bool* changed) {
  constexpr size_t kShortestKey = 16;
  Line line(text);
  for (size_t i = 0; i < text.size();) {
    if (!IsNameChar(text[i])) {
      ++i;
      continue;
    }
    size_t next = i;
    while (next < text.size() && IsNameChar(text[next])) ++next;
    for (const std::string_view prefix : kKeyPrefixes) {
      if (text.substr(i, prefix.size()) != prefix) continue;
      const size_t end = ValueEnd(text, i);
      if (end < i + prefix.size() + kShortestKey) continue;
      line.Replace(i, end);
      next = end;
      break;
    }
    const std::string_view scheme = text.substr(i, next - i);
    if ((EqualsIgnoreCase(scheme, "bearer") || EqualsIgnoreCase(scheme, "basic")) &&
        next < text.size() && IsBlank(text[next])) {
      const size_t end = ValueEnd(text, next + 1);
      if (end - next > 8) line.Replace(next + 1, end);
      next = std::max(next, end);
    }
    i = std::max(next, i + 1);
  }
  return line.Finish(changed);
}

// The blocks of a container description that need more than one line to understand.
class Blocks {
 public:
  // True: the line was dealt with and is in *out.
  bool Handle(std::string_view line, std::string* out, bool* changed) {
    if (InKey(line)) {
      *out = std::string(kRedacted);
      *changed = true;
      return true;
    }
    const absl::string_view trimmed = absl::StripAsciiWhitespace(View(line));
    const bool indented = !line.empty() && IsBlank(line.front());
    if (trimmed == "Environment:" || trimmed == "Env:") {
      in_environment_ = true;
      hiding_ = false;
      return false;
    }
    if (!in_environment_) return false;
    if (!indented && (trimmed.empty() || trimmed.back() == ':' || trimmed.front() == '-')) {
      in_environment_ = false;
      return false;
    }
    return Variable(line, out, changed);
  }

 private:
  bool InKey(std::string_view line) {
    const bool begin = absl::StrContains(View(line), "-----BEGIN ") &&
                       absl::StrContains(View(line), "PRIVATE KEY");
    const bool inside = in_key_ || begin;
    in_key_ = inside && !absl::StrContains(View(line), "-----END ");
    return inside;
  }

  // "  NAME=value". A line without a name goes on with the value before it.
  bool Variable(std::string_view line, std::string* out, bool* changed) {
    const size_t begin = line.find_first_not_of(" \t");
    const size_t equals = line.find('=');
    const bool named = begin != std::string_view::npos && equals != std::string_view::npos &&
                       equals > begin &&
                       std::all_of(line.begin() + static_cast<std::ptrdiff_t>(begin),
                                   line.begin() + static_cast<std::ptrdiff_t>(equals), IsNameChar);
    if (!named) {
      if (!hiding_ || begin == std::string_view::npos) return false;
      *out = std::string(kRedacted);
      *changed = true;
      return true;
    }
    const std::string_view name = line.substr(begin, equals - begin);
    hiding_ = std::find(std::begin(kHarmlessNames), std::end(kHarmlessNames), name) ==
              std::end(kHarmlessNames);
    if (!hiding_ || equals + 1 == line.size()) return false;
    *out = std::string(line.substr(0, equals + 1)) + std::string(kRedacted);
    *changed = true;
    return true;
  }

  bool in_environment_ = false;
  bool hiding_ = false;
  bool in_key_ = false;
};

}  // namespace

std::string WithoutSecrets(std::string text, const std::vector<std::string_view>& secrets) {
  for (const std::string_view secret : secrets) {
    if (secret.size() < kShortestSecret) continue;
    for (size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
      text.replace(at, secret.size(), kRedacted);
      at += kRedacted.size();
    }
  }
  return text;
}

std::string RedactDiagnostics(std::string_view text, bool* redacted) {
  std::string result;
  result.reserve(text.size());
  Blocks blocks;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    const bool terminated = end != std::string_view::npos;
    text.remove_prefix(terminated ? end + 1 : text.size());
    std::string replaced;
    if (blocks.Handle(line, &replaced, redacted)) {
      result += replaced;
    } else {
      result += HideTokens(HideAssignments(HideUserInfo(line, redacted), redacted), redacted);
    }
    if (terminated) result += '\n';
  }
  return result;
}

}  // namespace bridge
