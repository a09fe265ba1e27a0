// SPDX-License-Identifier: Apache-2.0
//
// local/execd/session_script.h — what a run of a bash session hands to the next: the script that
// dumps it and the reading of the dump. Pure, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bridge/local/execd/environment.h"

namespace bridge::local::execd {

// A script that runs `command` and, if that comes back, writes exported variables and directory to
// `dump_path`; it exits with the command's status. The command begins on line 11, as in the real
// daemon's scripts, since bash names the line in its messages.
std::string SessionScript(std::string_view command, std::string_view dump_path);

struct SessionState {
  EnvMap env;
  std::string cwd;
};

// Reads what the script wrote; nothing when it is not complete. Values over 8 KiB, the prompt
// variables and what bash counts for itself are left out.
std::optional<SessionState> ParseSessionDump(std::string_view dump);

// Is the line kept from the client, as the real daemon's own markers are?
bool IsSessionMarker(std::string_view line);

}  // namespace bridge::local::execd
