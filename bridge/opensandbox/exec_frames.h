// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_frames.h — the framed stream of our own daemon's exec: bytes ↔ values.
// The wire is docs/execd-extras.md ("Frames"). Pure, incremental, bounded. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/http.h"
#include "bridge/opensandbox/exec_types.h"

namespace bridge {

inline constexpr size_t kExecFrameHeaderBytes = 16;
inline constexpr size_t kMaxExecFramePayload = 262144;

struct ExecFrame {
  enum Type : uint8_t {
    kStdout = 0x01,
    kStderr = 0x02,
    kStarted = 0x10,
    kExited = 0x11,
    kDrained = 0x12,
    kHeartbeat = 0x13,
    kStdinAck = 0x14,
    kStdinClosed = 0x15,
    kError = 0x1f,
    kStdin = 0x21,
    kStdinEof = 0x22,
    kSignal = 0x23,
  };
  uint8_t type = 0;
  uint64_t offset = 0;
  std::string_view payload = {};
};

// Cuts a byte stream, split anywhere, into frames.
//   parser.Feed(bytes);
//   while (parser.Next(&frame)) use(frame);      // payload is valid until the next Feed() or
//   Next() if (!parser.status().ok()) ...               // UPSTREAM_PROTOCOL; sticky
class ExecFrameParser {
 public:
  void Feed(std::string_view bytes);
  bool Next(ExecFrame* frame);
  const absl::Status& status() const { return status_; }
  // Bytes of a frame that is not complete: a stream that ends here was cut.
  bool mid_frame() const { return taken_ < buffer_.size(); }

 private:
  std::string buffer_;
  size_t taken_ = 0;
  absl::Status status_;
};

// One frame's bytes, for sending.
std::string EncodeExecFrame(uint8_t type, uint64_t offset, std::string_view payload);

struct ExecStarted {
  std::string exec_id = {};
  int64_t pid = 0;
  absl::Time started_at = absl::InfinitePast();
};
absl::StatusOr<ExecStarted> ParseExecStarted(std::string_view json);

struct ExecExited {
  Outcome outcome = {};
  absl::Duration ran_for = {};
};
// A time-out, `timed_out` with SIGKILL, becomes TimedOut; death by a signal that a client sent
// becomes CancelledEnd.
absl::StatusOr<ExecExited> ParseExecExited(std::string_view json);

struct ExecDrained {
  int64_t stdout_bytes = 0;
  int64_t stderr_bytes = 0;
  std::optional<bool> still_open = {};  // either of the two
};
absl::StatusOr<ExecDrained> ParseExecDrained(std::string_view json);

// GET /v1/exec/{id}.
struct ExecRecord {
  bool running = false;
  std::optional<ExecExited> exited = {};
  int64_t pid = 0;
  absl::Time started_at = absl::InfinitePast();
  absl::Time finished_at = absl::InfinitePast();
  int64_t stdout_bytes = 0;
  int64_t stderr_bytes = 0;
  std::optional<bool> still_open = {};  // once it is drained
};
absl::StatusOr<ExecRecord> ParseExecRecord(std::string_view json);

// The body of POST /v1/exec. `exec_id` is empty where the daemon chooses.
std::string ExecRequestJson(const ExecSpec& spec, absl::Duration heartbeat,
                            std::string_view exec_id = {});

// An error answer of these routes → a failure or, for SPAWN_FAILED, the outcome. What has none of
// these routes' codes is judged like any answer of a daemon.
struct ExecRefusal {
  std::optional<SpawnFailed> spawn_failed = {};
  absl::Status status = {};
};
ExecRefusal ParseExecRefusal(const HttpResponse& response);

}  // namespace bridge
