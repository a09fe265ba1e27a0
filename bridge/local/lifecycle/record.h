// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/record.h — all that is known about one sandbox, and its form in the state
// directory. The form is read only by the next start of this program. Pure values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "bridge/local/api/failure.h"
#include "bridge/local/runtime/bootstrap_protocol.h"
#include "bridge/local/runtime/sandbox_process.h"

namespace bridge::local::lifecycle {

using api::Json;

struct SandboxRecord {
  std::string id;
  std::string image;
  std::string root;  // "/" = the host's, else the unpacked image's
  std::vector<std::string> entrypoint;
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> extensions;
  std::map<std::string, std::string> resource_limits;
  std::optional<std::pair<std::string, std::string>> platform;  // os, arch
  std::vector<std::string> volumes_to_delete;  // named volumes that go with the sandbox

  absl::Time created_at;    // when it was asked for: what the create answer says
  absl::Time container_at;  // when it was made, milliseconds later: what every later answer says
  absl::Time started_at;
  std::optional<absl::Time> expires_at;

  std::string hostname;  // 12 hex digits, as a container's id in short
  int execd_port = 0;
  runtime::ProcessRecord process;
  bool paused = false;
  std::optional<runtime::ExitStatus> ended;
};

Json ToJson(const SandboxRecord& record);
// Nothing when it was not written by ToJson of this version.
std::optional<SandboxRecord> FromJson(const Json& json);

}  // namespace bridge::local::lifecycle
