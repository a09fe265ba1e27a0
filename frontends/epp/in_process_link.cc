// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/in_process_link.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "bridge/base/status_macros.h"
#include "bridge/server/in_process.h"
#include "fmt/format.h"
#include "frontends/epp/manifest.h"

namespace bridge::epp {
namespace {

class InProcessLink final : public BridgeLink {
 public:
  explicit InProcessLink(std::unique_ptr<InProcessBridge> bridge)
      : bridge_(std::move(bridge)), channel_(bridge_->NewChannel()) {}

  std::shared_ptr<grpc::Channel> channel() override { return channel_; }
  std::string name() const override { return "the provider's own bridge"; }
  bool Settle(absl::Duration bound) override {
    const absl::Time begin = absl::Now();
    // Once for calls, which have ended on our side, and once for what they left behind.
    bridge_->Shutdown(bound / 2);
    return absl::Now() - begin < bound;
  }

 private:
  const std::unique_ptr<InProcessBridge> bridge_;
  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BridgeLink>> MakeInProcessLink(const Config& config) {
  InProcessBridge::Options options;
  UpstreamOptions& upstream = options.services.upstream;
  upstream.url = config.base_url;
  upstream.through_server = config.use_server_proxy;
  upstream.http.user_agent = fmt::format("opensandbox-provider/{}", manifest::kVersion);
  // The host passes on the usual variables for proxies and certificates, and no others.
  upstream.http.use_environment_proxy = true;
  if (const char* file = std::getenv("SSL_CERT_FILE"); file != nullptr) {
    upstream.http.ca_file = file;
  }
  options.api_key = config.api_key;
  ASSIGN_OR_RETURN(std::unique_ptr<InProcessBridge> bridge,
                   InProcessBridge::Create(std::move(options)));
  return std::unique_ptr<BridgeLink>(std::make_unique<InProcessLink>(std::move(bridge)));
}

absl::StatusOr<std::unique_ptr<BridgeLink>> MakeLink(const Config& config) {
  return config.bridge_address.empty() ? MakeInProcessLink(config) : MakeRemoteLink(config);
}

}  // namespace bridge::epp
