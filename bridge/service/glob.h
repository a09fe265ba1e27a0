// SPDX-License-Identifier: Apache-2.0
//
// service/glob.h — the patterns of FileService.Search, matched against paths relative to where the
// search begins: `*` and `?` within a name, `[a-z]`, `[!a-z]`, `**` over any number of levels. A
// pattern without a slash is matched against the last part alone. By case; a leading dot is an
// ordinary character. Each part of a pattern is fnmatch(3)'s. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace bridge {

class Glob {
 public:
  // Errors: INVALID_ARGUMENT for `field`: empty, absolute, "..", NUL, an open "[".
  static absl::StatusOr<Glob> Parse(std::string_view field, std::string_view pattern);

  // `path`: "src/x/c.py", without a slash in front.
  bool Matches(std::string_view path) const;

 private:
  std::vector<std::string> parts_;
  bool name_only_ = false;
};

}  // namespace bridge
