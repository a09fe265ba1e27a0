// SPDX-License-Identifier: Apache-2.0
//
// Linked into every program of --config=tsan that has Abseil. Debian's gRPC and Abseil are not
// instrumented: they hand work from thread to thread by atomics that ThreadSanitizer does not see,
// and what one thread wrote before and another reads after would pass for a race. Here the two are
// put in order. What a thread gives to gRPC, and the end of an operation that gRPC tells, have all
// one clock: a race that any call of gRPC happens to come between is not found; whatever else our
// threads do to each other is. A mutex of Abseil, which is gRPC's, has its own.
//
// The definitions stand before those of the shared libraries. They are weak: a program that has
// gRPC inside keeps gRPC's own.
#include <absl/synchronization/mutex.h>
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

// In the program and not in the environment, which tests take away from it. The plugin leaves
// threads behind when it ends, and some tests fork while others run, on purpose.
extern "C" const char* __tsan_default_options() {
  return "halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:report_thread_leaks=0:"
         "atexit_sleep_ms=0:ignore_noninstrumented_modules=1:"
         "external_symbolizer_path=/usr/bin/llvm-symbolizer";
}

// The log's queue, which is libspdlog's: its last reader drops what the log's end destroys.
extern "C" const char* __tsan_default_suppressions() { return "race:^spdlog::logger::~logger\n"; }

namespace {

char gClock;

// What gRPC 1.51 queues for its own threads, which end a call of the server: grpc_closure of its
// src/core/lib/iomgr/closure.h. A status is passed by its address.
struct Closure {
  void* next;
  void (*run)(void* arg, void* status);
  void* arg;
};

struct Ordered {
  Closure* closure;
  Closure original;
};

void RunOrdered(void* arg, void* status) {
  __tsan_acquire(&gClock);
  auto* const ordered = static_cast<Ordered*>(arg);
  const Closure original = ordered->original;
  // It may be made once and queued many times.
  ordered->closure->run = original.run;
  ordered->closure->arg = original.arg;
  delete ordered;
  original.run(original.arg, status);
}

// What stands behind the definition here.
template <typename Function>
Function Next(const char* symbol) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, symbol));
}

}  // namespace

// grpc_core::Executor::Run(grpc_closure*, absl::Status, ExecutorType, ExecutorJobType)
#define EXECUTOR_RUN           \
  "_ZN9grpc_core8Executor3Run" \
  "EP12grpc_closureN4absl7debian36StatusENS_12ExecutorTypeENS_15ExecutorJobTypeE"

#define NEXT(function)                                             \
  static const auto next = Next<decltype(&(function))>(#function); \
  __tsan_release(&gClock)

extern "C" {

__attribute__((weak)) grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops,
                                                            size_t nops, void* tag,
                                                            void* reserved) {
  NEXT(grpc_call_start_batch);
  return next(call, ops, nops, tag, reserved);
}

__attribute__((weak)) grpc_call_error grpc_call_cancel(grpc_call* call, void* reserved) {
  NEXT(grpc_call_cancel);
  return next(call, reserved);
}

__attribute__((weak)) grpc_call_error grpc_server_request_call(
    grpc_server* server, grpc_call** call, grpc_call_details* details,
    grpc_metadata_array* request_metadata, grpc_completion_queue* cq_bound_to_call,
    grpc_completion_queue* cq_for_notification, void* tag_new) {
  NEXT(grpc_server_request_call);
  return next(server, call, details, request_metadata, cq_bound_to_call, cq_for_notification,
              tag_new);
}

__attribute__((weak)) grpc_call_error grpc_server_request_registered_call(
    grpc_server* server, void* registered_method, grpc_call** call, gpr_timespec* deadline,
    grpc_metadata_array* request_metadata, grpc_byte_buffer** optional_payload,
    grpc_completion_queue* cq_bound_to_call, grpc_completion_queue* cq_for_notification,
    void* tag_new) {
  NEXT(grpc_server_request_registered_call);
  return next(server, registered_method, call, deadline, request_metadata, optional_payload,
              cq_bound_to_call, cq_for_notification, tag_new);
}

__attribute__((weak)) grpc_event grpc_completion_queue_next(grpc_completion_queue* cq,
                                                            gpr_timespec deadline, void* reserved) {
  NEXT(grpc_completion_queue_next);
  const grpc_event event = next(cq, deadline, reserved);
  __tsan_acquire(&gClock);
  return event;
}

__attribute__((weak)) grpc_event grpc_completion_queue_pluck(grpc_completion_queue* cq, void* tag,
                                                             gpr_timespec deadline,
                                                             void* reserved) {
  NEXT(grpc_completion_queue_pluck);
  const grpc_event event = next(cq, tag, deadline, reserved);
  __tsan_acquire(&gClock);
  return event;
}

__attribute__((weak)) void ExecutorRun(Closure* closure, void* status, int executor,
                                       int job) __asm__(EXECUTOR_RUN);
void ExecutorRun(Closure* closure, void* status, int executor, int job) {
  static const auto next = Next<decltype(&ExecutorRun)>(EXECUTOR_RUN);
  closure->arg = new Ordered{closure, *closure};
  closure->run = RunOrdered;
  __tsan_release(&gClock);
  next(closure, status, executor, job);
}

}  // extern "C"

namespace absl {
ABSL_NAMESPACE_BEGIN

#define MUTEX(symbol, type) static const auto next = Next<type>("_ZN4absl7debian3" symbol)

__attribute__((weak)) void Mutex::Lock() {
  MUTEX("5Mutex4LockEv", void (*)(Mutex*));
  next(this);
  __tsan_acquire(this);
}

__attribute__((weak)) bool Mutex::TryLock() {
  MUTEX("5Mutex7TryLockEv", bool (*)(Mutex*));
  const bool locked = next(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

__attribute__((weak)) void Mutex::Unlock() {
  MUTEX("5Mutex6UnlockEv", void (*)(Mutex*));
  __tsan_release(this);
  next(this);
}

__attribute__((weak)) void CondVar::Wait(Mutex* mutex) {
  MUTEX("7CondVar4WaitEPNS0_5MutexE", void (*)(CondVar*, Mutex*));
  __tsan_release(mutex);
  next(this, mutex);
  __tsan_acquire(mutex);
}

__attribute__((weak)) bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  MUTEX("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE", bool (*)(CondVar*, Mutex*, Time));
  __tsan_release(mutex);
  const bool late = next(this, mutex, deadline);
  __tsan_acquire(mutex);
  return late;
}

ABSL_NAMESPACE_END
}  // namespace absl
