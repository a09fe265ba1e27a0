// SPDX-License-Identifier: Apache-2.0
//
// cli/exec_options.h — the options that describe a command: `sbx exec` and `sbx run`.
// Pure values, any thread.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "frontends/cli/connection.h"
#include "frontends/cli/input.h"
#include "frontends/cli/options.h"
#include "sandbox/bridge/v1/exec.pb.h"

namespace bridge::cli {

std::vector<Option> ExecOptions();

// Everything of the spec but stdin. InvalidArgument with the option's name.
absl::StatusOr<sandbox::bridge::v1::ExecSpec> ReadExecOptions(const Arguments& arguments,
                                                              const EnvironmentLookup& environment);

// -i and -n.
absl::StatusOr<InputMode> ReadInputMode(const Arguments& arguments);

// "agent", "1000", "1000:100".
absl::StatusOr<sandbox::bridge::v1::User> ParseUser(const std::string& text);

}  // namespace bridge::cli
