// SPDX-License-Identifier: Apache-2.0
//
// service/call.h — gRPC's callback reactors as coroutines.
//
// One object is one RPC, its handler one task on one event loop:
//
//   return Start<Writer<ExecEvent>>(host, loop, context, kExecute,
//                                   [this, request](auto& call) { return Execute(call, *request);
//                                   });
//   Task<absl::Status> Execute(Writer<ExecEvent>& call, const ExecuteRequest& request);
//
// What the handler returns becomes the status of the RPC; Finish is called in exactly one place.
// Request and unary response belong to gRPC and live until the handler has returned.
//
// Threads: a handler runs on its loop only. gRPC's threads do nothing but post there.
// Lifetime: the task, gRPC (until OnDone) and every posted closure own the object together; the
// last one deletes it, on whatever thread. The task's locals are gone by then. Cancellation (client
// gone, deadline, drain, a message that cannot be parsed) is sticky: Read() yields null, waits that
// may be abandoned yield false, the handler returns call.Interrupted() or whatever it knows better.
// Write() is never abandoned, because gRPC may hold the message's address; a cancelled call
// completes it with false.
#pragma once

#include <atomic>
#include <cassert>
#include <coroutine>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/service/call_host.h"
#include "bridge/service/method.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"

namespace bridge {

// The part of a call that does not depend on its messages.
class CallBase : public CallHost::Entry {
 public:
  EventLoop& loop() { return loop_; }
  // What upstream requests need; copy it into tasks that outlive the call and give them a deadline
  // of their own. Its deadline lies a little before the caller's, so that the better answer ("no
  // connection to 10.0.0.7") is made in time to reach him.
  const CallContext& context() const { return context_; }

  // From here on loop thread only.

  Interruption interruption() const { return interruption_; }
  // The status of a call that was cancelled or is too late: CANCELLED, DEADLINE_EXCEEDED or
  // DRAINING, with what it waited for. CANCELLED when it was not interrupted.
  absl::Status Interrupted() const;
  // Counts memory that the call holds for long (a batch, a queue); negative gives back.
  // Errors: TOO_MANY_STREAMS.
  absl::Status Hold(int64_t bytes) { return ticket_.Hold(bytes); }

 protected:
  CallBase(CallHost& host, EventLoop& loop, const Method& method)
      : Entry(host, method.name),
        loop_(loop),
        method_(method),
        alarm_(loop, &CallBase::OnAlarm, this) {}

  // Any thread. False: refused, and Conclude() has been called.
  bool Admit(const grpc::CallbackServerContext& context);
  // Loop thread, before the handler.
  void ArmDeadline();
  bool concluded() const { return concluded_; }
  // The end of every call, exactly once: logs, counts, finishes. `status` is the handler's.
  void Conclude(absl::Status status);
  virtual void Finish(grpc::Status status) = 0;

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Leave();
    delete this;
  }
  // Any thread that knows of an owner. The object lives until `f` has run.
  template <class F>
  void Post(F f) {
    Ref();
    PostOwned(std::move(f));
  }
  void Interrupt(Interruption why) final;

  CancelSource cancel_;

 private:
  // Runs `f` on the loop and then drops one reference, which the caller has taken.
  template <class F>
  void PostOwned(F f) {
    loop_.Post([this, f = std::move(f)]() mutable {
      f();
      Unref();
    });
  }
  bool TryRef();
  static void OnAlarm(void* self);
  absl::Status Settled(absl::Status status) const;
  bool MustLinger() const;

  EventLoop& loop_;
  const Method method_;
  CallContext context_;
  CallHost::Ticket ticket_;
  Timer alarm_;
  absl::Duration deadline_ = absl::InfiniteDuration();  // in the loop's Now(); when to answer
  absl::Duration allowed_ = absl::InfiniteDuration();  // from the start to the deadline, for people
  bool concluded_ = false;
  std::optional<grpc::Status> lingering_;  // to finish with, when alarm_ says so
  Interruption interruption_ = Interruption::kNone;
  const char* interrupted_at_ = "";
  std::atomic<int> refs_{2};  // the task and gRPC
};

// What all kinds of reactors have in common.
template <class Reactor>
class Call : public Reactor, public CallBase {
 public:
  Call(CallHost& host, EventLoop& loop, const Method& method) : CallBase(host, loop, method) {}

