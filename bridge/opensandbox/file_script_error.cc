// SPDX-License-Identifier: Apache-2.0
//
// Part of file_script.h: what the exit statuses of the scripts mean.
#include "bridge/base/error.h"
#include "bridge/opensandbox/file_error.h"
#include "bridge/opensandbox/file_script.h"

namespace bridge {
namespace {

enum Exit {
  kNotFound = 10,
  kIsADirectory = 11,
  kNotADirectory = 12,
  kDenied = 13,
  kExists = 14,
  kNoSpace = 15,
  kUnknownUser = 16,
  kNotEmpty = 18,
  kIsALink = 19,
  kIntoItself = 20,
  kTooLong = 21,
  kLinkCircle = 22,
  kHeld = 23,
  kStays = 24,
  kCopied = 25,
  kNotAsExpected = 26,
  kLocked = 27,
  kNoSuchTool = 127,  // the shell's own word for it
};

struct Meaning {
  Exit exit;
  ErrorReason reason;
  std::string_view words;
};

constexpr Meaning kMeanings[] = {
    {kNotFound, ErrorReason::ERROR_REASON_PATH_NOT_FOUND, "nothing is at the path"},
    {kIsADirectory, ErrorReason::ERROR_REASON_IS_A_DIRECTORY, "a directory is at the path"},
    {kNotADirectory, ErrorReason::ERROR_REASON_NOT_A_DIRECTORY,
     "a part of the path is no directory"},
    {kDenied, ErrorReason::ERROR_REASON_PERMISSION_DENIED, "the sandbox's user may not do this"},
    {kExists, ErrorReason::ERROR_REASON_PATH_EXISTS, "something is at the path already"},
    {kNoSpace, ErrorReason::ERROR_REASON_NO_SPACE, "the sandbox's disk is full"},
    {kUnknownUser, ErrorReason::ERROR_REASON_UNKNOWN_USER,
     "the sandbox has no account or group of this name"},
    {kNotEmpty, ErrorReason::ERROR_REASON_DIRECTORY_NOT_EMPTY, "the directory is not empty"},
    {kIntoItself, ErrorReason::ERROR_REASON_PATH_REJECTED,
     "the destination lies in what is to be moved"},
    {kTooLong, ErrorReason::ERROR_REASON_PATH_REJECTED, kPathTooLong},
    {kLinkCircle, ErrorReason::ERROR_REASON_PATH_REJECTED, kLinksInACircle},
    {kHeld, ErrorReason::ERROR_REASON_PATH_REJECTED, kPathHeld},
    {kStays, ErrorReason::ERROR_REASON_PERMISSION_DENIED,
     "the source cannot be removed from where it is; nothing was moved"},
    {kLocked, ErrorReason::ERROR_REASON_CONFLICT,
     "something in the sandbox holds a lock on the directory; nothing was changed"},
};

}  // namespace

absl::Status FileScriptError(int exit_status, std::string_view what) {
  if (exit_status == 0) return absl::OkStatus();
  if (exit_status == kIsALink) return IsALink(what);
  if (exit_status == kNotAsExpected) return NotAsExpected();
  if (exit_status == kNoSuchTool) {
    return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                     std::string(what) +
                         ": the image lacks a tool that this needs; those of "
                         "coreutils and findutils, or a recent busybox, are enough",
                     {.metadata = {{"feature", "files.tools"}}});
  }
  if (exit_status == kCopied) {
    return MakeError(ErrorReason::ERROR_REASON_PERMISSION_DENIED,
                     std::string(what) +
                         ": the copy is in place at the destination, but the source, or a part of "
                         "it, could not be removed; remove one of the two",
                     {.metadata = {{"copied", "true"}}});
  }
  for (const Meaning& meaning : kMeanings) {
    if (meaning.exit != exit_status) continue;
    return MakeError(meaning.reason, std::string(what) + ": " + std::string(meaning.words));
  }
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_FAILED,
                   std::string(what) + ": a tool in the sandbox failed");
}

absl::Status NotAsExpected() {
  return MakeError(ErrorReason::ERROR_REASON_PRECONDITION_FAILED,
                   "the file is not as expected; nothing was changed");
}

absl::Status IsALink(std::string_view what) {
  return MakeError(ErrorReason::ERROR_REASON_PATH_REJECTED,
                   "to " + std::string(what) +
                       " failed: a symbolic link is at the path, and nothing in the request says "
                       "to follow it");
}

}  // namespace bridge
