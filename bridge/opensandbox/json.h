// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/json.h — JSON of a server or of a daemon, which a program in the sandbox may stand in
// for. Pure, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace bridge {

// The library reads any depth in a loop, but copies and writes with a stack frame for each level.
// What nests deeper than anything that is said here is as little JSON as a text that breaks off:
// is_discarded().
inline constexpr int kMaxJsonDepth = 64;
nlohmann::json ParseJson(std::string_view text);

}  // namespace bridge
