// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_script.h — what a stock daemon's file routes cannot do, as shell text: renames
// that replace, numeric owners, special bits, empty-directory removal, paths that hold `$` (which
// the routes expand and the shell, quoted, does not). POSIX sh and the tools that busybox and
// coreutils share. Paths are quoted here; the exit statuses say what was wrong. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/opensandbox/file_types.h"

namespace bridge {

// Does a stock daemon's file route take this path literally?
bool RoutesTakeLiterally(std::string_view path);

// Exit statuses of all scripts here → a failure about `path_field`. Zero is OK.
absl::Status FileScriptError(int exit_status, std::string_view what);

// PATH_REJECTED: a symbolic link is at the path of what was to be done.
absl::Status IsALink(std::string_view what);

// PRECONDITION_FAILED: what is at the path is not what a write was to replace.
absl::Status NotAsExpected();

// Makes an empty file that only the daemon's user can read: the place for an upload.
std::string ReserveScript(std::string_view temporary);

// Makes a directory and its parents. Prints which of them it made itself, for RemoveParentsScript.
// On failure it takes them away again.
std::string MakeParentsScript(std::string_view directory);
// Takes them away as far as they are empty.
std::string RemoveParentsScript(std::string_view directory, std::string_view made);

// A private folder of the bridge's in the sandbox with one thing in it, whose path the daemon's
// routes take literally.
struct FileAlias {
  // `scratch`: a writable directory of the sandbox. `nonce`: unguessable hex digits.
  FileAlias(std::string_view scratch, std::string_view nonce);
  std::string path() const { return folder + "/a"; }
  const std::string folder;
};
// Makes the alias a link to `path`, which need not be there.
std::string LinkScript(const FileAlias& alias, std::string_view path);
// Makes it a copy of what `path` says when it is read, cut at `max_bytes`. Prints the copy's size.
std::string CopyScript(const FileAlias& alias, std::string_view path, int64_t max_bytes);
// Makes it a list of what is below a directory, for ParseListRecord. Prints the list's size.
std::string ListScript(const FileAlias& alias, std::string_view path, int depth);
std::string RemoveAliasScript(const FileAlias& alias);

// Records of a list begin with "//" and end before "\n//", which no path holds.
absl::StatusOr<FileInfo> ParseListRecord(std::string_view record);

// Gives an uploaded file its owner and mode and puts it in its place in one step; on failure
// removes it. `keep`: the file that is there now, whose owner the new one takes unless the write
// says otherwise. With a condition on what is replaced: only if it holds at that moment, and one
// such script at a time in a directory.
std::string CommitScript(const FileWrite& write, std::string_view temporary,
                         std::string_view target, const std::optional<FileInfo>& keep);

// Prints what is at the path: type letter, octal mode, size, mtime seconds, owner, group, and for a
// link its text; one a line. lstat.
std::string StatScript(std::string_view path);
absl::StatusOr<FileInfo> ParseStatLines(const std::vector<std::string>& lines,
                                        std::string_view path);

// Prints the path with all links resolved; the last part need not exist.
std::string ResolveScript(std::string_view path);
// Prints the text of a symbolic link.
std::string ReadLinkScript(std::string_view path);

std::string MakeDirectoryScript(std::string_view path, bool parents, std::optional<unsigned> mode,
                                std::string_view owner, std::string_view group);
std::string RemoveScript(std::string_view path, bool recursive);
// Prints "replaced" when it replaced something. `nonce`: unguessable hex digits.
std::string MoveScript(const FileMove& move, std::string_view nonce);
// Takes away what a MoveScript left that was killed, and puts the source back where it was.
std::string UndoMoveScript(const FileMove& move, std::string_view nonce);
std::string SetAttributesScript(std::string_view path, const AttributeChange& change);

}  // namespace bridge
