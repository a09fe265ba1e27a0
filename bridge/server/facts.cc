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

v1::Capability Row(const char* feature, v1::Capability::Level level, const char* note = "") {
  v1::Capability row;
  row.set_feature(feature);
  row.set_level(level);
  row.set_note(note);
  return row;
}

constexpr char kNotAsked[] = "the upstream could not be asked";

// Asked with a list of one: costs the upstream nothing and changes nothing.
v1::Capability SnapshotsOf(const absl::Status& listed) {
  constexpr char kFeature[] = "sandboxes.snapshots";
  if (listed.ok()) return Row(kFeature, v1::Capability::LEVEL_FULL);
  if (ReasonOf(listed) == ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE) {
    return Row(kFeature, v1::Capability::LEVEL_NONE, "the upstream has none");
  }
  return Row(kFeature, v1::Capability::LEVEL_UNSPECIFIED, kNotAsked);
}

// A server says in every refusal what it runs its sandboxes with, and nowhere else.
UpstreamFacts::Runtime RuntimeOf(const absl::Status& refusal) {
  const std::string code = MetadataOf(refusal)["upstream_code"];
  if (code.rfind("DOCKER::", 0) == 0) return UpstreamFacts::Runtime::kDocker;
  if (code.rfind("KUBERNETES::", 0) == 0) return UpstreamFacts::Runtime::kOther;
  return UpstreamFacts::Runtime::kUnknown;
}

// What follows from the runtime. What depends on a server's configuration, an image or a sandbox is
// not known before somebody tries: then no level is given.
std::vector<v1::Capability> RuntimeRows(UpstreamFacts::Runtime runtime, bool local) {
  const bool known = runtime != UpstreamFacts::Runtime::kUnknown;
  const bool docker = runtime == UpstreamFacts::Runtime::kDocker;
  const auto level = docker ? v1::Capability::LEVEL_FULL : v1::Capability::LEVEL_UNSPECIFIED;
  std::vector<v1::Capability> rows;
  rows.push_back(Row("sandboxes.pause", level,
                     docker  ? ""
                     : known ? "told by a pause: the cluster needs a registry, and processes end"
                             : kNotAsked));
  rows.push_back(Row("sandboxes.volumes", level,
                     docker  ? ""
                     : known ? "told by a create: the cluster has to provide the claim"
                             : kNotAsked));
  if (local) {
    rows.push_back(Row("sandboxes.network_policy", v1::Capability::LEVEL_NONE,
                       "the local OpenSandbox's sandboxes share the machine's network"));
  } else {
    rows.push_back(Row("sandboxes.network_policy", v1::Capability::LEVEL_UNSPECIFIED,
                       "told by a create: the server needs an egress image, for denied "
                       "addresses one in mode dns+nft"));
  }
  return rows;
}

// What only a sandbox can tell.
void AddUnknownOfSandbox(std::vector<v1::Capability>* rows) {
  rows->push_back(Row("processes", v1::Capability::LEVEL_UNSPECIFIED,
                      "told by a sandbox: its image needs bash and a writable directory"));
  rows->push_back(Row("isolation", v1::Capability::LEVEL_UNSPECIFIED,
                      "told by a sandbox: its daemon and its rights decide"));
}

v1::Capability ProcessesOf(const DaemonCapabilities& daemon) {
  if (!daemon.unprobed.ok()) {
    return Row("processes", v1::Capability::LEVEL_UNSPECIFIED,
               "the sandbox is too busy to be asked; ask again");
  }
  if (!daemon.bash) {
    return Row("processes", v1::Capability::LEVEL_NONE, "processes need bash in the image");
  }
  if (daemon.scratch.empty()) {
    return Row("processes", v1::Capability::LEVEL_NONE,
               "processes need a writable directory in the sandbox");
  }
  return Row("processes", v1::Capability::LEVEL_FULL);
}

v1::Capability IsolationOf(const absl::StatusOr<IsolationInfo>& info) {
  if (!info.ok()) {
    return Row("isolation", v1::Capability::LEVEL_UNSPECIFIED, "the daemon could not be asked");
  }
  if (!info->available) {
    return Row("isolation", v1::Capability::LEVEL_NONE, info->detail.substr(0, 200).c_str());
  }
  return Row("isolation", v1::Capability::LEVEL_DEGRADED,
             "output comes as lines, stderr among stdout, blank lines left out");
}

}  // namespace

Task<std::string> UpstreamFacts::UpstreamVersion(CallContext context) {
  EventLoop& loop = clients_.lifecycle.loop();
  if (loop.Now() < version_until_) co_return version_;
  absl::StatusOr<std::string> version = co_await clients_.lifecycle.Version(std::move(context));
  const bool cancelled = co_await Cancelled();
  if (!cancelled) {
    const bool known = version.ok();
    version_ = known ? *std::move(version) : std::string();
    version_until_ = loop.Now() + (known ? kVersionKept : kAbsenceKept);
  }
  co_return version_;
}

Task<absl::StatusOr<BridgeFacts::Capabilities>> UpstreamFacts::GetCapabilities(
    CallContext context, std::string sandbox_id) {
  Capabilities result;
  const absl::Status listed =
      (co_await clients_.lifecycle.ListSnapshots(context, "", 1, 1)).status();
  result.rows.push_back(SnapshotsOf(listed));
  if (runtime_ == Runtime::kUnknown) {
    const absl::Status refusal =
        (co_await clients_.lifecycle.Get(context, "no-such-sandbox")).status();
    runtime_ = RuntimeOf(refusal);
  }
  for (v1::Capability& row : RuntimeRows(runtime_, local_)) result.rows.push_back(std::move(row));
  if (sandbox_id.empty()) {
    AddUnknownOfSandbox(&result.rows);
    co_return result;
  }
  SandboxTarget target{std::move(sandbox_id), ""};
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox,
                      co_await FindSandbox(clients_.daemons, background_, context, target));
  result.rows.push_back(ProcessesOf(*sandbox.capabilities));
  result.rows.push_back(
      IsolationOf(co_await clients_.isolation.Get(std::move(context), std::move(target))));
  result.daemon = DaemonName(*sandbox.capabilities);
  for (const Capability& capability : CapabilitiesOf(*sandbox.capabilities)) {
    result.rows.push_back(Row(capability));
  }
  co_return result;
}

}  // namespace bridge
