// SPDX-License-Identifier: Apache-2.0
#include "tests/frontends/cli/harness.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "frontends/cli/app.h"

namespace bridge::cli {

int FileWith(const std::string& bytes) {
  const int fd = memfd_create("test", MFD_CLOEXEC);
  if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return -1;
  lseek(fd, 0, SEEK_SET);
  return fd;
}

std::string ContentOf(int fd) {
  struct stat info = {};
  fstat(fd, &info);
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  const ssize_t got = pread(fd, bytes.data(), bytes.size(), 0);
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

Sbx::Sbx(const std::string& address)
    : environment_{{"SANDBOX_BRIDGE_ADDRESS", address}},
      interrupts_([this](int exit_code) { ended_at_once_ = exit_code; }),
      in_(FileWith("")),
      own_in_(in_) {
  signal(SIGPIPE, SIG_IGN);
}

Sbx::~Sbx() { close(own_in_); }

void Sbx::SetInput(const std::string& bytes) {
  close(own_in_);
  own_in_ = in_ = FileWith(bytes);
}

Ran Sbx::Run(const std::vector<std::string>& args) {
  const int out = FileWith("");
  const int err = FileWith("");
  Ran ran;
  {
    Streams streams(in_, out_ >= 0 ? out_ : out, err);
    ran.exit_code = RunApp(args, streams, interrupts_,
                           [this](const std::string& name) -> std::optional<std::string> {
                             const auto found = environment_.find(name);
                             if (found == environment_.end()) return std::nullopt;
                             return found->second;
                           });
  }
  ran.out = ContentOf(out);
  ran.err = ContentOf(err);
  close(out);
  close(err);
  return ran;
}

}  // namespace bridge::cli
