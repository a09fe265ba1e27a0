// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/isolation_script.h — the shell text by which a script runs in a stock daemon's
// isolated session.
//
// A session is one bash that reads its scripts from a pipe. Given as it is, a script that says
// "exit" ends the session, one that reads its input swallows what comes after it, and a timeout of
// the daemon's (an interrupt to the session's process group) takes the session along. So each
// script runs in a bash of its own, without input, in a process group of its own, with a mark on
// its command line by which it is found and killed from outside. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bridge {

// A script of this size still fits on a command line (Linux: 128 KiB an argument).
inline constexpr size_t kMaxSessionScriptBytes = 120 * 1024;

// "sandbox-bridge-run-NONCE": the line that tells that the script runs. `nonce`: 32 hex digits.
std::string RunMark(std::string_view nonce);

std::string SessionScript(std::string_view script,
                          const std::vector<std::pair<std::string, std::string>>& env,
                          std::string_view mark);

// Once for a new session: its scripts begin in the workspace. Exit 1: that cannot be entered.
std::string EnterWorkspaceScript(std::string_view workspace);

// Outside of the session, POSIX sh: kills the process group with this mark. Exit 0: killed; 3:
// there is none.
std::string KillRunScript(std::string_view mark);

// Outside of the session: prints the number (from 0) of each of `paths` that is no directory.
std::string MissingDirectoriesScript(const std::vector<std::string>& paths);

// Names that no script can be given: the shell keeps them to itself.
bool IsShellsOwnVariable(std::string_view name);

}  // namespace bridge
