// SPDX-License-Identifier: Apache-2.0
//
// Part of file_ops.h: `POST /files/replace`.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "bridge/local/execd/file_ops.h"
#include "bridge/local/execd/go_text.h"

namespace bridge::local::execd {
namespace {

ApiError AccessFailed(const std::string& message) {
  return {500, kRuntimeError, "error accessing file: " + message};
}

int ReadWhole(const std::string& path, std::string* out) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char buffer[16 * 1024];
  int error = 0;
  while (true) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0) break;
    out->append(buffer, n);
  }
  close(fd);
  return error;
}

// In place, truncating: readers may see half of it, as with the real daemon.
int WriteWhole(const std::string& path, std::string_view text, mode_t mode) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode & 0777);
  if (fd < 0) return errno;
  int error = 0;
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      error = errno;
      break;
    }
    text.remove_prefix(n);
  }
  if (close(fd) != 0 && error == 0) error = errno;
  return error;
}

int64_t ReplaceAll(std::string_view text, const Replacement& change, std::string* out) {
  int64_t count = 0;
  while (true) {
    const size_t at = text.find(change.before);
    if (at == std::string_view::npos) break;
    out->append(text.substr(0, at)).append(change.after);
    text.remove_prefix(at + change.before.size());
    ++count;
  }
  out->append(text);
  return count;
}

}  // namespace

std::optional<ApiError> ReplaceText(const std::map<std::string, Replacement>& files,
                                    std::map<std::string, int64_t>* counts) {
  for (const auto& [sent, change] : files) {
    if (change.before.empty()) {
      return ApiError{400, kInvalidBody, "old content must not be empty"};
    }
    std::string error;
    const std::string path = ResolvePath(sent, &error);
    if (!error.empty()) return AccessFailed(error);
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
      const int failure = errno;
      const std::string message = GoPathError("stat", path, failure);
      if (failure != ENOENT) return AccessFailed(message);
      return ApiError{404, kFileNotFound, "file not found. " + message};
    }
    std::string text;
    if (const int failure = ReadWhole(path, &text); failure != 0) {
      return AccessFailed(GoPathError(failure == EISDIR ? "read" : "open", path, failure));
    }
    std::string changed;
    (*counts)[sent] = ReplaceAll(text, change, &changed);
    if (const int failure = WriteWhole(path, changed, info.st_mode); failure != 0) {
      return AccessFailed(GoPathError("open", path, failure));
    }
  }
  return std::nullopt;
}

}  // namespace bridge::local::execd
