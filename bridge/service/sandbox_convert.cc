// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/sandbox_convert.h"

#include <string>

#include "bridge/base/error.h"
#include "bridge/opensandbox/labels.h"
#include "bridge/service/sandbox_validate.h"
#include "bridge/service/time_convert.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

std::map<std::string, std::string> FromMap(
    const google::protobuf::Map<std::string, std::string>& map) {
  return {map.begin(), map.end()};
}

absl::Duration FromDuration(const google::protobuf::Duration& value) {
  return absl::Seconds(value.seconds()) + absl::Nanoseconds(value.nanos());
}

PolicyAction FromAction(v1::NetworkPolicy::Action action) {
  switch (action) {
    case v1::NetworkPolicy::ACTION_ALLOW:
      return PolicyAction::kAllow;
    case v1::NetworkPolicy::ACTION_DENY:
      return PolicyAction::kDeny;
    default:
      return PolicyAction::kUnset;
  }
}

v1::NetworkPolicy::Action ToAction(PolicyAction action) {
  switch (action) {
    case PolicyAction::kAllow:
      return v1::NetworkPolicy::ACTION_ALLOW;
    case PolicyAction::kDeny:
      return v1::NetworkPolicy::ACTION_DENY;
    case PolicyAction::kUnset:
      break;
  }
  return v1::NetworkPolicy::ACTION_UNSPECIFIED;
}

VolumeSpec FromVolume(const v1::Volume& volume) {
  VolumeSpec result;
  result.name = volume.name();
  result.mount_path = volume.mount_path();
  result.read_only = volume.read_only();
  result.sub_path = volume.sub_path();
  if (volume.has_host_path()) {
    result.host_path = volume.host_path();
    return result;
  }
  const v1::Volume::NamedVolume& named = volume.named();
  result.claim = named.claim();
  result.create_if_missing = !named.has_create_if_missing() || named.create_if_missing();
  result.delete_with_sandbox = named.delete_with_sandbox();
  result.storage_class = named.storage_class();
  result.size = named.size();
  result.access_modes = {named.access_modes().begin(), named.access_modes().end()};
  return result;
}

SandboxState FromState(int state) {
  switch (state) {
    case v1::SANDBOX_STATE_PENDING:
      return SandboxState::kPending;
    case v1::SANDBOX_STATE_RUNNING:
      return SandboxState::kRunning;
    case v1::SANDBOX_STATE_PAUSING:
      return SandboxState::kPausing;
    case v1::SANDBOX_STATE_PAUSED:
      return SandboxState::kPaused;
    case v1::SANDBOX_STATE_RESUMING:
      return SandboxState::kResuming;
    case v1::SANDBOX_STATE_STOPPING:
      return SandboxState::kStopping;
    case v1::SANDBOX_STATE_TERMINATED:
      return SandboxState::kTerminated;
    case v1::SANDBOX_STATE_FAILED:
      return SandboxState::kFailed;
    default:
      return SandboxState::kUnknown;
  }
}

v1::Snapshot::State ToSnapshotState(SnapshotState state) {
  switch (state) {
    case SnapshotState::kCreating:
      return v1::Snapshot::STATE_CREATING;
    case SnapshotState::kReady:
      return v1::Snapshot::STATE_READY;
    case SnapshotState::kFailed:
      return v1::Snapshot::STATE_FAILED;
    case SnapshotState::kDeleting:
      return v1::Snapshot::STATE_DELETING;
    case SnapshotState::kUnknown:
      break;
  }
  return v1::Snapshot::STATE_UNKNOWN;
}

v1::DeleteSandboxResponse::Verdict ToVerdict(DeletionVerdict verdict) {
  switch (verdict) {
    case DeletionVerdict::kConfirmedGone:
      return v1::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE;
    case DeletionVerdict::kAlreadyGone:
      return v1::DeleteSandboxResponse::VERDICT_ALREADY_GONE;
    case DeletionVerdict::kAcceptedUnconfirmed:
      break;
  }
  return v1::DeleteSandboxResponse::VERDICT_ACCEPTED_UNCONFIRMED;
}

}  // namespace