  // Use Start() below. Any thread; the reactor is gRPC's from now on.
  template <class Self, class Handler>
  static void Launch(Self* self, const grpc::CallbackServerContext& context, Handler handler) {
    if (!self->Admit(context)) {
      self->Unref();  // the task that will not be
      return;
    }
    self->loop().Post([self, handler = std::move(handler)]() mutable {
      self->ArmDeadline();
      Spawn(
          &self->cancel_,
          [self, handler = std::move(handler)]() mutable -> Task<void> {
            absl::Status status = co_await handler(*self);
            // Nothing of gRPC's may be in flight when Finish is called.
            if constexpr (requires { self->Written(); }) (void)co_await self->Written();
            self->Conclude(std::move(status));
          },
          [self] { self->Unref(); });
    });
  }

 private:
  void Finish(grpc::Status status) final { Reactor::Finish(std::move(status)); }
  void OnCancel() final { Interrupt(Interruption::kCancelled); }
  void OnDone() final { Unref(); }
};

// Makes the call and runs `handler`, a callable C& → Task<absl::Status>, on `loop`. Returns the
// reactor for gRPC. The callable lives until its task has ended. A refused call never reaches it.
template <class C, class Handler>
C* Start(CallHost& host, EventLoop& loop, grpc::CallbackServerContext* context,
         const Method& method, Handler handler) {
  assert(method.streaming == C::kStreaming);
  C* call = new C(host, loop, method);
  C::Launch(call, *context, std::move(handler));
  return call;
}

// ---- The four kinds.

class Unary final : public Call<grpc::ServerUnaryReactor> {
 public:
  static constexpr bool kStreaming = false;
  using Call::Call;
};

enum class WriteHint {
  kFlush,  // goes out now
  kMore,   // another write follows at once: may wait for it in the send buffer
};

// The writing half of a stream, mixed into Writer and Bidi. Loop thread only.
template <class Self, class Out>
class WriteSide {
 public:
  // Yields false when the stream is dead: return. Never abandoned.
  class [[nodiscard]] WriteOp {
   public:
    explicit WriteOp(WriteSide& side) : side_(side), op_(side.written_.WaitUncancellable()) {}
    bool await_ready() const noexcept { return !side_.in_flight_; }
    template <class Caller>
    bool await_suspend(std::coroutine_handle<Caller> caller) noexcept {
      return op_.await_suspend(caller);
    }
    bool await_resume() const noexcept { return side_.alive_; }

   private:
    WriteSide& side_;
    Waiter::Op op_;
  };

  // Starts sending `message`, which must stay as it is until the write is over; afterwards the
  // caller may Clear() and fill it again. One write at a time.
  WriteOp Write(const Out& message, WriteHint hint = WriteHint::kFlush) {
    BeginWrite(message, hint);
    return Written();
  }
  // The two halves of Write(), for handlers that gather the next batch while one is on its way.
  void BeginWrite(const Out& message, WriteHint hint = WriteHint::kFlush) {
    assert(!in_flight_);
    in_flight_ = true;
    grpc::WriteOptions options;
    // A hint on the first message would hold back the initial metadata for ever (gRPC 1.51).
    if (hint == WriteHint::kMore && !first_) options.set_buffer_hint();
    first_ = false;
    static_cast<Self*>(this)->StartWrite(&message, options);
  }
  WriteOp Written() { return WriteOp(*this); }
  bool write_in_flight() const { return in_flight_; }

 protected:
  void WriteDone(bool ok) {
    in_flight_ = false;
    alive_ = alive_ && ok;
    written_.Notify(true);
  }

 private:
  bool in_flight_ = false;
  bool first_ = true;
  bool alive_ = true;
  Waiter written_;
};

// The reading half, mixed into Reader and Bidi, with one message of read-ahead: while the handler
// works on a message gRPC fetches the next one. Two messages are used in turn, so that their memory
// is. Loop thread only.
template <class Self, class In>
class ReadSide {
 public:
  // Yields the next message, valid until the next Read(); null at the end of the client's stream,
  // or when the call was interrupted (see interruption()).
  class [[nodiscard]] ReadOp {
   public:
    explicit ReadOp(ReadSide& side) : side_(side), op_(side.arrived_.Wait()) {}
    bool await_ready() const noexcept { return false; }
    template <class Caller>
    bool await_suspend(std::coroutine_handle<Caller> caller) noexcept {
      const CancelSource* source = caller.promise().cancel;
      cancelled_ = source != nullptr && source->cancelled();
      if (cancelled_ || side_.have_ || side_.ended_) return false;
      waited_ = true;
      return op_.await_suspend(caller);
    }
    In* await_resume() noexcept {
      if (cancelled_ || (waited_ && !op_.await_resume()) || !side_.have_) return nullptr;
      return side_.Take();
    }

