// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/sandbox_calls.h"

#include <fmt/format.h>

#include "frontends/cli/sandbox_options.h"
#include "frontends/cli/text.h"

namespace bridge::cli {
namespace {

using sandbox::bridge::v1::CreateSandboxRequest;
using sandbox::bridge::v1::CreateSandboxResponse;
using sandbox::bridge::v1::DeleteSandboxRequest;
using sandbox::bridge::v1::DeleteSandboxResponse;
using sandbox::bridge::v1::SandboxService;

// The defaults of CreateSandboxRequest.ready_timeout and DeleteSandboxRequest.wait_for_proof.
constexpr absl::Duration kReadyTimeout = absl::Seconds(60);
constexpr absl::Duration kWaitForProof = absl::Seconds(20);

}  // namespace

grpc::Status CreateSandbox(Context& context, const CreateSandboxRequest& request,
                           CreateSandboxResponse* response) {
  const absl::Duration ready = request.has_ready_timeout()
                                   ? absl::Seconds(request.ready_timeout().seconds() + 1)
                                   : kReadyTimeout;
  return Call(context, context.bridge.sandboxes(), &SandboxService::Stub::CreateSandbox, request,
              response, ready + kUnaryTimeout);
}

grpc::Status DeleteSandbox(Context& context, const std::string& sandbox_id,
                           std::optional<absl::Duration> wait_for_proof,
                           DeleteSandboxResponse* response) {
  DeleteSandboxRequest request;
  request.set_sandbox_id(sandbox_id);
  if (wait_for_proof) SetDuration(*wait_for_proof, *request.mutable_wait_for_proof());
  return Call(context, context.bridge.sandboxes(), &SandboxService::Stub::DeleteSandbox, request,
              response, wait_for_proof.value_or(kWaitForProof) + kUnaryTimeout);
}

bool Discard(Context& context, const std::string& sandbox_id, DeleteSandboxResponse* response) {
  const grpc::Status status = DeleteSandbox(context, sandbox_id, {}, response);
  if (!status.ok()) FailCall(context, status);
  if (!status.ok() || !IsGone(*response)) {
    context.streams.Note(fmt::format("sandbox {} may be left behind; remove it with: sbx rm {}",
                                     Printable(sandbox_id), Printable(sandbox_id)));
  }
  return status.ok();
}

bool IsGone(const DeleteSandboxResponse& response) {
  return response.verdict() == DeleteSandboxResponse::VERDICT_CONFIRMED_GONE ||
         response.verdict() == DeleteSandboxResponse::VERDICT_ALREADY_GONE;
}

Json CreateJson(const CreateSandboxResponse& response) {
  Json json = ToJson(response.sandbox());
  json["adopted"] = response.adopted();
  json["ttl_clamped"] = response.ttl_clamped();
  return json;
}

Json DeleteJson(const std::string& sandbox_id, const DeleteSandboxResponse& response) {
  Json json = {{"sandbox_id", sandbox_id}};
  json.update(ToJson(response));
  return json;
}

}  // namespace bridge::cli
