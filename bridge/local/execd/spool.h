// SPDX-License-Identifier: Apache-2.0
//
// local/execd/spool.h — the files that take a command's output, and reading them as they grow. The
// child gets the file itself as its stdout, so it never blocks and a daemon that it leaves behind
// holds up nothing. One thread a SpoolFile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bridge::local::execd {

// Where spools live: $TMPDIR (else /tmp) itself, or a private directory in it, which is made.
std::string SpoolDirectory(bool is_private);

// A file without a name in $TMPDIR, or in memory where that fails; -1 when both do.
int OpenNamelessFile();

class SpoolFile {
 public:
  // Makes the file, mode 0755 (the umask takes its part), emptied if it exists. Null with *error
  // = errno on failure.
  static std::unique_ptr<SpoolFile> Create(const std::string& path, int* error);
  ~SpoolFile();
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  void Remove();  // the name; what is open stays readable

  // The next bytes that were written since the last call, at most 256 KiB; empty when there are
  // none now. The view is good until the next call.
  std::string_view ReadMore();

 private:
  SpoolFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
  int64_t position_ = 0;
  std::string buffer_;
};

}  // namespace bridge::local::execd
