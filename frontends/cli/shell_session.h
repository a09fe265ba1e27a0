// SPDX-License-Identifier: Apache-2.0
//
// cli/shell_session.h — a process of a sandbox on the person's terminal, from its start (or an
// attach to one that runs) to its end. A broken connection is made again at the byte where it
// broke.
//
// The main thread reads events and writes output; the thread of ShellKeys reads keys and watches
// the window's size. Both end before Run() returns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frontends/cli/command.h"
#include "frontends/cli/shell_keys.h"
#include "sandbox/bridge/v1/processes.pb.h"

namespace bridge::cli {

struct ShellOptions {
  std::string sandbox_id;
  std::string process_id = {};  // empty: starts `spec`
  sandbox::bridge::v1::ProcessSpec spec = {};
  bool takeover = false;  // from its present holder
  bool keep = false;      // it runs on when the connection is given up
};

class ShellSession {
 public:
  ShellSession(Context& context, ShellOptions options);

  // Returns the exit code of sbx; everything was printed and the terminal is as it was.
  int Run();

 private:
  enum class End { kExited, kDisplaced, kLeft, kLost };

  grpc::Status Start();
  End Hold();
  End AttachOnce(ShellKeys& keys);
  void TakeAttached(const sandbox::bridge::v1::ProcessEvent::Attached& attached, ShellKeys& keys);
  bool TakeEvent(const sandbox::bridge::v1::ProcessEvent& event);
  bool WaitBeforeRetry(int tries, const ShellKeys& keys) const;
  int Conclude(End end);
  bool DeleteOwn();

  Context& context_;
  const ShellOptions options_;
  std::string process_id_;
  int64_t next_ = 0;       // output byte wanted next
  int64_t acked_ = 0;      // bytes of this attachment's input that have arrived
  int64_t in_doubt_ = 0;   // bytes of earlier ones of which that is not known
  bool proven_ = false;    // this attachment was more than an answer
  bool attached_ = false;  // the present one
  bool attached_once_ = false;
  bool displaced_ = false;
  bool drained_ = false;
  std::optional<sandbox::bridge::v1::Outcome> outcome_;
  grpc::Status status_;  // of the last attachment
};

}  // namespace bridge::cli
