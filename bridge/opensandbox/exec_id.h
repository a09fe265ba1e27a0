// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_id.h — the id of an exec says how it is run and where its parts are, so that any
// replica of the bridge can find it again. Opaque to clients. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bridge {

struct ExecId {
  enum class Route { kOwn, kFiles, kLines };
  Route route = Route::kOwn;
  std::string command_id = {};  // the daemon's own id: letters, digits and '-', at most 64
  std::string nonce = {};       // kFiles: names its folder
  // kFiles, kLines: the spec's timeout, since a stock daemon does not tell one from a kill.
  absl::Duration timeout = absl::InfiniteDuration();
};

std::string FormatExecId(const ExecId& id);

// PROCESS_NOT_FOUND for what no bridge has made: an id names an exec or it does not.
absl::StatusOr<ExecId> ParseExecId(std::string_view text);

}  // namespace bridge
