// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/capabilities.h — what a sandbox's daemon can do, found out by trying.
//
// Versions are never compared: daemons are built from branches and repackaged. What the execs and
// files of the bridge depend on is probed once per sandbox on first use (two requests, about 6 ms)
// and kept in the Daemon; what only GetCapabilities wants to know is probed when it asks.
// Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/daemon_client.h"

namespace bridge {

struct DaemonCapabilities {
  // Our own daemon's extra routes (docs/execd-extras.md), by the names it announces.
  bool exec = false;        // POST /v1/exec: exact streams, stdin, true status, an id that we draw
  bool exec_ws = false;     // the same on a WebSocket
  bool signal = false;      // POST /v1/signal
  bool processes = false;   // GET /v1/processes
  bool file_read = false;   // GET /v1/file, /v1/file/info, /v1/directory
  bool file_write = false;  // PUT /v1/file
  bool file_attributes = false;  // POST /v1/file/attributes
  bool file_move = false;        // POST /v1/file/move
  bool watch = false;            // GET /v1/watch
  bool own() const { return exec; }

  // OK, unless the sandbox was too busy to be asked for what follows: it says nothing then.
  absl::Status unprobed = absl::OkStatus();
  // Stock daemons: a directory in which the daemon's user can make private folders. Empty: none, so
  // that exact output cannot be had (a read-only file system).
  std::string scratch = {};
  // The shell by which a stock daemon runs commands is bash (needed by /pty and /session).
  bool bash = false;
  // A stock daemon prints blank lines as events; older ones swallow them.
  bool blank_lines = true;
};

// Answers what is kept, or probes. Errors: those of a request to the daemon.
Task<absl::StatusOr<std::shared_ptr<DaemonCapabilities>>> ProbeDaemon(
    DaemonClient& client, CallContext context, std::shared_ptr<Daemon> daemon);

enum class CapabilityLevel { kFull, kDegraded, kNone };

// One row of GetCapabilities.
struct Capability {
  std::string feature;
  CapabilityLevel level = CapabilityLevel::kNone;
  std::string note = {};  // what DEGRADED loses, or why NONE
};

// What follows for the API from a daemon's capabilities: the rows of docs/capabilities.md that
// depend on the daemon. Pure.
std::vector<Capability> CapabilitiesOf(const DaemonCapabilities& daemon);

// "bridge execd" or "stock execd".
std::string DaemonName(const DaemonCapabilities& daemon);

}  // namespace bridge
