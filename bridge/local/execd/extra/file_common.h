// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/file_common.h — what several file routes share: a mode, an owner and a time of a
// query, whose failure is the query's, and parents that are made. Any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "bridge/local/execd/extra/failure.h"
#include "bridge/local/execd/extra/request.h"

namespace bridge::local::execd::extra {

// "mode": octal digits, 0 to 7777.
void ReadMode(StrictQuery& query, std::optional<mode_t>* out);
// "owner" and "group": account names or decimal numbers.
void ReadOwner(StrictQuery& query, std::optional<uid_t>* uid, std::optional<gid_t>* gid);
// RFC 3339.
void ReadTime(StrictQuery& query, std::string_view name, std::optional<absl::Time>* out);

// Directories that are made for the sake of something else, and go again unless it comes about.
class Parents {
 public:
  Parents() = default;
  ~Parents();
  Parents(const Parents&) = delete;
  Parents& operator=(const Parents&) = delete;

  // Makes `directory` and those above it where they are missing (0755). A link to one is one.
  std::optional<Failure> Make(const std::string& directory);
  // They stay.
  void Keep() { made_.clear(); }

 private:
  std::vector<std::string> made_;  // by this object, the uppermost first
};

}  // namespace bridge::local::execd::extra
