// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/spool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace bridge::local::execd {
namespace {

constexpr size_t kReadBytes = 256 * 1024;

}  // namespace

std::string SpoolDirectory(bool is_private) {
  const char* tmpdir = getenv("TMPDIR");
  std::string directory = tmpdir != nullptr && *tmpdir != '\0' ? tmpdir : "/tmp";
  if (!is_private) return directory;
  directory += "/opensandbox-execd";
  mkdir(directory.c_str(), 0700);
  return directory;
}

int OpenNamelessFile() {
  const std::string directory = SpoolDirectory(/*is_private=*/false);
  const int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  std::string name = directory + "/execd-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named < 0) return memfd_create("execd", MFD_CLOEXEC);
  unlink(name.c_str());
  return named;
}

std::unique_ptr<SpoolFile> SpoolFile::Create(const std::string& path, int* error) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0777);
  if (fd < 0) {
    *error = errno;
    return nullptr;
  }
  return std::unique_ptr<SpoolFile>(new SpoolFile(path, fd));
}

SpoolFile::~SpoolFile() { close(fd_); }

void SpoolFile::Remove() { unlink(path_.c_str()); }

std::string_view SpoolFile::ReadMore() {
  buffer_.resize(kReadBytes);
  ssize_t n;
  do {
    n = pread(fd_, buffer_.data(), kReadBytes, position_);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) {
    buffer_ = std::string();  // an idle command holds no memory
    return {};
  }
  position_ += n;
  return std::string_view(buffer_).substr(0, n);
}

}  // namespace bridge::local::execd
