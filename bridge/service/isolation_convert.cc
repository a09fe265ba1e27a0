// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/isolation_convert.h"

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/isolation_script.h"
#include "bridge/service/exec_convert.h"
#include "bridge/service/time_convert.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr absl::Duration kMaxTime = absl::Hours(24 * 365);
constexpr int kMaxPlaces = 64;

}  // namespace

absl::StatusOr<IsolatedSessionSpec> SessionSpecFromProto(
    const v1::OpenIsolatedSessionRequest& request) {
  IsolatedSessionSpec spec;
  RETURN_IF_ERROR(CheckPath("workspace_path", request.workspace_path()));
  spec.workspace_path = spec.workspace_source = request.workspace_path();
  if (!request.workspace_source_path().empty()) {
    RETURN_IF_ERROR(CheckPath("workspace_source_path", request.workspace_source_path()));
    spec.workspace_source = request.workspace_source_path();
  }
  if (request.has_user()) {
    RETURN_IF_ERROR(CheckUserIds("user", request.user()));
    spec.user = UserFromIds(request.user());
  }
  spec.share_network = request.share_network();
  if (request.extra_writable_size() > kMaxPlaces) {
    return InvalidField("extra_writable", "must be at most 64 directories");
  }
  for (int i = 0; i < request.extra_writable_size(); ++i) {
    RETURN_IF_ERROR(CheckPath(ElementField("extra_writable", static_cast<size_t>(i)),
                              request.extra_writable(i)));
    spec.extra_writable.push_back(request.extra_writable(i));
  }
  if (request.binds_size() > kMaxPlaces) {
    return InvalidField("binds", "must be at most 64 directories");
  }
  for (int i = 0; i < request.binds_size(); ++i) {
    const auto& bind = request.binds(i);
    const auto at = static_cast<size_t>(i);
    RETURN_IF_ERROR(CheckPath(ElementField("binds", at, "source"), bind.source()));
    RETURN_IF_ERROR(CheckPath(ElementField("binds", at, "destination"), bind.destination()));
    spec.binds.push_back({bind.source(), bind.destination(), bind.read_only()});
  }
  if (request.has_idle_timeout()) {
    ASSIGN_OR_RETURN(spec.idle_timeout, CheckDuration("idle_timeout", request.idle_timeout(),
                                                      absl::Seconds(1), kMaxTime));
  }
  return spec;
}

absl::StatusOr<IsolationClient::RunSpec> RunSpecFromProto(
    const v1::RunInIsolatedSessionRequest& request) {
  IsolationClient::RunSpec spec;
  RETURN_IF_ERROR(CheckId("session_id", request.session_id()));
  if (request.script().empty()) return InvalidField("script", "must not be empty");
  RETURN_IF_ERROR(CheckText("script", request.script(), kMaxSessionScriptBytes));
  spec.script = request.script();
  RETURN_IF_ERROR(CheckEnv("env", request.env()));
  for (int i = 0; i < request.env_size(); ++i) {
    if (IsShellsOwnVariable(request.env(i).name())) {
      return InvalidField(ElementField("env", static_cast<size_t>(i), "name"),
                          "is a variable that bash keeps to itself");
    }
    spec.env.emplace_back(request.env(i).name(), request.env(i).value());
  }
  if (request.has_timeout()) {
    ASSIGN_OR_RETURN(spec.timeout,
                     CheckDuration("timeout", request.timeout(), absl::Milliseconds(1), kMaxTime));
  }
  RETURN_IF_ERROR(
      CheckEnum("fidelity", request.fidelity(), v1::Fidelity_IsValid(request.fidelity())));
  if (request.fidelity() == v1::FIDELITY_BYTES) {
    return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                     "the daemon tells a session's output as lines; ask for BEST or LINES",
                     {.metadata = {{"feature", "isolation.bytes"}}});
  }
  return spec;
}

void IsolationToProto(const IsolationInfo& info, v1::Isolation* proto) {
  proto->set_available(info.available);
  proto->set_isolator(info.isolator);
  proto->set_version(info.version);
  proto->set_setpriv_available(info.setpriv);
  proto->set_user_namespace_available(info.user_namespace);
  proto->set_detail(info.detail);
}

void SessionToProto(const IsolatedSession& session, v1::IsolatedSession* proto) {
  proto->set_session_id(session.id);
  proto->set_workspace_path(session.workspace_path);
  proto->set_workspace_source_path(session.workspace_source);
  if (session.uid) proto->mutable_user()->set_uid(*session.uid);
  if (session.uid && session.gid) proto->mutable_user()->set_gid(*session.gid);
  if (session.created_at != absl::InfinitePast()) {
    TimeToProto(session.created_at, proto->mutable_created_at());
  }
}

}  // namespace bridge
