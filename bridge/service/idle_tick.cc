// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/idle_tick.h"

#include <pthread.h>
#include <signal.h>

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

IdleTick::IdleTick(absl::Duration period) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the main thread's business
  thread_ = std::thread([this, period] { Run(period); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

IdleTick::~IdleTick() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void IdleTick::Run(absl::Duration period) {
  pthread_setname_np(pthread_self(), "idle_tick");
  // No credentials make a lame channel.
  grpc::GenericStub stub(grpc::CreateChannel("idle", nullptr));
  std::unique_lock<std::mutex> lock(mu_);
  while (!changed_.wait_for(lock, absl::ToChronoNanoseconds(period), [this] { return stop_; })) {
    lock.unlock();
    Tick(stub);
    lock.lock();
  }
}

}  // namespace bridge
