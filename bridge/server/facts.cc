// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/facts.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/capabilities.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

// An upstream is replaced now and then; one that is down must not make every caller wait.
constexpr absl::Duration kVersionKept = absl::Minutes(1);
constexpr absl::Duration kAbsenceKept = absl::Seconds(5);

v1::Capability Row(const Capability& capability) {
  v1::Capability row;
  row.set_feature(capability.feature);
  row.set_note(capability.note);
  switch (capability.level) {
    case CapabilityLevel::kFull:
      row.set_level(v1::Capability::LEVEL_FULL);
      break;
    case CapabilityLevel::kDegraded:
      row.set_level(v1::Capability::LEVEL_DEGRADED);
      break;
    case CapabilityLevel::kNone:
      row.set_level(v1::Capability::LEVEL_NONE);
      break;
  }
  return row;
}

// Asked with a list of one: costs the upstream nothing and changes nothing.
Capability SnapshotsOf(const absl::Status& listed) {
  if (listed.ok()) return {"sandboxes.snapshots", CapabilityLevel::kFull};
  if (ReasonOf(listed) == ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE) {
    return {"sandboxes.snapshots", CapabilityLevel::kNone, "the upstream has none"};
  }
  return {"sandboxes.snapshots", CapabilityLevel::kNone, "the upstream could not be asked"};
}

}  // namespace

Task<std::string> UpstreamFacts::UpstreamVersion(CallContext context) {
  EventLoop& loop = clients_.lifecycle.loop();
  if (loop.Now() < version_until_) co_return version_;
  absl::StatusOr<std::string> version = co_await clients_.lifecycle.Version(std::move(context));
  const bool cancelled = co_await Cancelled();
  if (!cancelled) {
    version_ = version.ok() ? *std::move(version) : std::string();
    version_until_ = loop.Now() + (version.ok() ? kVersionKept : kAbsenceKept);
  }
  co_return version_;
}

Task<absl::StatusOr<BridgeFacts::Capabilities>> UpstreamFacts::GetCapabilities(
    CallContext context, std::string sandbox_id) {
  Capabilities result;
  const absl::Status listed =
      (co_await clients_.lifecycle.ListSnapshots(context, "", 1, 1)).status();
  result.rows.push_back(Row(SnapshotsOf(listed)));
  if (sandbox_id.empty()) co_return result;
  SandboxTarget target{std::move(sandbox_id), ""};
  CO_ASSIGN_OR_RETURN(
      SandboxHandle sandbox,
      co_await FindSandbox(clients_.daemons, background_, std::move(context), std::move(target)));
  result.daemon = DaemonName(*sandbox.capabilities);
  for (const Capability& capability : CapabilitiesOf(*sandbox.capabilities)) {
    result.rows.push_back(Row(capability));
  }
  co_return result;
}

}  // namespace bridge