// --- From the proto

NetworkRule RuleFromProto(const v1::NetworkPolicy::Rule& rule) {
  return {.action = FromAction(rule.action()), .target = rule.target()};
}

CreateSpec CreateSpecFromProto(const v1::SandboxSpec& spec) {
  CreateSpec result;
  result.image = spec.image();
  result.snapshot_id = spec.snapshot_id();
  result.template_id = spec.template_id();
  result.image_user = spec.image_auth().username();
  result.image_password = spec.image_auth().password();
  result.entrypoint = {spec.entrypoint().begin(), spec.entrypoint().end()};
  for (const v1::EnvVar& variable : spec.env()) {
    result.env.emplace_back(variable.name(), variable.value());
  }
  result.metadata = FromMap(spec.metadata());
  if (spec.lifetime_case() == v1::SandboxSpec::kTtl) {
    result.ttl = FromDuration(spec.ttl());
  } else if (spec.lifetime_case() != v1::SandboxSpec::kNever) {
    result.ttl = kDefaultTtl;
  }
  result.resource_limits = FromMap(spec.resource_limits());
  result.resource_requests = FromMap(spec.resource_requests());
  result.platform = spec.platform();
  if (spec.has_network_policy()) {
    NetworkPolicy& policy = result.network_policy.emplace();
    policy.default_action = FromAction(spec.network_policy().default_action());
    for (const auto& rule : spec.network_policy().rules()) {
      policy.rules.push_back(RuleFromProto(rule));
    }
  }
  result.secure_access = spec.secure_access();
  for (const v1::Volume& volume : spec.volumes()) result.volumes.push_back(FromVolume(volume));
  result.extensions = FromMap(spec.extensions());
  return result;
}

SandboxFilter SandboxFilterFromProto(const v1::ListSandboxesRequest& request) {
  SandboxFilter filter;
  filter.metadata = FromMap(request.metadata());
  for (const int state : request.states()) filter.states.push_back(FromState(state));
  filter.request_id = request.request_id();
  return filter;
}

DiagnosticsKind DiagnosticsKindFromProto(v1::GetDiagnosticsRequest::Kind kind) {
  switch (kind) {
    case v1::GetDiagnosticsRequest::KIND_INSPECT:
      return DiagnosticsKind::kInspect;
    case v1::GetDiagnosticsRequest::KIND_EVENTS:
      return DiagnosticsKind::kEvents;
    case v1::GetDiagnosticsRequest::KIND_LOGS:
      return DiagnosticsKind::kLogs;
    default:
      return DiagnosticsKind::kSummary;
  }
}

// --- To the proto

v1::SandboxState SandboxStateToProto(SandboxState state) {
  switch (state) {
    case SandboxState::kPending:
      return v1::SANDBOX_STATE_PENDING;
    case SandboxState::kRunning:
      return v1::SANDBOX_STATE_RUNNING;
    case SandboxState::kPausing:
      return v1::SANDBOX_STATE_PAUSING;
    case SandboxState::kPaused:
      return v1::SANDBOX_STATE_PAUSED;
    case SandboxState::kResuming:
      return v1::SANDBOX_STATE_RESUMING;
    case SandboxState::kStopping:
      return v1::SANDBOX_STATE_STOPPING;
    case SandboxState::kTerminated:
      return v1::SANDBOX_STATE_TERMINATED;
    case SandboxState::kFailed:
      return v1::SANDBOX_STATE_FAILED;
    case SandboxState::kUnknown:
      break;
  }
  return v1::SANDBOX_STATE_UNKNOWN;
}

