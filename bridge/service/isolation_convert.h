// SPDX-License-Identifier: Apache-2.0
//
// service/isolation_convert.h — isolated sessions: proto ↔ values, checked. Pure functions.
#pragma once

#include "absl/status/statusor.h"
#include "bridge/opensandbox/isolation_client.h"
#include "bridge/opensandbox/isolation_types.h"
#include "sandbox/bridge/v1/isolation.pb.h"

namespace bridge {

// INVALID_ARGUMENT or PATH_REJECTED with the field's path for what cannot be opened or run.
absl::StatusOr<IsolatedSessionSpec> SessionSpecFromProto(
    const sandbox::bridge::v1::OpenIsolatedSessionRequest& request);
absl::StatusOr<IsolationClient::RunSpec> RunSpecFromProto(
    const sandbox::bridge::v1::RunInIsolatedSessionRequest& request);

void IsolationToProto(const IsolationInfo& info, sandbox::bridge::v1::Isolation* proto);
void SessionToProto(const IsolatedSession& session, sandbox::bridge::v1::IsolatedSession* proto);

}  // namespace bridge
