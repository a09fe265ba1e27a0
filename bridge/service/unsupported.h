// SPDX-License-Identifier: Apache-2.0
//
// service/unsupported.h — the typed answer to what this build does not serve.
//
// UnsupportedMethods answers every method that no registered service has: a service that is not
// linked in, or one of a newer API. Unsupported() is for a method of a registered service. Both say
// UNIMPLEMENTED with UNSUPPORTED_FEATURE and metadata "feature", never gRPC's bare words.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "bridge/service/call.h"
#include "bridge/service/call_host.h"
#include "grpcpp/generic/async_generic_service.h"

namespace bridge {

// `feature`: a word of docs/capabilities.md, or the method's name.
absl::Status UnsupportedFeature(std::string_view feature);

template <class C>
C* Unsupported(CallHost& host, EventLoop& loop, grpc::CallbackServerContext* context,
               const Method& method, std::string_view feature) {
  return Start<C>(host, loop, context, method,
                  [feature = std::string(feature)](C&) -> Task<absl::Status> {
                    co_return UnsupportedFeature(feature);
                  });
}

// Give it to ServerBuilder::RegisterCallbackGenericService. Any thread.
class UnsupportedMethods final : public grpc::CallbackGenericService {
 public:
  UnsupportedMethods(CallHost& host, EventLoop& loop) : host_(host), loop_(loop) {}
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  CallHost& host_;
  EventLoop& loop_;
};

}  // namespace bridge
