// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_remover.h — deletes a sandbox and proves that it is gone.
//
// Gone is what a read says: a 404 by OpenSandbox' own word, after the deletion. What was seen on
// the way is kept as evidence. Loop thread only; the object outlives its tasks.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/directory_group.h"
#include "bridge/opensandbox/lifecycle_client.h"

namespace bridge {

enum class DeletionVerdict {
  kConfirmedGone,        // accepted, or of unknown fate, and then not there any more
  kAlreadyGone,          // there was nothing to delete, seen twice
  kAcceptedUnconfirmed,  // accepted; still seen, or not to be looked at, when time was up
};

struct DeletionEvidence {
  std::string action = {};  // "DELETE" or "GET"
  int status = 0;           // 0: no answer
  std::string detail = {};
  absl::Time at = {};  // on the bridge's clock
};

struct Deletion {
  DeletionVerdict verdict = DeletionVerdict::kAcceptedUnconfirmed;
  std::vector<DeletionEvidence> evidence = {};
};

class SandboxRemover {
 public:
  SandboxRemover(LifecycleClient& client, DirectoryGroup& directories)
      : client_(client), directories_(directories) {}
  SandboxRemover(const SandboxRemover&) = delete;
  SandboxRemover& operator=(const SandboxRemover&) = delete;

  // 409 is waited out (Retry-After, else 0.5 s to 2 s) for 20 s; other failures of the server are
  // looked at and tried again, three times in all; a 404 is never followed by another DELETE.
  // Errors, after which the sandbox may or may not be there: CONFLICT, UPSTREAM_*, CANCELLED,
  // DEADLINE_EXCEEDED; and NOT_YOUR_SANDBOX, STALE_INCARNATION, after which nothing was done.
  Task<absl::StatusOr<Deletion>> Delete(CallContext context, std::string sandbox_id,
                                        std::string incarnation, absl::Duration wait_for_proof);

 private:
  struct Run;
  enum class Seen { kGone, kThere, kUnknown };

  Task<absl::Status> Guard(Run& run);
  Task<absl::Status> Ask(Run& run);
  Task<absl::Status> AfterFailure(Run& run, absl::Status failure);
  Task<Seen> Look(Run& run);
  Task<void> Prove(Run& run, absl::Duration patience);
  absl::Duration Left(const Run& run) const;

  LifecycleClient& client_;
  DirectoryGroup& directories_;
};

}  // namespace bridge
