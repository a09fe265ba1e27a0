// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/malformed.h"

#include <memory>
#include <utility>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/service/status.h"
#include "grpcpp/support/server_interceptor.h"

namespace bridge {
namespace {

using grpc::experimental::InterceptionHookPoints;

// Nobody but gRPC ends a call with UNIMPLEMENTED and nothing else: ours say which feature.
bool IsBareRefusal(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNIMPLEMENTED && status.error_message().empty() &&
         status.error_details().empty();
}

class Explainer final : public grpc::experimental::Interceptor {
 public:
  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS) &&
        IsBareRefusal(batch->GetSendStatus())) {
      batch->ModifySendStatus(ToGrpcStatus(MalformedMessage()));
    }
    batch->Proceed();
  }
};

class ExplainerFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo*) override {
    return new Explainer;
  }
};

}  // namespace

absl::Status MalformedMessage() {
  return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT,
                   "the bytes of a message are none of this method: a text field is not UTF-8, or "
                   "they were made for another API or damaged on their way");
}

void ExplainMalformedRequests(grpc::ServerBuilder& builder) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<ExplainerFactory>());
  builder.experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace bridge
