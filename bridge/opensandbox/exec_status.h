// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_status.h — readings of what a stock daemon says of an ended command. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bridge/opensandbox/command_codec.h"
#include "bridge/opensandbox/exec_types.h"

namespace bridge {

// A stock daemon ends a command that ran too long by SIGKILL, which looks like any other kill: it
// was the timeout if the command had run for it. `timeout` infinite: it was not.
Outcome WithTimeout(Signalled signalled, absl::Duration timeout, absl::Duration ran_for);

// By the record's own times, if it has both.
std::optional<absl::Duration> RanFor(const CommandStatus& status);

// States in which a command waits rather than is lost.
bool IsPausedState(std::string_view upstream_state);
// The same of a failure that SandboxDirectory::Explain has explained.
bool SaysPaused(const absl::Status& failure);

// Nothing of the sandbox runs any more and never will: it is gone, or its main process has ended.
// `failure` is what SandboxDirectory::Explain made of a failed request.
bool IsSandboxOver(const absl::Status& failure);

}  // namespace bridge
