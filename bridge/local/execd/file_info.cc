// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/file_info.h"

#include <cerrno>

#include "bridge/local/execd/go_text.h"

namespace bridge::local::execd {

int ReadFileInfo(const std::string& path, FileInfo* out) {
  out->path = path;
  return lstat(path.c_str(), &out->stat) == 0 ? 0 : errno;
}

std::string_view FileTypeName(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "directory";
  if (S_ISLNK(mode)) return "symlink";
  return "other";
}

int64_t ModeDigits(mode_t mode) {
  return (mode >> 6 & 7) * 100 + (mode >> 3 & 7) * 10 + (mode & 7);
}

bool ModeFromDigits(int64_t digits, mode_t* mode) {
  if (digits < 0) return false;
  mode_t out = 0;
  int shift = 0;
  for (; digits > 0; digits /= 10) {
    if (digits % 10 > 7) return false;
    // Digits beyond the permission bits are read and then mean nothing, as in the real daemon.
    if (shift < 9) out |= static_cast<mode_t>(digits % 10) << shift;
    shift += 3;
  }
  *mode = out;
  return true;
}

void AppendFileInfoJson(std::string& out, const FileInfo& info, const UserDatabase& users) {
  out += "{\"path\":";
  AppendGoJsonString(out, info.path);
  out += ",\"type\":\"";
  out += FileTypeName(info.stat.st_mode);
  out += "\",\"size\":" + std::to_string(info.stat.st_size);
  out += ",\"modified_at\":\"" + GoTime(info.stat.st_mtim.tv_sec, info.stat.st_mtim.tv_nsec);
  out += "\",\"created_at\":\"" + GoTime(info.stat.st_ctim.tv_sec, info.stat.st_ctim.tv_nsec);
  out += "\",\"owner\":";
  AppendGoJsonString(out, users.UserName(info.stat.st_uid));
  out += ",\"group\":";
  AppendGoJsonString(out, users.GroupName(info.stat.st_gid));
  out += ",\"mode\":" + std::to_string(ModeDigits(info.stat.st_mode)) + "}";
}

std::string FileListJson(const std::vector<FileInfo>& files) {
  const UserDatabase users = UserDatabase::Read();
  std::string out = "[";
  for (const FileInfo& file : files) {
    if (out.size() > 1) out += ',';
    AppendFileInfoJson(out, file, users);
  }
  return out + "]";
}

}  // namespace bridge::local::execd
