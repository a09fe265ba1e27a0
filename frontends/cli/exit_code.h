// SPDX-License-Identifier: Apache-2.0
//
// cli/exit_code.h — what sbx itself answers. A command's own exit code is passed on as it is; the
// last five are those that timeout(1), docker(1) and the shells use.
#pragma once

namespace bridge::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitTimedOut = 124,
  kExitNoVerdict = 125,  // the bridge or the sandbox failed; nothing is known of the command
  kExitCannotExecute = 126,
  kExitNotFound = 127,
  kExitSignalBase = 128,
};

}  // namespace bridge::cli
