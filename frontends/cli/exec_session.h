// SPDX-License-Identifier: Apache-2.0
//
// cli/exec_session.h — one Execute call from its start to the exit code of sbx.
//
// The main thread reads events and writes output; when the person's pipe is full it stops reading,
// and through gRPC's flow control so does the command. A second thread supervises: it kills the
// remote command on Ctrl-C or when nobody reads its output any more, and gives up on a bridge that
// has fallen silent. Both end before Run() returns.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "frontends/cli/command.h"
#include "sandbox/bridge/v1/exec.pb.h"

namespace bridge::cli {

struct ExecTimes {
  // Without any event for this long (the bridge sends keepalives) the connection is taken for dead.
  std::chrono::milliseconds silence = std::chrono::seconds(60);
  // After a kill: for the outcome to come back before the call is cut.
  std::chrono::milliseconds farewell = std::chrono::seconds(3);
};

class ExecSession {
 public:
  ExecSession(Context& context, sandbox::bridge::v1::ExecuteRequest request, ExecTimes times = {});

  // Runs the command and returns the exit code of sbx; everything was printed.
  int Run();

  // How the command ended, when that is known. After Run().
  const std::optional<sandbox::bridge::v1::Outcome>& outcome() const { return outcome_; }

 private:
  enum class Stop { kNone, kInterrupted, kNoReader, kLocal, kSilent };
  using Clock = std::chrono::steady_clock;

  // Main thread.
  void ReadEvents(grpc::ClientReader<sandbox::bridge::v1::ExecEvent>& reader);
  void OnEvent(const sandbox::bridge::v1::ExecEvent& event);
  void OnOutput(const sandbox::bridge::v1::ExecEvent::Output& output);
  void OnDrained(const sandbox::bridge::v1::ExecEvent::Drained& drained);
  void Emit(const absl::Status& written);
  int Conclude(const grpc::Status& status);
  int ConcludeStopped(const grpc::Status& status);
  int ConcludeOutcome();

  // Any thread.
  void RequestStop(Stop stop);

  // Supervising thread.
  void Supervise();
  void KillRemote(const std::string& exec_id);
  bool IsSilent(Clock::time_point now) const;  // mu_ held

  Context& context_;
  const sandbox::bridge::v1::ExecuteRequest request_;
  const ExecTimes times_;
  std::unique_ptr<grpc::ClientContext> call_;
  std::optional<sandbox::bridge::v1::Outcome> outcome_;  // main thread
  bool detached_id_printed_ = false;                     // main thread
  std::string local_failure_;                            // main thread

  mutable std::mutex mu_;
  std::condition_variable changed_;
  bool finished_ = false;
  Stop stop_ = Stop::kNone;
  std::string exec_id_;
  bool reading_ = false;
  Clock::time_point reading_since_;
};

}  // namespace bridge::cli
