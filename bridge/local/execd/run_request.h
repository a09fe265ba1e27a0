// SPDX-License-Identifier: Apache-2.0
//
// local/execd/run_request.h — the body of `POST /command`, read and checked with execd's rules and
// in its words. Reads the file system (cwd, accounts); any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/local/execd/api_error.h"
#include "bridge/local/execd/environment.h"
#include "bridge/local/execd/habits.h"
#include "bridge/local/execd/process.h"

namespace bridge::local::execd {

struct RunRequest {
  std::string command;            // for a shell; empty when argv is set
  std::vector<std::string> argv;  // a program and its arguments
  std::string cwd;                // absolute and existing, or empty
  bool background = false;
  int64_t timeout_ms = 0;  // 0: none
  std::optional<Identity> identity;
  EnvMap env;  // complete

  // What `GET /command/status` shows.
  std::string Content() const;
};

// Fills *out or says why not (always a 400).
std::optional<ApiError> ParseRunRequest(std::string_view body, const Habits& habits,
                                        RunRequest* out);

// The child's program, arguments, environment, cwd and identity. On failure (argv's program is in
// no directory of PATH) *error is the text that ends the stream.
SpawnSpec MakeSpawnSpec(const RunRequest& request, std::string* error);

// What a uid and an optional gid stand for: without a gid the account's own, or 0 where there is no
// account; supplementary groups are the account's.
Identity ResolveIdentity(uint32_t uid, std::optional<uint32_t> gid);

// The cwd of a request as an existing directory, or an error text without a prefix. An empty `cwd`
// gives an empty path.
std::string ResolveDirectory(std::string_view cwd, std::string* error);

// "fork/exec /usr/bin/bash: argument list too long"
std::string SpawnFailure(const SpawnSpec& spec, const Processes::SpawnResult& result);

}  // namespace bridge::local::execd
