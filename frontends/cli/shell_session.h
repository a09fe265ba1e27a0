// SPDX-License-Identifier: Apache-2.0
//
// cli/shell_session.h — a process of a sandbox on the person's terminal, from its start (or an
// attach to one that runs) to its end. A broken connection is made again at the byte where it
// broke.
//
// The main thread reads events and writes output; a second thread reads keys and watches the
// window's size. Both end before Run() returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frontends/cli/command.h"
#include "frontends/cli/raw_terminal.h"
#include "sandbox/bridge/v1/processes.pb.h"

namespace bridge::cli {

struct ShellOptions {
  std::string sandbox_id;
  std::string process_id = {};  // empty: starts `spec`
  sandbox::bridge::v1::ProcessSpec spec = {};
  bool takeover = false;  // from its present holder
  bool keep = false;      // it runs on when the connection is given up
};

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

class ShellSession {
 public:
  ShellSession(Context& context, ShellOptions options);
  ~ShellSession();
  ShellSession(const ShellSession&) = delete;
  ShellSession& operator=(const ShellSession&) = delete;

  // Returns the exit code of sbx; everything was printed and the terminal is as it was.
  int Run();

 private:
  using Stream = grpc::ClientReaderWriter<sandbox::bridge::v1::AttachProcessRequest,
                                          sandbox::bridge::v1::ProcessEvent>;
  enum class End { kExited, kDisplaced, kLeft, kLost };

  grpc::Status Start();
  End Hold();
  End AttachOnce();
  bool TakeEvent(const sandbox::bridge::v1::ProcessEvent& event);
  void PumpKeys(Stream& stream, grpc::ClientContext& call);
  bool SendKeys(Stream& stream, std::string_view keys);
  bool SendSize(Stream& stream);
  bool WaitBeforeRetry(int tries) const;
  int Conclude(End end);
  void DeleteOwn();

  Context& context_;
  const ShellOptions options_;
  const WindowWatch window_;
  const int stop_fd_;  // readable: the thread of the keys is to end
  std::string process_id_;
  EscapeFilter escapes_;
  int64_t next_ = 0;    // output byte wanted next
  int64_t typed_ = 0;   // bytes sent in this attachment
  bool fresh_ = false;  // this attachment has delivered something
  bool attached_once_ = false;
  bool displaced_ = false;
  bool drained_ = false;
  std::atomic<bool> left_ = false;  // "~." was typed
  std::optional<sandbox::bridge::v1::Outcome> outcome_;
  grpc::Status status_;  // of the last attachment
};

}  // namespace bridge::cli
