// SPDX-License-Identifier: Apache-2.0
//
// tests/server/raw_call.h — calls by method name with bytes, for services whose stubs Debian does
// not ship (health, reflection) and for methods that do not exist.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

namespace bridge::testing {

inline grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

inline std::string FromBuffer(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// One request, the first answer (a stream that goes on is cancelled).
class RawCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
          const std::string& request)
      : stub_(channel), request_(ToBuffer(request)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    stub_.PrepareBidiStreamingCall(&context_, method, grpc::StubOptions(), this);
    StartWriteLast(&request_, grpc::WriteOptions());
    StartRead(&response_);
    StartCall();
  }

  // The first message and how the call ended (CANCELLED when there was one).
  std::pair<std::string, grpc::Status> Wait() {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [this] { return done_; });
    return {answer_, status_};
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    answer_ = FromBuffer(response_);
    context_.TryCancel();
  }
  void OnDone(const grpc::Status& status) override {
    std::lock_guard<std::mutex> lock(mu_);
    status_ = status;
    done_ = true;
    changed_.notify_all();
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, response_;
  std::string answer_;
  std::mutex mu_;
  std::condition_variable changed_;
  bool done_ = false;
  grpc::Status status_;
};

// grpc.health.v1: 1 SERVING, 2 NOT_SERVING, 0 no such service.
inline int HealthOf(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  std::string request;
  if (!service.empty())
    request = "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
  RawCall call(channel, "/grpc.health.v1.Health/Check", request);
  const std::string answer = call.Wait().first;
  return answer.size() == 2 && answer[0] == 0x08 ? answer[1] : 0;
}

// The answer of server reflection to "which services are there?", as bytes.
inline std::string ListedServices(const std::shared_ptr<grpc::Channel>& channel) {
  RawCall call(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
               std::string("\x3a\x01*"));
  return call.Wait().first;
}

}  // namespace bridge::testing
