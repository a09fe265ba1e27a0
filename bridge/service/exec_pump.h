// SPDX-License-Identifier: Apache-2.0
//
// service/exec_pump.h — from an Exec to a client: batches become messages, in order, bounded, with
// keepalives in silence and the caller's limit on output.
// Owned by the call's task; loop thread only.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bridge/opensandbox/exec.h"
#include "bridge/service/call.h"
#include "sandbox/bridge/v1/exec.pb.h"

namespace bridge {

// Cuts each output stream at a limit and says so.
class OutputLimit {
 public:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  explicit OutputLimit(int64_t bytes) : limit_(bytes) {}

  // How many of the next `size` bytes of `stream` may be delivered.
  int64_t Take(StreamId stream, int64_t size);
  // Whether any of the `produced` bytes of a stream was not delivered, be it that it was skipped.
  bool truncated(StreamId stream, int64_t produced) const {
    return truncated_[Index(stream)] || produced > limit_;
  }
  // Nothing more of this stream will be delivered.
  bool full(StreamId stream) const { return taken_[Index(stream)] >= limit_; }

 private:
  static int Index(StreamId stream) { return stream == StreamId::kStdout ? 0 : 1; }
  const int64_t limit_;
  int64_t taken_[2] = {0, 0};
  bool truncated_[2] = {false, false};
};

class ExecPump {
 public:
  using Event = sandbox::bridge::v1::ExecEvent;
  ExecPump(Writer<Event>& call, Exec& exec, int64_t max_output_bytes, absl::Duration keepalive)
      : call_(call), exec_(exec), limit_(max_output_bytes), keepalive_(keepalive) {}

  // started, everything that comes, drained. OK, or the failure of the call.
  Task<absl::Status> Run();
  // started alone.
  Task<absl::Status> SendStarted();

 private:
  Task<bool> Send();
  Task<bool> SendOutputs(const ExecBatch& batch);
  Task<bool> SendEnd(const ExecBatch& batch);
  absl::Duration SinceLastSend() const { return call_.loop().Now() - last_send_; }
  // A daemon's heartbeat ends the wait, and that counts from when the daemon wrote last. One that
  // comes a little early by our clock is the only one for as long again.
  bool KeepaliveIsDue() const { return SinceLastSend() >= keepalive_ - keepalive_ / 8; }

  Writer<Event>& call_;
  Exec& exec_;
  OutputLimit limit_;
  const absl::Duration keepalive_;
  Event events_[2];  // one is filled while the other one is on its way
  int current_ = 0;
  absl::Duration last_send_ = {};
};

}  // namespace bridge
