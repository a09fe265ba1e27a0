// SPDX-License-Identifier: Apache-2.0
//
// service/process_convert.h — processes: proto ↔ values, checked. Pure functions.
#pragma once

#include "absl/status/statusor.h"
#include "bridge/opensandbox/process_types.h"
#include "sandbox/bridge/v1/processes.pb.h"

namespace bridge {

absl::StatusOr<ProcessSpec> ProcessSpecFromProto(const sandbox::bridge::v1::ProcessSpec& spec);
// 0 takes the default. Errors: INVALID_ARGUMENT above 65535.
absl::StatusOr<TerminalSize> TerminalSizeFromProto(std::string_view field,
                                                   const sandbox::bridge::v1::TerminalSize& size);
void ProcessInfoToProto(const ProcessInfo& info, sandbox::bridge::v1::ProcessInfo* proto);
// Takes the event's memory.
void ProcessEventToProto(ProcessEvent event, sandbox::bridge::v1::ProcessEvent* proto);

}  // namespace bridge
