// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/http_headers.h"

#include <algorithm>

namespace bridge {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool IsTokenChar(char c) {
  if ((c >= '0' && c <= '9') || (Lower(c) >= 'a' && Lower(c) <= 'z')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

bool SameHeaderName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return Lower(x) == Lower(y); });
}

void HttpHeaders::Add(std::string_view name, std::string_view value) {
  fields_.push_back({std::string(name), std::string(value)});
}

void HttpHeaders::Set(std::string_view name, std::string_view value) {
  Remove(name);
  Add(name, value);
}

void HttpHeaders::Remove(std::string_view name) {
  std::erase_if(fields_, [name](const Field& field) { return SameHeaderName(field.name, name); });
}

std::optional<std::string_view> HttpHeaders::Get(std::string_view name) const {
  for (const Field& field : fields_) {
    if (SameHeaderName(field.name, name)) return field.value;
  }
  return std::nullopt;
}

bool IsHeaderName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), IsTokenChar);
}

bool IsHeaderValue(std::string_view value) {
  return std::none_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

std::optional<HttpHeaders::Field> ParseHeaderLine(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsHeaderName(line.substr(0, colon))) return std::nullopt;
  return HttpHeaders::Field{std::string(line.substr(0, colon)),
                            std::string(Trimmed(line.substr(colon + 1)))};
}

}  // namespace bridge
