// SPDX-License-Identifier: Apache-2.0
//
// cli/shell_keys.h — what the person types, and the size of the window, for whatever attachment
// there is. Keys are read also while there is none: what is typed then waits for the next one, and
// "~." is heard at any time.
//
// A thread of its own lives as long as the object; the other functions are the main thread's.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "frontends/cli/raw_terminal.h"
#include "sandbox/bridge/v1/processes.pb.h"

namespace bridge::cli {

// Takes "~." at the beginning of a line out of what is typed: the person wants to leave. "~~" is
// one "~". As ssh(1) does. Pure.
class EscapeFilter {
 public:
  // What is for the other side. *leave: nothing after it counts.
  std::string Feed(std::string_view keys, bool* leave);

 private:
  bool line_start_ = true;
  bool tilde_ = false;
};

class ShellKeys {
 public:
  using Stream = grpc::ClientReaderWriter<sandbox::bridge::v1::AttachProcessRequest,
                                          sandbox::bridge::v1::ProcessEvent>;

  // `terminal`: borrowed, raw already.
  explicit ShellKeys(int terminal);
  ~ShellKeys();
  ShellKeys(const ShellKeys&) = delete;
  ShellKeys& operator=(const ShellKeys&) = delete;

  // An attempt to attach: leaving cancels it.
  void Begin(grpc::ClientContext& call, Stream& stream);
  // It was answered: the window's size and keys go there.
  void Attached();
  // Neither is touched any more. Returns how many bytes were typed into it.
  int64_t End();

  // "~." was typed, or the terminal is gone.
  bool left() const { return left_; }
  // Readable from then on.
  int left_fd() const { return left_fd_; }

 private:
  void Run();
  void TakeKeys();
  void Leave();
  // With mu_ held:
  void SendHeld();
  void SendSize();

  const int terminal_;
  const WindowWatch window_;
  const int wake_fd_;  // the thread is to look around
  const int left_fd_;
  EscapeFilter escapes_;  // the thread's
  std::atomic<bool> left_ = false;

  std::mutex mu_;
  bool over_ = false;
  grpc::ClientContext* call_ = nullptr;
  Stream* stream_ = nullptr;
  bool attached_ = false;
  std::string held_;   // for the next attachment
  int64_t typed_ = 0;  // into this one

  std::thread thread_;  // last: it uses all of this
};

}  // namespace bridge::cli
