// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/file_common.h — what several file routes share: a mode, an owner and a time of a
// query, whose failure is the query's, and parents that are made. Any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

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

// Makes a directory and those above it where they are missing (0755). A link to one is one.
std::optional<Failure> MakeParents(const std::string& directory);

}  // namespace bridge::local::execd::extra
