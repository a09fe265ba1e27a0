// SPDX-License-Identifier: Apache-2.0
//
// epp/rpc.h — calls to the bridge as tasks on the plugin's event loop.
//
// One thread waits on gRPC's completion queue and does nothing but post to the loop, so that all
// state of a call is the loop's. An operation that was begun is never abandoned, because gRPC holds
// pointers into the task's frame: cancelling means ClientContext::TryCancel(), after which every
// operation completes soon. So each wait here ends, and none needs a flag.
//
// All failures arrive as absl::Status with the bridge's reason (bridge/base/error.h).
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/task.h"

namespace bridge::epp {

// The thread that waits for gRPC.
class CompletionThread {
 public:
  CompletionThread();
  // After the last operation has completed.
  ~CompletionThread();

  grpc::CompletionQueue& queue() { return queue_; }

 private:
  grpc::CompletionQueue queue_;
  std::thread thread_;
};

// One operation in flight: give tag() to gRPC and await Done() at once.
class Completion {
 public:
  explicit Completion(EventLoop& loop) : loop_(loop) {}
  void* tag() { return this; }
  Waiter::Op Done() { return done_.WaitUncancellable(); }
  void Complete(bool ok) {  // the completion thread
    loop_.Post([this, ok] { done_.Notify(ok); });
  }

 private:
  EventLoop& loop_;
  Waiter done_;
};

// What a call of the host does at the bridge, cancelled together. Loop thread only.
class CallScope {
 public:
  CallScope(EventLoop& loop, grpc::CompletionQueue& queue) : loop_(loop), queue_(queue) {}
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  // Who the calls go to, whether that is another process, and with which right. Before the first
  // call.
  void SetPeer(std::string name, bool remote, std::optional<std::string> authorization) {
    peer_ = std::move(name);
    remote_ = remote;
    authorization_ = std::move(authorization);
  }

  // Sticky. Resumes the task that waits for `stop()`, if any: the caller's last statement.
  void Cancel();
  bool cancelled() const { return stop_.cancelled(); }
  // Of the call's task: ends its sleeps.
  CancelSource& stop() { return stop_; }

  EventLoop& loop() { return loop_; }
  grpc::CompletionQueue& queue() { return queue_; }

 private:
  friend class RpcContext;
  EventLoop& loop_;
  grpc::CompletionQueue& queue_;
  std::string peer_ = "the bridge";
  bool remote_ = false;
  std::optional<std::string> authorization_;
  CancelSource stop_;
  std::set<grpc::ClientContext*> contexts_;
};

// A ClientContext of a scope. A `timeout` that is infinite sets no deadline.
class RpcContext {
 public:
  RpcContext(CallScope& scope, absl::Duration timeout);
  ~RpcContext() { scope_.contexts_.erase(&context_); }
  RpcContext(const RpcContext&) = delete;
  RpcContext& operator=(const RpcContext&) = delete;

  grpc::ClientContext* get() { return &context_; }
  void TryCancel() {
    cancelled_ = true;
    context_.TryCancel();
  }
  // A failure as the bridge told it, or as gRPC did when the bridge could not.
  absl::Status ToStatus(const grpc::Status& status) const;

 private:
  absl::Status Unreachable(const std::string& message) const;

  CallScope& scope_;
  grpc::ClientContext context_;
  bool cancelled_ = false;
};

// One request, one answer:
//   co_await CallUnary(scope, *stub, &Stub::PrepareAsyncGetSandbox, request, absl::Seconds(30))
template <class Stub, class Request, class Response>
Task<absl::StatusOr<Response>> CallUnary(
    CallScope& scope, Stub& stub,
    std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (Stub::*prepare)(
        grpc::ClientContext*, const Request&, grpc::CompletionQueue*),
    Request request, absl::Duration timeout) {
  RpcContext context(scope, timeout);
  Completion finished(scope.loop());
  Response response;
  grpc::Status status;
  auto reader = (stub.*prepare)(context.get(), request, &scope.queue());
  reader->StartCall();
  reader->Finish(&response, &status, finished.tag());
  (void)co_await finished.Done();
  if (!status.ok()) co_return context.ToStatus(status);
  co_return response;
}

// One request, many answers. Start() once, Read() until it yields false, Finish() once.
template <class Response>
class ServerStream {
 public:
  ServerStream(CallScope& scope, absl::Duration timeout)
      : queue_(scope.queue()), context_(scope, timeout), done_(scope.loop()) {}

