// SPDX-License-Identifier: Apache-2.0
//
// cli/sandbox_options.h — the options that describe a new sandbox: `sbx create` and `sbx run`.
// Pure values, any thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/cli/connection.h"
#include "frontends/cli/options.h"
#include "sandbox/bridge/v1/sandboxes.pb.h"

namespace bridge::cli {

// When neither --image nor SANDBOX_BRIDGE_IMAGE says otherwise.
inline constexpr std::string_view kDefaultImage = "python:3.12-slim";

// `sbx run` has an --env of its own, for the command.
std::vector<Option> SandboxOptions(bool with_env);

// InvalidArgument with the option's name.
absl::StatusOr<sandbox::bridge::v1::CreateSandboxRequest> ReadSandboxOptions(
    const Arguments& arguments, bool with_env, const EnvironmentLookup& environment);

// A variable of this side that is to be sent. InvalidArgument: it is not UTF-8.
absl::StatusOr<std::optional<std::string>> OwnVariable(const std::string& name,
                                                       const EnvironmentLookup& environment);

// "NAME=value", or "NAME" to take it from `environment`. For --env everywhere.
absl::StatusOr<sandbox::bridge::v1::EnvVar> ParseEnv(const std::string& text,
                                                     const EnvironmentLookup& environment);

// "KEY=VALUE" split at the first "=".
absl::StatusOr<std::pair<std::string, std::string>> ParsePair(std::string_view option,
                                                              const std::string& text);

void SetDuration(absl::Duration value, google::protobuf::Duration& out);

}  // namespace bridge::cli
