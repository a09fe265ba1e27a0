// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/idle_tick.h"

#include <memory>

#include "absl/synchronization/notification.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace bridge {
namespace {

// Waits for its end: what a call holds of the channel must be let go here. The last hold takes down
// gRPC's threads that run callbacks and their queue, and one of these threads would go on to read
// what it took down itself.
void Tick(grpc::GenericStub& stub) {
  grpc::ClientContext context;
  const grpc::Slice empty("");  // a ByteBuffer without a slice is no valid message
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer response;
  absl::Notification done;
  stub.UnaryCall(&context, "/idle/Tick", grpc::StubOptions(), &request, &response,
                 [&done](const grpc::Status&) { done.Notify(); });
  done.WaitForNotification();
}

}  // namespace

// No credentials make a lame channel.
IdleTick::IdleTick(absl::Duration period)
    : thread_("idle_tick", period,
              [stub = std::make_shared<grpc::GenericStub>(grpc::CreateChannel("idle", nullptr))] {
                Tick(*stub);
              }) {}

}  // namespace bridge
