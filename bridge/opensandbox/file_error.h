// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_error.h — what an answer of execd's file routes means for a path. Stock daemons
// say 404 for some missing paths and 500 with Go's words for everything else; which words mean what
// stands here and nowhere else. Pure.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "bridge/net/http.h"

namespace bridge {

// Why a path is PATH_REJECTED, whoever found out.
inline constexpr std::string_view kPathTooLong = "a part of the path, or all of it, is too long";
inline constexpr std::string_view kLinksInACircle =
    "symbolic links lead in a circle, or through too many";
inline constexpr std::string_view kPathHeld =
    "the system holds what is at the path: a mount, a device, or a program that runs";

// `what`: "read a file". The daemon's words are looked at and never repeated: they quote paths.
absl::Status FileError(const HttpResponse& response, std::string_view what);

// The answer of one of our own daemon's file routes (docs/execd-extras.md, Errors).
absl::Status OwnFileError(const HttpResponse& response, std::string_view what);
// The same of a file that was to be read: what is no regular file is PATH_REJECTED.
absl::Status OwnReadError(const HttpResponse& response);
// A failure of what makes a new entry: PATH_NOT_FOUND is about the directory that it is to be in.
absl::Status WithoutDirectory(absl::Status failure, std::string_view what);
// The daemon cannot do this move in one step, and has done nothing.
bool OwnDaemonCannotMove(const HttpResponse& response);
// An element of a directory's list: a failure if it is the one that says why the list ends early.
absl::Status OwnListError(std::string_view element);

}  // namespace bridge
