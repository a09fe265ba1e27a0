// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_expiry.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/sandbox_access.h"
#include "bridge/opensandbox/sandbox_creator.h"
#include "bridge/opensandbox/sandbox_reader.h"
#include "fmt/format.h"

namespace bridge {
namespace {

using R = ErrorReason;

// The server may round; more than this is another time.
constexpr absl::Duration kRounding = absl::Seconds(1);

// On Kubernetes a paused sandbox has no pod; renewing makes one anew from the original image and
// the frozen state is lost. Docker's states are CONTAINER_....
bool WouldBeLost(const SandboxRecord& record) {
  const bool paused =
      record.state == SandboxState::kPaused || record.state == SandboxState::kPausing;
  return paused && record.state_reason.rfind("CONTAINER_", 0) != 0;
}

// Date has whole seconds, cut off: counting from the next one never gives less than was asked for.
absl::Time ServerNow(const Reading& reading, EventLoop& loop) {
  return reading.server_time ? *reading.server_time + absl::Seconds(1) : loop.clock().Now();
}

bool IsAbout(std::optional<absl::Time> stored, absl::Time wanted) {
  if (!stored) return false;
  const absl::Duration difference = *stored - wanted;
  return difference >= -kRounding && difference <= kRounding;
}

}  // namespace

Task<absl::StatusOr<Expiry>> SetExpiry(LifecycleClient& client, CallContext context,
                                       std::string sandbox_id, std::string incarnation,
                                       ExpiryRequest request) {
  CO_ASSIGN_OR_RETURN(const Reading reading,
                      co_await ReadSandbox(client, context, sandbox_id, incarnation));
  const SandboxRecord& record = reading.record;
  if (!request.ttl) {
    if (!record.expires_at) co_return Expiry{.unchanged = true};
    co_return MakeError(
        R::ERROR_REASON_UNSUPPORTED_FEATURE,
        fmt::format("sandbox {} expires; OpenSandbox cannot make it live for ever", sandbox_id),
        {.metadata = {{"feature", "sandboxes.never"}, {"sandbox_id", sandbox_id}}});
  }
  if (WouldBeLost(record)) co_return WithContext(NotRunning(record), "resume it before renewing");

  Expiry expiry;
  expiry.clamped = *request.ttl < kMinTtl;
  const absl::Duration ttl = expiry.clamped ? kMinTtl : *request.ttl;
  const absl::Time wanted = ServerNow(reading, client.loop()) + ttl;
  if (request.never_shorten && record.expires_at && *record.expires_at >= wanted) {
    expiry.expires_at = record.expires_at;
    expiry.unchanged = true;
    co_return expiry;
  }
  // One that never expires is asked to as well: the server's word decides.
  CO_ASSIGN_OR_RETURN(expiry.expires_at, co_await client.Renew(context, sandbox_id, wanted));
  if (IsAbout(expiry.expires_at, wanted)) co_return expiry;
  CO_ASSIGN_OR_RETURN(const Reading after,
                      co_await ReadSandbox(client, context, sandbox_id, incarnation));
  expiry.expires_at = after.record.expires_at;
  co_return expiry;
}

}  // namespace bridge
