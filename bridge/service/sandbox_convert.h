// SPDX-License-Identifier: Apache-2.0
//
// service/sandbox_convert.h — sandboxes, their specs and what is known of them: proto ↔ values.
// From the proto only what sandbox_validate.h has let through. Pure functions.
#pragma once

#include <vector>

#include "bridge/opensandbox/lifecycle_types.h"
#include "bridge/opensandbox/sandbox_lister.h"
#include "bridge/opensandbox/sandbox_ports.h"
#include "bridge/opensandbox/sandbox_probe.h"
#include "bridge/opensandbox/sandbox_remover.h"
#include "sandbox/bridge/v1/sandboxes.pb.h"

namespace bridge {

CreateSpec CreateSpecFromProto(const sandbox::bridge::v1::SandboxSpec& spec);
SandboxFilter SandboxFilterFromProto(const sandbox::bridge::v1::ListSandboxesRequest& request);
NetworkRule RuleFromProto(const sandbox::bridge::v1::NetworkPolicy::Rule& rule);
DiagnosticsKind DiagnosticsKindFromProto(sandbox::bridge::v1::GetDiagnosticsRequest::Kind kind);

// Leaves the bridge's own labels out of the metadata.
void SandboxToProto(const SandboxRecord& record, sandbox::bridge::v1::Sandbox* proto);
sandbox::bridge::v1::SandboxState SandboxStateToProto(SandboxState state);
void DeletionToProto(const Deletion& deletion, sandbox::bridge::v1::DeleteSandboxResponse* proto);
void ProbeToProto(const Probe& probe, sandbox::bridge::v1::ProbeSandboxResponse* proto);
void PortUrlToProto(const PortUrl& port, sandbox::bridge::v1::Endpoint* proto);
void PolicyToProto(const NetworkPolicyStatus& status,
                   sandbox::bridge::v1::NetworkPolicyStatus* proto);
void SampleToProto(const ResourceSample& sample, sandbox::bridge::v1::ResourceUsage* proto);
void SnapshotToProto(const SnapshotRecord& record, sandbox::bridge::v1::Snapshot* proto);

}  // namespace bridge