   private:
    ReadSide& side_;
    Waiter::Op op_;
    bool cancelled_ = false;
    bool waited_ = false;
  };

  ReadOp Read() {
    if (!std::exchange(started_, true)) BeginRead();
    return ReadOp(*this);
  }

 protected:
  void ReadDone(bool ok) {
    if (!ok && !Untouched()) {
      static_cast<Self*>(this)->Interrupt(Interruption::kMalformed);
      return;  // which wakes the reader
    }
    if (!ok && !probing_) {
      // A client that closes its half and one that vanishes look the same here; the news of the
      // cancellation comes a moment later. A handler that took the second for the first would make
      // half an upload a whole file. So ask the stream: sending headers on a dead one fails.
      probing_ = true;
      if (static_cast<Self*>(this)->ProbeStream()) return;
    }
    (ok ? have_ : ended_) = true;
    arrived_.Notify(true);
  }
  void ProbeDone(bool alive) {
    if (alive) ReadDone(false);  // else the cancellation wakes the reader
  }

 private:
  static constexpr bool kIsParsed = std::is_base_of_v<google::protobuf::Message, In>;
  static constexpr int kMark = 1;  // any number will do

  In* Take() {
    using std::swap;
    swap(current_, next_);
    have_ = false;
    BeginRead();
    return &current_;
  }
  // To gRPC a message that cannot be parsed looks the same as the end of the stream, and half an
  // upload would be a whole file. But parsing begins by clearing the message: one that still holds
  // what was put into it was never touched.
  void BeginRead() {
    if constexpr (kIsParsed) {
      auto* fields = next_.GetReflection()->MutableUnknownFields(&next_);
      fields->Clear();  // of an earlier message
      fields->AddVarint(kMark, 0);
    }
    static_cast<Self*>(this)->StartRead(&next_);
  }
  bool Untouched() const {
    if constexpr (kIsParsed) {
      const auto& fields = next_.GetReflection()->GetUnknownFields(next_);
      return fields.field_count() == 1 && fields.field(0).number() == kMark;
    }
    return true;  // bytes, which nobody parses
  }

  bool started_ = false;
  bool have_ = false;
  bool ended_ = false;
  bool probing_ = false;
  In current_;
  In next_;
  Waiter arrived_;
};

// Server streaming.
template <class Out>
class Writer final : public Call<grpc::ServerWriteReactor<Out>>,
                     public WriteSide<Writer<Out>, Out> {
  using Base = Call<grpc::ServerWriteReactor<Out>>;

 public:
  static constexpr bool kStreaming = true;
  using Base::Base;

 private:
  void OnWriteDone(bool ok) override {
    this->Post([this, ok] { this->WriteDone(ok); });
  }
};

// Client streaming.
template <class In>
class Reader final : public Call<grpc::ServerReadReactor<In>>, public ReadSide<Reader<In>, In> {
  using Base = Call<grpc::ServerReadReactor<In>>;
  friend ReadSide<Reader<In>, In>;

 public:
  static constexpr bool kStreaming = true;
  using Base::Base;

 private:
  bool ProbeStream() {
    if (this->concluded()) return false;
    this->StartSendInitialMetadata();
    return true;
  }
  void OnSendInitialMetadataDone(bool ok) override {
    this->Post([this, ok] { this->ProbeDone(ok); });
  }
  void OnReadDone(bool ok) override {
    this->Post([this, ok] { this->ReadDone(ok); });
  }
};

// Both ways: one task may Read() while another one Write()s.
template <class In, class Out>
class Bidi final : public Call<grpc::ServerBidiReactor<In, Out>>,
                   public ReadSide<Bidi<In, Out>, In>,
                   public WriteSide<Bidi<In, Out>, Out> {
  using Base = Call<grpc::ServerBidiReactor<In, Out>>;
  friend ReadSide<Bidi<In, Out>, In>;

 public:
  static constexpr bool kStreaming = true;
  using Base::Base;

 private:
  bool ProbeStream() { return false; }
  void OnReadDone(bool ok) override {
    this->Post([this, ok] { this->ReadDone(ok); });
  }
  void OnWriteDone(bool ok) override {
    this->Post([this, ok] { this->WriteDone(ok); });
  }
};

}  // namespace bridge
