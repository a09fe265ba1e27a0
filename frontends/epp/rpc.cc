// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/rpc.h"

#include <pthread.h>

#include "absl/time/clock.h"
#include "bridge/base/error.h"
#include "bridge/service/status.h"
#include "fmt/format.h"
#include "frontends/epp/errors.h"

namespace bridge::epp {

CompletionThread::CompletionThread() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "epp-grpc");
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) static_cast<Completion*>(tag)->Complete(ok);
  });
}

CompletionThread::~CompletionThread() {
  queue_.Shutdown();
  thread_.join();
}

void CallScope::Cancel() {
  for (grpc::ClientContext* context : contexts_) context->TryCancel();
  stop_.Cancel();
}

RpcContext::RpcContext(CallScope& scope, absl::Duration timeout) : scope_(scope) {
  if (timeout < absl::Hours(24 * 365)) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  if (scope.authorization_.has_value())
    context_.AddMetadata("authorization", *scope.authorization_);
  scope_.contexts_.insert(&context_);
  if (scope_.cancelled()) context_.TryCancel();
}

absl::Status RpcContext::Unreachable(const std::string& message) const {
  if (scope_.remote_) return RemoteBridgeUnreachable(message);
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE, message);
}

absl::Status RpcContext::ToStatus(const grpc::Status& status) const {
  if (status.ok()) return absl::OkStatus();
  const bool detailed = !status.error_details().empty();
  if (!detailed && status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return Unreachable(
        fmt::format("{} cannot be reached: {}", scope_.peer_, status.error_message()));
  }
  // The one word that gRPC's server has for a call that meets its end.
  if (!detailed && status.error_code() == grpc::StatusCode::CANCELLED && !cancelled_ &&
      !scope_.cancelled()) {
    return Unreachable(fmt::format(
        "{}, or a proxy before it, ended the call without a reason; it may be shutting down",
        scope_.peer_));
  }
  const absl::Status told = FromGrpcStatus(status);
  return scope_.remote_ ? ByRemoteBridge(told) : told;
}

}  // namespace bridge::epp
