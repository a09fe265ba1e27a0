// SPDX-License-Identifier: Apache-2.0
//
// cli/sandbox_calls.h — create and delete, shared by `run` and the commands that do one of them.
// Main thread; Ctrl-C cancels the call.
#pragma once

#include <optional>
#include <string>

#include "frontends/cli/command.h"
#include "sandbox/bridge/v1/sandboxes.pb.h"

namespace bridge::cli {

// Waits as long as the request's ready_timeout and some more.
grpc::Status CreateSandbox(Context& context,
                           const sandbox::bridge::v1::CreateSandboxRequest& request,
                           sandbox::bridge::v1::CreateSandboxResponse* response);

// `wait_for_proof` absent: the bridge's default.
grpc::Status DeleteSandbox(Context& context, const std::string& sandbox_id,
                           std::optional<absl::Duration> wait_for_proof,
                           sandbox::bridge::v1::DeleteSandboxResponse* response);

// Deletes one that nobody is to keep. What may be left behind is said; false: the call failed.
bool Discard(Context& context, const std::string& sandbox_id,
             sandbox::bridge::v1::DeleteSandboxResponse* response);

// It is proven that the sandbox does not exist.
bool IsGone(const sandbox::bridge::v1::DeleteSandboxResponse& response);

// The sandbox's fields with `adopted` and `ttl_clamped` beside them.
Json CreateJson(const sandbox::bridge::v1::CreateSandboxResponse& response);
// The response's fields with `sandbox_id` before them.
Json DeleteJson(const std::string& sandbox_id,
                const sandbox::bridge::v1::DeleteSandboxResponse& response);

}  // namespace bridge::cli
