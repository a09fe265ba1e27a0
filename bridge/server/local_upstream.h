// SPDX-License-Identifier: Apache-2.0
//
// server/local_upstream.h — `--upstream=local`: the OpenSandbox that comes with the bridge, in this
// process, on a loopback port that only the bridge has the key of. The bridge talks to it over HTTP
// as to any other. It goes down with its owner, and its sandboxes with it unless they are to be
// kept.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bridge/server/log.h"
#include "bridge/server/options.h"

namespace bridge {

struct LocalUpstreamOptions {
  std::string isolation = {};  // overlay, bwrap, none; empty: the best of the first two that works
  std::string image_dir = {};
  std::string state_dir = {};  // empty: a private one that goes away
  bool keep_sandboxes = false;
};

// Owns a local OpenSandbox. Destroy it after the server that talks to it.
class LocalUpstream {
 public:
  virtual ~LocalUpstream() = default;
};

// Starts one and points `server` at it, key included. `log` outlives it.
// Errors: INVALID_ARGUMENT naming the flag; what the local OpenSandbox says of this machine.
absl::StatusOr<std::unique_ptr<LocalUpstream>> StartLocalUpstream(
    const LocalUpstreamOptions& options, Log& log, ServerOptions& server);

}  // namespace bridge
