// SPDX-License-Identifier: Apache-2.0
//
// service/exec_convert.h — commands and outcomes: proto ↔ values, checked. Pure functions.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "bridge/opensandbox/exec_client.h"
#include "bridge/opensandbox/exec_types.h"
#include "sandbox/bridge/v1/exec.pb.h"

namespace bridge {

inline constexpr int64_t kMaxStdinBytes = int64_t{8} << 20;
inline constexpr int64_t kMaxRunOutputBytes = int64_t{1} << 20;
inline constexpr absl::Duration kDefaultKeepalive = absl::Seconds(15);

// INVALID_ARGUMENT with the field's path ("spec.env[2].name") for what cannot be run.
absl::StatusOr<ExecSpec> ExecSpecFromProto(const sandbox::bridge::v1::ExecSpec& spec);

// Of ids that CheckUserIds() has passed.
UserSpec UserFromIds(const sandbox::bridge::v1::User::Ids& ids);
absl::StatusOr<UserSpec> UserFromProto(std::string_view field,
                                       const sandbox::bridge::v1::User& user);

// Absent: the default. 1 s to 1 h.
absl::StatusOr<absl::Duration> KeepaliveFromProto(bool present,
                                                  const google::protobuf::Duration& value,
                                                  std::string_view field = "keepalive_interval");

void OutcomeToProto(const Outcome& outcome, sandbox::bridge::v1::Outcome* proto);
void ExecInfoToProto(const ExecInfo& info, sandbox::bridge::v1::ExecInfo* proto);
sandbox::bridge::v1::Fidelity FidelityToProto(ExecFidelity fidelity);
sandbox::bridge::v1::OutputStream StreamToProto(StreamId stream);

}  // namespace bridge
