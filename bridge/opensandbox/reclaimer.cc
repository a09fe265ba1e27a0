// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/reclaimer.h"

#include <utility>

namespace bridge {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr absl::Duration kWaitForProof = absl::Seconds(10);

}  // namespace

std::shared_ptr<Reclaimer::Outcome> Reclaimer::Start(const CallContext& context,
                                                     std::string sandbox_id,
                                                     std::shared_ptr<void> hold) {
  auto outcome = std::make_shared<Outcome>();
  CallContext own = context;
  own.tenant.clear();  // it is the bridge's own to delete
  own.deadline = loop_.Now() + kTimeout;
  tasks_.Start("reclaim a sandbox",
               [this, own, id = std::move(sandbox_id), hold, outcome]() -> Task<void> {
                 const absl::StatusOr<Deletion> deletion =
                     co_await remover_.Delete(own, id, "", kWaitForProof);
                 const bool gone =
                     deletion.ok() && deletion->verdict != DeletionVerdict::kAcceptedUnconfirmed;
                 (gone ? reclaimed_ : leaked_).fetch_add(1, std::memory_order_relaxed);
                 outcome->Set(gone);
               });
  return outcome;
}

}  // namespace bridge
