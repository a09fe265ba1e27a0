// SPDX-License-Identifier: Apache-2.0
//
// local/execd/file_info.h — a file's description as execd's JSON has it, and modes as decimal
// numbers whose digits are the octal ones (0644 is the number 644). Any thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/local/execd/users.h"

namespace bridge::local::execd {

struct FileInfo {
  std::string path;  // absolute
  struct stat stat = {};
};

// lstat; 0 or the errno.
int ReadFileInfo(const std::string& path, FileInfo* out);

// "file", "directory", "symlink", "other"
std::string_view FileTypeName(mode_t mode);

// The number that shows the permission bits; the special bits are never shown.
int64_t ModeDigits(mode_t mode);

// The reverse. False when a digit is 8 or 9, or the number is negative.
bool ModeFromDigits(int64_t digits, mode_t* mode);

// {"path":…,"type":…,"size":…,"modified_at":…,"created_at":…,"owner":…,"group":…,"mode":…}.
// `created_at` is the time of the last change of the inode: that is what execd shows.
void AppendFileInfoJson(std::string& out, const FileInfo& info, const UserDatabase& users);

// "[…]"
std::string FileListJson(const std::vector<FileInfo>& files);

}  // namespace bridge::local::execd
