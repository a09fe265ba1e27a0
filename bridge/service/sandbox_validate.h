// SPDX-License-Identifier: Apache-2.0
//
// service/sandbox_validate.h — requests of SandboxService, checked before anything is sent
// upstream. Every failure is INVALID_ARGUMENT naming the field; the first one in the order of the
// message, so that the same request always fails the same way. Pure functions.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sandbox/bridge/v1/sandboxes.pb.h"

namespace bridge {

inline constexpr absl::Duration kDefaultTtl = absl::Hours(1);
inline constexpr absl::Duration kMaxTtl = absl::Hours(24 * 366 * 10);

absl::Status CheckCreateSandbox(const sandbox::bridge::v1::CreateSandboxRequest& request);
absl::Status CheckListSandboxes(const sandbox::bridge::v1::ListSandboxesRequest& request);
absl::Status CheckSetExpiration(const sandbox::bridge::v1::SetExpirationRequest& request);
absl::Status CheckUpdateMetadata(const sandbox::bridge::v1::UpdateMetadataRequest& request);

// Empty, or 1..128 of [A-Za-z0-9._-].
absl::Status CheckRequestId(std::string_view request_id);

// How long a call may wait for what it wants: what its request says, or the default. Errors:
// INVALID_ARGUMENT for ready_timeout, wait_for_proof or wait.
absl::StatusOr<absl::Duration> WaitOf(const sandbox::bridge::v1::CreateSandboxRequest& request);
absl::StatusOr<absl::Duration> WaitOf(const sandbox::bridge::v1::DeleteSandboxRequest& request);
absl::StatusOr<absl::Duration> WaitOf(const sandbox::bridge::v1::PauseSandboxRequest& request);
absl::StatusOr<absl::Duration> WaitOf(const sandbox::bridge::v1::ResumeSandboxRequest& request);
absl::StatusOr<absl::Duration> WaitOf(const sandbox::bridge::v1::CreateSnapshotRequest& request);

}  // namespace bridge
