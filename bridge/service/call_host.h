// SPDX-License-Identifier: Apache-2.0
//
// service/call_host.h — what all calls of one server share: who may call, how many at once, which
// are running, and who is told when one ends.
//
// Outlives every call; its destructor checks that none is left. All of it may be used from any
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/base/clock.h"
#include "bridge/base/error.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/service/method.h"

namespace bridge {

// The metadata of one call that the bridge looks at. Empty: not sent.
struct CallMetadata {
  std::string_view authorization = {};
  std::string_view api_key = {};  // open-sandbox-api-key
  std::string_view traceparent = {};
  // A key of these that was sent more than once, null if none was: nobody can tell which one
  // counts.
  const char* repeated = nullptr;
};

// Who calls.
struct Caller {
  std::string tenant = {};  // empty: tenants are not in use
};

// Decides who a caller is. Any thread, must not block.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  // `authorization`: the metadata of that name, empty when there is none.
  // Errors: CALLER_UNAUTHENTICATED.
  virtual absl::StatusOr<Caller> Authenticate(std::string_view authorization) = 0;
};

// A call that has ended, for logs and metrics. Holds no id, payload or secret.
struct CallRecord {
  Method method;
  absl::StatusCode code = absl::StatusCode::kOk;
  ErrorReason reason = ErrorReason::ERROR_REASON_UNSPECIFIED;
  std::string_view message = {};  // of a failure; for the log only
  absl::Duration duration;
  std::string_view tenant = {};
  std::string_view trace_id = {};  // 32 hex digits, or empty
  const char* waiting_for = "";    // when it was interrupted
};

// Told about every call, refused ones included. Any thread, must not block.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void OnStart(const Method& method) = 0;
  virtual void OnEnd(const CallRecord& record) = 0;
};

// Zero means no limit.
struct CallLimits {
  struct Set {
    int64_t calls = 0;    // unary calls at once
    int64_t streams = 0;  // streaming calls at once
    int64_t bytes = 0;    // memory held by requests and gathered output
  };
  Set global = {.calls = 4096, .streams = 8192, .bytes = int64_t{512} << 20};
  Set per_tenant = {};
};

// Why a running call is to end early.
enum class Interruption { kNone, kCancelled, kDeadline, kDraining, kMalformed };

// One running call, as seen from outside.
struct LiveCall {
  const char* method;
  absl::Duration age;
  const char* waiting_for;
};

class CallHost {
 public:
  struct Options {
    CallLimits limits = {};
    // The bridge's own OpenSandbox key. Secret.
    std::string api_key = {};
    // May callers bring their own key (metadata open-sandbox-api-key)?
    bool forward_api_keys = false;
    // Null: everyone may call. Must outlive the host.
    Authenticator* authenticator = nullptr;
    // May be null. Must outlive the host.
    CallObserver* observer = nullptr;
    Clock* clock = &Clock::Real();
  };

  class Ticket;
  struct Admission;
  // The entry of a call in the list of live calls; a base of the call object.
  class Entry;

  explicit CallHost(Options options);
  ~CallHost();
  CallHost(const CallHost&) = delete;
  CallHost& operator=(const CallHost&) = delete;

  // Errors: DRAINING, CALLER_UNAUTHENTICATED, TOO_MANY_STREAMS, INVALID_ARGUMENT,
  // UNSUPPORTED_FEATURE (a key was sent and is not forwarded).
  absl::StatusOr<Admission> Admit(const Method& method, const CallMetadata& metadata);

  // From now on new calls are refused with DRAINING. `retry_after` is what they are told.
  void StartDraining(absl::Duration retry_after);
  bool draining() const { return draining_.load(std::memory_order_relaxed); }

  absl::Status DrainingError() const;

  // Ends every running call with DRAINING. The calls end soon, not at once.
  void InterruptAll();

  // The bridge's own key was replaced in its file.
  void SetApiKey(std::string key);

  // Objects of calls that exist. Zero once every call has ended and its last closure has run.
  int live() const { return live_.load(); }
  // The running calls, oldest first.
  std::vector<LiveCall> LiveCalls() const;
  // One line a call: "age=12.3s method=… waiting_for=…".
  std::string DescribeLiveCalls() const;

  CallObserver* observer() const { return options_.observer; }
  Clock& clock() const { return *options_.clock; }
  const CallLimits& limits() const { return options_.limits; }

 private:
  struct Usage {
    int64_t calls = 0, streams = 0, bytes = 0;
    void Add(const Usage& amount, int sign);
  };
  // The row of a tenant. Never removed: there are no more than the token file names.
  absl::StatusOr<std::string> KeyFor(const CallMetadata& metadata);
  absl::Status Take(Usage* tenant, const Usage& amount);  // under mu_
  void Give(Usage* tenant, const Usage& amount);          // under mu_

  const Options options_;
  std::atomic<bool> draining_{false};
  std::atomic<int64_t> retry_after_ms_{1000};
  std::atomic<int> live_{0};

  mutable std::mutex mu_;
  std::string api_key_;                   // guarded by mu_
  Usage global_;                          // guarded by mu_
  std::map<std::string, Usage> tenants_;  // guarded by mu_; only those with something running
  Entry* first_ = nullptr;                // guarded by mu_
  Entry* last_ = nullptr;                 // guarded by mu_
};

// A place among the running calls. Given back when it is destroyed.
class CallHost::Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept { *this = std::move(other); }
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket() { Return(); }

  void Return();

  // Counts `bytes` more (or fewer) that the call holds. Errors: TOO_MANY_STREAMS{limit}; then
  // nothing was counted.
  absl::Status Hold(int64_t bytes);

 private:
  friend class CallHost;
  CallHost* host_ = nullptr;
  Usage* tenant_ = nullptr;  // null: none
  Usage amount_;
};

struct CallHost::Admission {
  Ticket ticket;
  // All but the deadline.
  CallContext context;
};

class CallHost::Entry {
 public:
  Entry(CallHost& host, const char* method);
  virtual ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  // What the call does right now, for people who look at a stuck bridge. A literal. Any thread.
  void set_waiting_for(const char* what) { waiting_for_.store(what, std::memory_order_relaxed); }
  const char* waiting_for() const { return waiting_for_.load(std::memory_order_relaxed); }
  absl::Duration age() const { return host_.clock().Monotonic() - started_; }

 protected:
  CallHost& host() const { return host_; }

  // Asks the call to end. Any thread; runs under the host's lock, so it may only post. Not called
  // any more once Leave() has returned.
  virtual void Interrupt(Interruption why) = 0;
  // Leaves the list. The last owner calls it before it destroys the object. Idempotent.
  void Leave();

 private:
  friend class CallHost;
  CallHost& host_;
  const char* const method_;
  const absl::Duration started_;
  std::atomic<const char*> waiting_for_{"start"};
  bool listed_ = true;         // guarded by host_.mu_
  Entry* previous_ = nullptr;  // guarded by host_.mu_
  Entry* next_ = nullptr;      // guarded by host_.mu_
};

// "00-<32 hex>-<16 hex>-<2 hex>" as W3C Trace Context wants it, in lower case and not all zero.
bool IsTraceparent(std::string_view text);
// The trace id of a traceparent; empty for the empty text.
std::string_view TraceIdOf(std::string_view traceparent);

}  // namespace bridge