  template <class Stub, class Request>
  Task<void> Start(Stub& stub,
                   std::unique_ptr<grpc::ClientAsyncReader<Response>> (Stub::*prepare)(
                       grpc::ClientContext*, const Request&, grpc::CompletionQueue*),
                   const Request& request) {
    reader_ = (stub.*prepare)(context_.get(), request, &queue_);
    reader_->StartCall(done_.tag());
    (void)co_await done_.Done();
  }
  Waiter::Op Read(Response* message) {
    reader_->Read(message, done_.tag());
    return done_.Done();
  }
  Task<absl::Status> Finish() {
    grpc::Status status;
    reader_->Finish(&status, done_.tag());
    (void)co_await done_.Done();
    co_return context_.ToStatus(status);
  }
  void TryCancel() { context_.TryCancel(); }

 private:
  grpc::CompletionQueue& queue_;
  RpcContext context_;
  Completion done_;
  std::unique_ptr<grpc::ClientAsyncReader<Response>> reader_;
};

// Many requests, one answer. Start() once, Write() while it yields true, Finish() once.
template <class Request, class Response>
class ClientStream {
 public:
  ClientStream(CallScope& scope, absl::Duration timeout)
      : queue_(scope.queue()), context_(scope, timeout), done_(scope.loop()) {}

  template <class Stub>
  Task<void> Start(Stub& stub, std::unique_ptr<grpc::ClientAsyncWriter<Request>> (Stub::*prepare)(
                                   grpc::ClientContext*, Response*, grpc::CompletionQueue*)) {
    writer_ = (stub.*prepare)(context_.get(), &response_, &queue_);
    writer_->StartCall(done_.tag());
    (void)co_await done_.Done();
  }
  // `message` must live until the task resumes. False: the call is over, Finish() says why.
  Waiter::Op Write(const Request& message) {
    writer_->Write(message, done_.tag());
    return done_.Done();
  }
  // Not complete: the call is cut, so that the other side drops what it has.
  Task<absl::StatusOr<Response>> Finish(bool complete) {
    grpc::Status status;
    if (complete) {
      writer_->WritesDone(done_.tag());
      (void)co_await done_.Done();
    } else {
      context_.TryCancel();
    }
    writer_->Finish(&status, done_.tag());
    (void)co_await done_.Done();
    if (!status.ok()) co_return context_.ToStatus(status);
    co_return std::move(response_);
  }

 private:
  grpc::CompletionQueue& queue_;
  RpcContext context_;
  Completion done_;
  Response response_;
  std::unique_ptr<grpc::ClientAsyncWriter<Request>> writer_;
};

// Both ways at once: one task reads while another writes.
template <class Request, class Response>
class BidiStream {
 public:
  BidiStream(CallScope& scope, absl::Duration timeout)
      : queue_(scope.queue()),
        context_(scope, timeout),
        read_(scope.loop()),
        written_(scope.loop()) {}

  template <class Stub>
  Task<void> Start(Stub& stub, std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> (
                                   Stub::*prepare)(grpc::ClientContext*, grpc::CompletionQueue*)) {
    stream_ = (stub.*prepare)(context_.get(), &queue_);
    stream_->StartCall(read_.tag());
    (void)co_await read_.Done();
  }
  Waiter::Op Read(Response* message) {
    stream_->Read(message, read_.tag());
    return read_.Done();
  }
  Waiter::Op Write(const Request& message) {
    stream_->Write(message, written_.tag());
    return written_.Done();
  }
  // After both tasks have ended.
  Task<absl::Status> Finish() {
    grpc::Status status;
    stream_->Finish(&status, read_.tag());
    (void)co_await read_.Done();
    co_return context_.ToStatus(status);
  }
  void TryCancel() { context_.TryCancel(); }

 private:
  grpc::CompletionQueue& queue_;
  RpcContext context_;
  Completion read_;
  Completion written_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> stream_;
};

}  // namespace bridge::epp
