// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "frontends/epp/bridge_link.h"

namespace bridge::epp {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path, std::string_view field) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return InvalidField(field, "the file cannot be read, or is empty");
  }
  return text.str();
}

std::string WithoutBlanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

// gRPC looks for the system's certificates by itself, but does not know OpenSSL's variable.
absl::StatusOr<std::string> RootCertificates(const Config& config) {
  if (!config.bridge_ca_file.empty()) return ReadFile(config.bridge_ca_file, "bridge_ca_file");
  const char* file = std::getenv("SSL_CERT_FILE");
  if (file == nullptr || *file == '\0') return std::string();
  return ReadFile(file, "SSL_CERT_FILE");
}

class RemoteLink final : public BridgeLink {
 public:
  RemoteLink(const std::string& address, std::shared_ptr<grpc::Channel> channel, std::string token)
      : name_("the bridge at " + address), channel_(std::move(channel)), token_(std::move(token)) {}

  std::shared_ptr<grpc::Channel> channel() override { return channel_; }
  std::string name() const override { return name_; }
  bool remote() const override { return true; }
  std::optional<std::string> authorization() const override {
    if (token_.empty()) return std::nullopt;
    return "Bearer " + token_;
  }
  // That bridge goes on without us: it saw the cancels, or sees the connection end.
  bool Settle(absl::Duration) override { return true; }

 private:
  const std::string name_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::string token_;
};

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  // Without the probe a large upload does not grow the windows, and so the memory, of both sides.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1024 * 1024);
  // A bridge that vanished without a word is noticed, also while a command is silent.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return arguments;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BridgeLink>> MakeRemoteLink(const Config& config) {
  std::string token = config.bridge_token;
  if (token.empty() && !config.bridge_token_file.empty()) {
    ASSIGN_OR_RETURN(token, ReadFile(config.bridge_token_file, "bridge_token_file"));
    token = WithoutBlanks(token);
  }
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (config.bridge_tls) {
    grpc::SslCredentialsOptions options;
    ASSIGN_OR_RETURN(options.pem_root_certs, RootCertificates(config));
    credentials = grpc::SslCredentials(options);
  }
  return std::unique_ptr<BridgeLink>(std::make_unique<RemoteLink>(
      config.bridge_address,
      grpc::CreateCustomChannel(config.bridge_address, credentials, Arguments()),
      std::move(token)));
}

}  // namespace bridge::epp
