// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace bridge {

std::optional<std::string> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string content;
  std::array<char, 16 * 1024> piece;
  ssize_t n = 0;
  do {
    n = read(fd, piece.data(), piece.size());
    if (n > 0) content.append(piece.data(), static_cast<size_t>(n));
  } while (n > 0 || (n < 0 && errno == EINTR));
  const int error = errno;
  close(fd);
  errno = error;
  if (n < 0) return std::nullopt;
  return content;
}

}  // namespace bridge
