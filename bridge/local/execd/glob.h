// SPDX-License-Identifier: Apache-2.0
//
// local/execd/glob.h — patterns of `/files/search`, with the rules of Go's filepath.Match, which
// are not those of fnmatch(3): [^a] negates, "\" quotes everywhere, a pattern that is not well
// formed is an error. Pure, any thread.
#pragma once

#include <string_view>

namespace bridge::local::execd {

enum class GlobMatch { kNo, kYes, kBadPattern };

// Does the whole of `name` match? "*" and "?" do not match "/".
GlobMatch MatchGlob(std::string_view pattern, std::string_view name);

// Whether the pattern is well formed.
bool IsGlob(std::string_view pattern);

}  // namespace bridge::local::execd
