// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/file_read.h — `GET /v1/file`, `/v1/file/info` and `/v1/directory`
// (docs/execd-extras.md): bytes and descriptions by literal paths. Any thread.
#pragma once

#include <sys/stat.h>

#include <string>

#include "bridge/local/execd/users.h"
#include "bridge/local/http/router.h"

namespace bridge::local::execd::extra {

// The members of an entry's description without its path, and without braces.
std::string EntryMembers(const struct stat& info, const UserDatabase& users);

// Appends a whole description: path, members, and what a link says.
void AppendEntry(std::string& out, const std::string& path, const struct stat& info,
                 const UserDatabase& users);

void AddFileReadRoutes(http::Router& router);

}  // namespace bridge::local::execd::extra
