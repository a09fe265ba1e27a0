// SPDX-License-Identifier: Apache-2.0
//
// base/read_file.h — a whole file as bytes. The standard library's way, istreambuf_iterator, throws
// when a read fails: on a directory, or on the /proc file of a process that goes meanwhile. Any
// thread.
#pragma once

#include <optional>
#include <string>

namespace bridge {

// Nullopt, with errno set, when it cannot be opened or a read fails.
std::optional<std::string> ReadFile(const std::string& path);

}  // namespace bridge
