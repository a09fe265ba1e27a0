// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/sandbox_calls.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/sandbox_expiry.h"
#include "bridge/opensandbox/sandbox_lister.h"
#include "bridge/opensandbox/sandbox_probe.h"
#include "bridge/opensandbox/sandbox_reader.h"
#include "bridge/opensandbox/snapshots.h"
#include "bridge/service/sandbox_convert.h"
#include "bridge/service/sandbox_validate.h"
#include "bridge/service/target.h"
#include "bridge/service/time_convert.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

// How a pause or a resume ended, as its answer.
template <typename Request, typename Response>
absl::Status AnswerTransition(const Request& request, const absl::StatusOr<Transition>& transition,
                              Response& response) {
  if (!transition.ok()) return About(request, transition.status());
  SandboxToProto(transition->record, response.mutable_sandbox());
  response.set_settled(transition->settled);
  response.set_already(transition->already);
  return absl::OkStatus();
}

}  // namespace

Task<absl::Status> HandleCreate(Sandboxes& sandboxes, Unary& call,
                                const v1::CreateSandboxRequest& request,
                                v1::CreateSandboxResponse& response) {
  CO_RETURN_IF_ERROR(CheckCreateSandbox(request));
  CO_ASSIGN_OR_RETURN(const absl::Duration ready_timeout, WaitOf(request));
  if (!request.spec().snapshot_id().empty()) {
    CO_RETURN_IF_ERROR(
        co_await CheckSnapshot(sandboxes.client, call.context(), request.spec().snapshot_id()));
  }
  call.set_waiting_for("the sandbox to be usable");
  CO_ASSIGN_OR_RETURN(
      const CreatedSandbox created,
      co_await sandboxes.creator.Create(call.context(), CreateSpecFromProto(request.spec()),
                                        request.request_id(), ready_timeout));
  SandboxToProto(created.record, response.mutable_sandbox());
  response.set_adopted(created.adopted);
  response.set_ttl_clamped(created.ttl_clamped);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleGet(Sandboxes& sandboxes, Unary& call,
                             const v1::GetSandboxRequest& request, v1::Sandbox& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  call.set_waiting_for("the record");
  const absl::StatusOr<Reading> reading =
      co_await ReadSandbox(sandboxes.client, call.context(), target.sandbox_id, target.incarnation);
  if (!reading.ok()) co_return About(request, reading.status());
  SandboxToProto(reading->record, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleList(Sandboxes& sandboxes, Unary& call,
                              const v1::ListSandboxesRequest& request,
                              v1::ListSandboxesResponse& response) {
  CO_RETURN_IF_ERROR(CheckListSandboxes(request));
  CO_ASSIGN_OR_RETURN(const int page_size, CheckPageSize("page_size", request.page_size()));
  call.set_waiting_for("the list");
  SandboxListRequest wanted{.filter = SandboxFilterFromProto(request),
                            .page_size = page_size,
                            .page_token = request.page_token(),
                            .skip = request.skip()};
  CO_ASSIGN_OR_RETURN(const SandboxList list,
                      co_await ListSandboxes(sandboxes.client, call.context(), std::move(wanted)));
  for (const SandboxRecord& record : list.sandboxes) {
    SandboxToProto(record, response.add_sandboxes());
  }
  response.set_next_page_token(list.next_page_token);
  if (list.total) response.set_total_size(*list.total);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleDelete(Sandboxes& sandboxes, Unary& call,
                                const v1::DeleteSandboxRequest& request,
                                v1::DeleteSandboxResponse& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(const absl::Duration wait, WaitOf(request));
  call.set_waiting_for("the proof that the sandbox is gone");
  const absl::StatusOr<Deletion> deletion = co_await sandboxes.remover.Delete(
      call.context(), target.sandbox_id, target.incarnation, wait);
  if (!deletion.ok()) co_return About(request, deletion.status());
  DeletionToProto(*deletion, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleProbe(Sandboxes& sandboxes, Unary& call,
                               const v1::ProbeSandboxRequest& request,
                               v1::ProbeSandboxResponse& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  call.set_waiting_for("a look at the sandbox");
  CO_ASSIGN_OR_RETURN(
      const Probe probe,
      co_await ProbeSandbox(sandboxes.client, sandboxes.finder, call.context(), target.sandbox_id,
                            target.incarnation, request.check_daemon()));
  ProbeToProto(probe, &response);
  co_return absl::OkStatus();
}

Task<absl::Status> HandleSetExpiration(Sandboxes& sandboxes, Unary& call,
                                       const v1::SetExpirationRequest& request,
                                       v1::SetExpirationResponse& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  CO_RETURN_IF_ERROR(CheckSetExpiration(request));
  ExpiryRequest wanted = {.never_shorten = request.never_shorten()};
  if (request.has_ttl()) {
    CO_ASSIGN_OR_RETURN(wanted.ttl,
                        CheckDuration("ttl", request.ttl(), absl::ZeroDuration(), kMaxTtl));
  }
  call.set_waiting_for("the expiry to be stored");
  const absl::StatusOr<Expiry> expiry = co_await SetExpiry(
      sandboxes.client, call.context(), target.sandbox_id, target.incarnation, wanted);
  if (!expiry.ok()) co_return About(request, expiry.status());
  if (expiry->expires_at) TimeToProto(*expiry->expires_at, response.mutable_expires_at());
  response.set_clamped(expiry->clamped);
  response.set_unchanged(expiry->unchanged);
  co_return absl::OkStatus();
}

Task<absl::Status> HandlePause(Sandboxes& sandboxes, Unary& call,
                               const v1::PauseSandboxRequest& request,
                               v1::PauseSandboxResponse& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(const absl::Duration wait, WaitOf(request));
  call.set_waiting_for("the sandbox to be paused");
  const absl::StatusOr<Transition> paused =
      co_await sandboxes.pauser.Pause(call.context(), target.sandbox_id, target.incarnation, wait);
  co_return AnswerTransition(request, paused, response);
}

Task<absl::Status> HandleResume(Sandboxes& sandboxes, Unary& call,
                                const v1::ResumeSandboxRequest& request,
                                v1::ResumeSandboxResponse& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  CO_ASSIGN_OR_RETURN(const absl::Duration wait, WaitOf(request));
  call.set_waiting_for("the sandbox to be usable");
  const absl::StatusOr<Transition> resumed =
      co_await sandboxes.pauser.Resume(call.context(), target.sandbox_id, target.incarnation, wait);
  co_return AnswerTransition(request, resumed, response);
}

Task<absl::Status> HandleUpdateMetadata(Sandboxes& sandboxes, Unary& call,
                                        const v1::UpdateMetadataRequest& request,
                                        v1::Sandbox& response) {
  CO_ASSIGN_OR_RETURN(const SandboxTarget target, TargetOf(request));
  CO_RETURN_IF_ERROR(CheckUpdateMetadata(request));
  call.set_waiting_for("the metadata to be stored");
  const absl::Status allowed = co_await CheckSandbox(sandboxes.client, call.context(),
                                                     target.sandbox_id, target.incarnation);
  if (!allowed.ok()) co_return About(request, allowed);
  std::map<std::string, std::string> set(request.set().begin(), request.set().end());
  std::vector<std::string> removed(request.delete_().begin(), request.delete_().end());
  const absl::StatusOr<SandboxRecord> record = co_await sandboxes.client.PatchMetadata(
      call.context(), target.sandbox_id, std::move(set), std::move(removed));
  if (!record.ok()) co_return About(request, record.status());
  SandboxToProto(*record, &response);
  co_return absl::OkStatus();
}

}  // namespace bridge
