// SPDX-License-Identifier: Apache-2.0
//
// epp/bridge_link.h — the way to the bridge: one that runs elsewhere, or one inside this process.
// The rest of the plugin does not know which.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "frontends/epp/config.h"

namespace bridge::epp {

class BridgeLink {
 public:
  virtual ~BridgeLink() = default;

  // Any thread.
  virtual std::shared_ptr<grpc::Channel> channel() = 0;
  // For people: "the bridge at host:port".
  virtual std::string name() const = 0;
  // One that runs elsewhere: base_url and its like are that bridge's business.
  virtual bool remote() const { return false; }
  // Value of the `authorization` header, if one is needed.
  virtual std::optional<std::string> authorization() const { return std::nullopt; }

  // Waits until nothing is under way any more that ended calls left behind: removing half-made
  // sandboxes, killing commands. At most until `bound` has passed; false: it was not enough. No
  // call may be begun afterwards. Blocks: not on the loop thread. May be called again.
  virtual bool Settle(absl::Duration bound) = 0;
};

// Connects to nothing yet: the first call does. A file that cannot be read is INVALID_ARGUMENT and
// names the setting.
absl::StatusOr<std::unique_ptr<BridgeLink>> MakeRemoteLink(const Config& config);

using LinkFactory =
    std::function<absl::StatusOr<std::unique_ptr<BridgeLink>>(const Config& config)>;

}  // namespace bridge::epp
