// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_creator.h — makes sandboxes, and never loses one.
//
// A create is one POST that is never repeated. It carries labels (labels.h) that find the sandbox
// again: by its create-id when the answer was lost, by the caller's request_id when the call is
// repeated. It returns when the sandbox is usable: Running, and its daemon answers.
// Whatever happens to the call after the POST went out, a sandbox that is not handed over is
// deleted: by the call while it waits, else by a background task that also waits for an answer that
// has not come yet.
//
// Loop thread only; the object outlives its tasks.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/daemon_finder.h"
#include "bridge/opensandbox/directory_group.h"
#include "bridge/opensandbox/lifecycle_client.h"
#include "bridge/opensandbox/lifecycle_types.h"
#include "bridge/opensandbox/reclaimer.h"
#include "bridge/opensandbox/shared_result.h"
#include "bridge/opensandbox/usable_waiter.h"

namespace bridge {

inline constexpr absl::Duration kMinTtl = absl::Seconds(60);

struct CreateDefaults {
  // A process that does nothing and never ends.
  std::vector<std::string> entrypoint = {"tail", "-f", "/dev/null"};
  std::string cpu = "1";
  std::string memory = "2Gi";
};

struct CreatedSandbox {
  SandboxRecord record = {};
  bool adopted = false;
  bool ttl_clamped = false;
};

class SandboxCreator {
 public:
  struct Parts {
    LifecycleClient& client;
    UsableWaiter& usable;
    Reclaimer& reclaimer;
    TaskScope& tasks;
  };
  SandboxCreator(Parts parts, CreateDefaults defaults);
  ~SandboxCreator();
  SandboxCreator(const SandboxCreator&) = delete;
  SandboxCreator& operator=(const SandboxCreator&) = delete;

  // `request_id` empty: none. Errors: REQUEST_ID_REUSED, AMBIGUOUS_ASSIGNMENT, SANDBOX_FAILED,
  // READY_TIMEOUT, CONFLICT (the same request_id is being worked on), UPSTREAM_*, QUOTA_EXCEEDED,
  // CANCELLED. Metadata leaked_sandbox_id: that sandbox could not be proven to be gone.
  Task<absl::StatusOr<CreatedSandbox>> Create(CallContext context, CreateSpec spec,
                                              std::string request_id, absl::Duration ready_timeout);

 private:
  struct Attempt;
  using Answer = absl::StatusOr<SandboxRecord>;
  // One create of a request_id at a time; the next one finds what the one before it made.
  using Gate = SharedResult<bool>;

  Task<absl::StatusOr<std::shared_ptr<void>>> EnterGate(CallContext context, std::string request_id,
                                                        absl::Duration until);
  Task<absl::StatusOr<std::vector<SandboxRecord>>> FindByRequestId(CallContext context,
                                                                   std::string request_id);
  Task<absl::StatusOr<CreatedSandbox>> Adopt(CallContext context, std::string request_id,
                                             std::string digest, std::vector<SandboxRecord> matches,
                                             absl::Duration ready_until,
                                             absl::Duration ready_timeout);
  Task<absl::StatusOr<CreatedSandbox>> SettleRace(CallContext context, std::string request_id,
                                                  std::string digest, CreatedSandbox mine,
                                                  absl::Duration ready_until,
                                                  absl::Duration ready_timeout,
                                                  std::shared_ptr<void> gate);
  std::shared_ptr<Attempt> StartPost(const CallContext& context, CreateSpec spec,
                                     std::string create_id, bool repeatable,
                                     absl::Duration ready_timeout, std::shared_ptr<void> gate);
  Task<void> RunAttempt(std::shared_ptr<Attempt> attempt, CreateSpec spec);
  Task<Answer> LookUp(CallContext context, std::string create_id, absl::Duration until,
                      absl::Duration longest_pause);
  Task<absl::StatusOr<SandboxRecord>> AwaitPost(std::shared_ptr<Attempt> attempt,
                                                absl::Duration ready_until,
                                                absl::Duration ready_timeout);
  Task<absl::Status> GiveBack(CallContext context, std::string sandbox_id, absl::Status error,
                              std::shared_ptr<void> gate);
  CreateSpec WithDefaults(CreateSpec spec) const;

  const Parts parts_;
  EventLoop& loop_;
  const CreateDefaults defaults_;
  std::map<std::string, std::shared_ptr<Gate>> gates_;
};

}  // namespace bridge
