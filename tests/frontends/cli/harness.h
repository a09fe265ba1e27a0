// SPDX-License-Identifier: Apache-2.0
//
// Runs sbx inside the test's process, as main() would, with files for its descriptors.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontends/cli/interrupts.h"
#include "frontends/cli/streams.h"

namespace bridge::cli {

struct Ran {
  int exit_code = -1;
  std::string out;
  std::string err;
};

class Sbx {
 public:
  explicit Sbx(const std::string& address);
  ~Sbx();

  // Runs to the end on the calling thread. Stdin is empty unless set.
  Ran Run(const std::vector<std::string>& args);

  // Replaces a descriptor for the next runs; borrowed.
  void set_in(int fd) { in_ = fd; }
  void set_out(int fd) { out_ = fd; }
  // Stdin is a file with these bytes.
  void SetInput(const std::string& bytes);

  std::map<std::string, std::string>& environment() { return environment_; }
  // For delivering Ctrl-C to a running Run().
  Interrupts& interrupts() { return interrupts_; }
  // The exit code with which a second signal ended sbx; 0: none did.
  int ended_at_once() const { return ended_at_once_; }

 private:
  std::map<std::string, std::string> environment_;
  int ended_at_once_ = 0;
  Interrupts interrupts_;
  int in_, out_ = -1;
  int own_in_;
};

// A file without a name, holding `bytes`, at its beginning. The caller closes it.
int FileWith(const std::string& bytes);
// Everything in a file, from its beginning.
std::string ContentOf(int fd);

}  // namespace bridge::cli
