// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/base64.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace bridge::epp {
namespace {

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

std::string_view WithoutPadding(std::string_view text) {
  if (text.ends_with('=')) text.remove_suffix(1);
  if (text.ends_with('=')) text.remove_suffix(1);
  return text;
}

}  // namespace

void Base64Writer::Append(std::string_view bytes) {
  if (!rest_.empty()) {
    const size_t take = std::min(3 - rest_.size(), bytes.size());
    rest_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
    if (rest_.size() < 3) return;
    target_->append(absl::Base64Escape(rest_));
    rest_.clear();
  }
  const size_t whole = bytes.size() - bytes.size() % 3;
  target_->append(absl::Base64Escape(View(bytes.substr(0, whole))));
  rest_.assign(bytes.substr(whole));
}

void Base64Writer::Finish() {
  target_->append(absl::Base64Escape(rest_));
  rest_.clear();
}

size_t Base64DecodedSize(std::string_view text) { return WithoutPadding(text).size() * 3 / 4; }

absl::StatusOr<std::string> Base64Reader::Next(size_t max_bytes) {
  const size_t chars = std::min(text_.size(), std::max<size_t>(1, max_bytes / 3) * 4);
  const std::string_view part = text_.substr(0, chars);
  text_.remove_prefix(chars);
  // Abseil skips blanks and stops at the first padding: neither may hide something in the middle.
  const bool plain = WithoutPadding(part).find_first_of("= \t\r\n\f\v") == part.npos;
  std::string bytes;
  if (!plain || (part.ends_with('=') && !text_.empty()) ||
      !absl::Base64Unescape(View(part), &bytes)) {
    return absl::InvalidArgumentError("is not base64");
  }
  return bytes;
}

}  // namespace bridge::epp
