// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/idle_tick.h"

#include <memory>

#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace bridge {
namespace {

struct Call {
  grpc::ClientContext context;
  grpc::ByteBuffer request, response;
};

void Tick(grpc::GenericStub& stub) {
  auto call = std::make_shared<Call>();
  const grpc::Slice empty("");  // a ByteBuffer without a slice is no valid message
  call->request = grpc::ByteBuffer(&empty, 1);
  stub.UnaryCall(&call->context, "/idle/Tick", grpc::StubOptions(), &call->request, &call->response,
                 [call](const grpc::Status&) {});
}

}  // namespace

// No credentials make a lame channel.
IdleTick::IdleTick(absl::Duration period)
    : thread_("idle_tick", period,
              [stub = std::make_shared<grpc::GenericStub>(grpc::CreateChannel("idle", nullptr))] {
                Tick(*stub);
              }) {}

}  // namespace bridge
