// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/isolation_types.h — isolated sessions as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bridge/opensandbox/exec_types.h"

namespace bridge {

// What a daemon says of itself.
struct IsolationInfo {
  bool available = false;
  std::string isolator = {};
  std::string version = {};
  bool setpriv = false;
  bool user_namespace = false;
  std::string detail = {};  // why not available
};

struct IsolatedBind {
  std::string source = {};
  std::string destination = {};
  bool read_only = false;
};

// Validated before it gets here: absolute paths; a user by number or none.
struct IsolatedSessionSpec {
  std::string workspace_path = {};
  std::string workspace_source = {};  // never empty
  UserSpec user = {};
  bool share_network = false;
  std::vector<std::string> extra_writable = {};
  std::vector<IsolatedBind> binds = {};
  absl::Duration idle_timeout = absl::InfiniteDuration();
};

// An open session. The daemon's lists tell the id and the time alone; its older builds never tell
// what a session was opened with.
struct IsolatedSession {
  std::string id = {};
  bool active = true;  // false: its shell has ended
  absl::Time created_at = absl::InfinitePast();
  std::string workspace_path = {};
  std::string workspace_source = {};
  std::optional<uint32_t> uid = {};
  std::optional<uint32_t> gid = {};
};

}  // namespace bridge
