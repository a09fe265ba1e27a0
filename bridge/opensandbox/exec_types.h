// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_types.h — a command to run and how it ended, as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"

namespace bridge {

// Whose rights a command has. At most one of `name` and `uid` is set; neither: the daemon's user.
struct UserSpec {
  std::string name = {};
  std::optional<uint32_t> uid = {};
  std::optional<uint32_t> gid = {};  // only with uid
  bool set() const { return !name.empty() || uid.has_value(); }
};

enum class ExecFidelity { kBytes, kBest, kLines };

// Validated before it gets here: names, sizes, NULs.
struct ExecSpec {
  // The program and its arguments, or one line for the shell: exactly one is non-empty.
  std::vector<std::string> argv = {};
  std::string shell = {};
  std::string cwd = {};  // empty: the image's
  std::vector<std::pair<std::string, std::string>> env = {};
  UserSpec user = {};
  absl::Duration timeout = absl::InfiniteDuration();
  std::string stdin_bytes = {};
  bool detach_on_disconnect = false;
  ExecFidelity fidelity = ExecFidelity::kBytes;
};

// The alternatives of common.proto's Outcome, in its words.
struct ExitCode {
  int code = 0;
  bool operator==(const ExitCode&) const = default;
};
struct Signalled {
  int number = 0;  // 0: "a signal", unknown which
  bool core = false;
  bool operator==(const Signalled&) const = default;
};
struct TimedOut {
  absl::Duration after = {};
  bool operator==(const TimedOut&) const = default;
};
struct CancelledEnd {
  bool confirmed = false;
  std::optional<Signalled> signal = {};  // the one that ended it, where that is known
  bool operator==(const CancelledEnd&) const = default;
};
struct SpawnFailed {
  enum class Kind {
    kNotFound,
    kNotExecutable,
    kArgumentsTooLong,
    kBadCwd,
    kBadUser,
    kNoRoom,
    kOther
  };
  Kind kind = Kind::kOther;
  std::string message = {};
  bool operator==(const SpawnFailed&) const = default;
};
struct Lost {
  std::string reason = {};
  bool maybe_running = false;
  bool operator==(const Lost&) const = default;
};
using Outcome = std::variant<ExitCode, Signalled, TimedOut, CancelledEnd, SpawnFailed, Lost>;

enum class StreamId { kStdout, kStderr };

struct ExecOutput {
  StreamId stream = StreamId::kStdout;
  std::string data = {};
  int64_t offset = 0;  // of the first byte, in its stream
};

}  // namespace bridge
