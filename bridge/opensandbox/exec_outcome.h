// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_outcome.h — what a stock daemon's word on the end of a command means, given how
// the bridge started it. The daemon knows an exit status or a signal; who sent the signal, and
// whether the status is the command's or that of a shell that could not become it, lies in the
// exec's folder.
#pragma once

#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/exec_script.h"
#include "bridge/opensandbox/exec_types.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

// `said` of a command that was run by RedirectScript in `folder` and has ended. Asks the daemon at
// most twice, and nothing after an ordinary exit. Where it cannot be asked, `said` is all there is.
Task<Outcome> ResolveOutcome(SandboxHandle sandbox, ExecFolder folder, Outcome said,
                             absl::Duration timeout, absl::Duration ran_for);

}  // namespace bridge
