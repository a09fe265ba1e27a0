// SPDX-License-Identifier: Apache-2.0
//
// The built sbx on a terminal of its own, as a person has it.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace bridge::cli {

class Terminal {
 public:
  // Starts `program` with SANDBOX_BRIDGE_ADDRESS set to `address`, on a terminal of 24 × 80.
  Terminal(const std::string& program, const std::vector<std::string>& args,
           const std::string& address);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void Type(const std::string& keys);
  // What the screen got since the start, once it has `text` in it; what there is after 20 seconds.
  std::string ReadUntil(const std::string& text);
  void Signal(int signal);
  void Resize(unsigned short rows, unsigned short columns);
  // The terminal is gone: the window was closed.
  void HangUp();
  // Exit code, or 128 + signal; -1 after 20 seconds.
  int Wait();

  const std::string& screen() const { return screen_; }
  // Descriptor of our side, for looking at the terminal's modes.
  int fd() const { return master_; }

 private:
  bool ReadSome();

  pid_t pid_ = -1;
  int master_ = -1;
  std::string screen_;
};

// Where the built sbx lies in this test's runfiles.
std::string SbxBinary();

}  // namespace bridge::cli
