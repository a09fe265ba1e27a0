// SPDX-License-Identifier: Apache-2.0
//
// net/http_headers.h — header fields in the order in which they travel. Names compare without case.
// A plain value; any thread.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bridge {

class HttpHeaders {
 public:
  struct Field {
    std::string name;
    std::string value;
  };

  HttpHeaders() = default;
  HttpHeaders(std::initializer_list<Field> fields) : fields_(fields) {}

  void Add(std::string_view name, std::string_view value);
  void Set(std::string_view name, std::string_view value);  // instead of all others of that name
  void Remove(std::string_view name);

  // The first field of that name. The view lives until the headers change.
  std::optional<std::string_view> Get(std::string_view name) const;
  bool Has(std::string_view name) const { return Get(name).has_value(); }

  size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<Field> fields_;
};

// The same name, whatever the case?
bool SameHeaderName(std::string_view a, std::string_view b);

// May these travel as they are? A name is a token (RFC 9110, 5.6.2); a value has no control
// characters but the tab, so that nobody can smuggle in a line.
bool IsHeaderName(std::string_view name);
bool IsHeaderValue(std::string_view value);

// Takes "Name: value" apart, without the line end; spaces around the value are not part of it.
// Nothing when the line has no valid name.
std::optional<HttpHeaders::Field> ParseHeaderLine(std::string_view line);

}  // namespace bridge
