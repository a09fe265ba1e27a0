// SPDX-License-Identifier: Apache-2.0
//
// local/execd/paths.h — how execd's file routes read a path: variables, then a leading tilde, then
// made absolute and tidied up by its text alone. There is no escape, so a path with "$" in it
// cannot be named literally; that is a habit of the real daemon which clients must know. Pure but
// for the working directory and what `lookup` reads; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace bridge::local::execd {

// The value of an environment variable, or nothing when it is not set.
using VariableLookup = std::function<std::optional<std::string>(std::string_view name)>;

struct ExpandedPath {
  std::string path;   // absolute, empty when `error` is not
  std::string error;  // "path references undefined environment variables: A, B"
};

ExpandedPath ExpandPath(std::string_view path, const VariableLookup& lookup);

// Removes ".", "..", doubled and trailing slashes by looking at the text only. "" is ".".
std::string CleanPath(std::string_view path);

// CleanPath of `path` under the working directory.
std::string AbsolutePath(std::string_view path);

// The last element: "b" of "/a/b" and of "/a/b/", "/" of "/", "." of "".
std::string BaseName(std::string_view path);

// All but the last element: "/a" of "/a/b", "/" of "/a", "." of "a".
std::string DirName(std::string_view path);

}  // namespace bridge::local::execd
