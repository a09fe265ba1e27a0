// SPDX-License-Identifier: Apache-2.0
//
// cli/app.h — the whole of sbx behind main(): which command, its help, its settings. Main thread.
#pragma once

#include <string>
#include <vector>

#include "frontends/cli/connection.h"
#include "frontends/cli/interrupts.h"
#include "frontends/cli/streams.h"

namespace bridge::cli {

// `args` without the program's name. Returns the exit code.
int RunApp(const std::vector<std::string>& args, Streams& streams, Interrupts& interrupts,
           const EnvironmentLookup& environment);

}  // namespace bridge::cli