void SandboxToProto(const SandboxRecord& record, v1::Sandbox* proto) {
  proto->set_sandbox_id(record.id);
  proto->set_state(SandboxStateToProto(record.state));
  proto->set_upstream_state(record.state_text);
  proto->set_state_reason(record.state_reason);
  proto->set_state_message(record.state_message);
  proto->set_image(record.image);
  proto->set_snapshot_id(record.snapshot_id);
  for (const std::string& word : record.entrypoint) proto->add_entrypoint(word);
  for (const auto& [key, value] : record.metadata) {
    if (!IsOwnLabel(key)) (*proto->mutable_metadata())[key] = value;
  }
  proto->set_platform(record.platform);
  if (record.created_at) TimeToProto(*record.created_at, proto->mutable_created_at());
  if (record.expires_at) TimeToProto(*record.expires_at, proto->mutable_expires_at());
  proto->set_incarnation(IncarnationOf(record));
  proto->set_request_id(RequestIdOf(record));
}

void DeletionToProto(const Deletion& deletion, v1::DeleteSandboxResponse* proto) {
  proto->set_verdict(ToVerdict(deletion.verdict));
  for (const DeletionEvidence& evidence : deletion.evidence) {
    auto* entry = proto->add_evidence();
    entry->set_action(evidence.action);
    entry->set_upstream_status(evidence.status);
    entry->set_detail(evidence.detail);
    TimeToProto(evidence.at, entry->mutable_at());
  }
}

void ProbeToProto(const Probe& probe, v1::ProbeSandboxResponse* proto) {
  switch (probe.sight) {
    case Probe::Sight::kNotFound:
      proto->mutable_not_found();
      return;
    case Probe::Sight::kFailed:
      proto->mutable_failed()->set_reason(std::string(ReasonName(ReasonOf(probe.failure))));
      proto->mutable_failed()->set_message(std::string(probe.failure.message()));
      return;
    case Probe::Sight::kExists:
      break;
  }
  SandboxToProto(probe.record, proto->mutable_exists()->mutable_sandbox());
  switch (probe.daemon) {
    case Probe::Daemon::kNotAsked:
      break;
    case Probe::Daemon::kAnswers:
      proto->mutable_exists()->set_daemon(v1::ProbeSandboxResponse::DAEMON_STATE_ANSWERS);
      break;
    case Probe::Daemon::kSilent:
      proto->mutable_exists()->set_daemon(v1::ProbeSandboxResponse::DAEMON_STATE_SILENT);
      break;
  }
}

void PortUrlToProto(const PortUrl& port, v1::Endpoint* proto) {
  proto->set_url(port.url);
  proto->set_websocket_url(port.websocket_url);
  for (const auto& header : port.headers) {
    auto* entry = proto->add_headers();
    entry->set_name(header.name);
    entry->set_value(header.value);
  }
  proto->set_route(port.through_server ? v1::ENDPOINT_ROUTE_SERVER_PROXY
                                       : v1::ENDPOINT_ROUTE_DIRECT);
  if (port.expires_at) TimeToProto(*port.expires_at, proto->mutable_expires_at());
  for (const std::string& note : port.notes) proto->add_notes(note);
}

void PolicyToProto(const NetworkPolicyStatus& status, v1::NetworkPolicyStatus* proto) {
  proto->mutable_policy()->set_default_action(ToAction(status.policy.default_action));
  for (const NetworkRule& rule : status.policy.rules) {
    auto* entry = proto->mutable_policy()->add_rules();
    entry->set_action(ToAction(rule.action));
    entry->set_target(rule.target);
  }
  proto->set_enforcement(status.enforcement);
}

void SampleToProto(const ResourceSample& sample, v1::ResourceUsage* proto) {
  proto->set_cpu_count(sample.cpu_count);
  proto->set_cpu_used_percent(sample.cpu_used_percent);
  proto->set_memory_total_bytes(sample.memory_total_bytes);
  proto->set_memory_used_bytes(sample.memory_used_bytes);
  if (sample.at) TimeToProto(*sample.at, proto->mutable_at());
}

void SnapshotToProto(const SnapshotRecord& record, v1::Snapshot* proto) {
  proto->set_snapshot_id(record.id);
  proto->set_sandbox_id(record.sandbox_id);
  proto->set_name(record.name);
  proto->set_state(ToSnapshotState(record.state));
  proto->set_upstream_state(record.state_text);
  proto->set_state_message(record.state_message);
  if (record.created_at) TimeToProto(*record.created_at, proto->mutable_created_at());
}

}  // namespace bridge
