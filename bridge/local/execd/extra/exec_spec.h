// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/exec_spec.h — the body of `POST /v1/exec`, read, checked and turned into what is
// started. Reads accounts and PATH; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "bridge/local/execd/extra/failure.h"
#include "bridge/local/execd/process.h"

namespace bridge::local::execd::extra {

struct ExecSpec {
  std::string id;                    // the client's choice; empty: ours
  std::vector<std::string> argv;     // exactly one of these two
  std::optional<std::string> shell;  //
  std::map<std::string, std::string> env;
  bool clear_env = false;
  std::string cwd;
  std::optional<std::string> user;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  bool stdin_pipe = false;
  std::optional<std::string> input;  // all of it: stdin_b64, decoded
  absl::Duration timeout = absl::InfiniteDuration();
  bool kill_on_disconnect = true;
  bool stream = true;
  int64_t retain_bytes = 8 << 20;
  absl::Duration drain = absl::Seconds(1);
  absl::Duration heartbeat = absl::Seconds(15);
};

// May this be the id that a client chose? 32 lower-case hex digits.
bool IsExecId(std::string_view id);

std::optional<Failure> ParseExecSpec(std::string_view body, ExecSpec* out);

// All but the descriptors.
std::optional<Failure> ResolveExecSpec(const ExecSpec& spec, SpawnSpec* out);

// 429: the limit on processes and threads is reached, or memory is.
Failure NoRoom();

// 422 for a child that could not be started, or NoRoom().
Failure SpawnFailed(const SpawnSpec& spec, const Processes::SpawnResult& result);

}  // namespace bridge::local::execd::extra
