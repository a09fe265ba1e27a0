// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/connection.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "bridge/base/read_file.h"
#include "bridge/base/status_macros.h"

namespace bridge::cli {
namespace {

constexpr std::string_view kDefaultAddress = "127.0.0.1:50051";

absl::StatusOr<std::string> ReadFile(const std::string& variable, const std::string& path) {
  std::optional<std::string> content = bridge::ReadFile(path);
  if (!content) {
    return absl::NotFoundError(
        fmt::format("{}: cannot read {}: {}", variable, path, std::strerror(errno)));
  }
  if (content->empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: {} is empty", variable, path));
  }
  return *std::move(content);
}

// The content of the file that the variable names; empty when the variable is not set.
absl::StatusOr<std::string> ReadNamed(const EnvironmentLookup& environment,
                                      const std::string& variable) {
  const std::optional<std::string> path = environment(variable);
  if (!path || path->empty()) return std::string();
  return ReadFile(variable, *path);
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.substr(0, 4) == "127.";
}

absl::Status CheckToken(const std::string& token) {
  for (const char c : token) {
    if (c <= ' ' || c > '~') {
      return absl::InvalidArgumentError(
          "SANDBOX_BRIDGE_TOKEN_FILE: the file must hold one token in visible ASCII");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseAddress(const std::string& address, Settings& settings) {
  const absl::Status wrong = absl::InvalidArgumentError(fmt::format(
      "\"{}\" is no address of a bridge: HOST:PORT, https://HOST:PORT, unix:/PATH", address));
  settings.address = address;
  std::string_view rest = address;
  if (rest.substr(0, 5) == "unix:") {
    settings.target = address;
    settings.loopback = true;
    return rest.size() > 5 ? absl::OkStatus() : wrong;
  }
  if (rest.substr(0, 8) == "https://") {
    settings.tls = true;
    rest.remove_prefix(8);
  } else if (rest.substr(0, 7) == "http://") {
    rest.remove_prefix(7);
  }
  if (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong;
  const std::string_view host = rest.substr(0, colon);
  const std::string_view port = rest.substr(colon + 1);
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (host.find_first_of("/@?# ") != std::string_view::npos) return wrong;
  if (!bracketed && host.find(':') != std::string_view::npos) return wrong;
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number < 1 || number > 65535) {
    return wrong;
  }
  settings.target = std::string(rest);
  settings.loopback = IsLoopback(host);
  return absl::OkStatus();
}

absl::StatusOr<Settings> Settings::Read(const std::string& bridge_option,
                                        const EnvironmentLookup& environment) {
  Settings settings;
  std::string address = bridge_option;
  if (address.empty()) address = environment("SANDBOX_BRIDGE_ADDRESS").value_or("");
  if (address.empty()) address = kDefaultAddress;
  RETURN_IF_ERROR(ParseAddress(address, settings));
  ASSIGN_OR_RETURN(settings.ca_pem, ReadNamed(environment, "SANDBOX_BRIDGE_CA_FILE"));
  ASSIGN_OR_RETURN(settings.cert_pem, ReadNamed(environment, "SANDBOX_BRIDGE_CLIENT_CERT_FILE"));
  ASSIGN_OR_RETURN(settings.key_pem, ReadNamed(environment, "SANDBOX_BRIDGE_CLIENT_KEY_FILE"));
  ASSIGN_OR_RETURN(const std::string token, ReadNamed(environment, "SANDBOX_BRIDGE_TOKEN_FILE"));
  settings.token = std::string(absl::StripAsciiWhitespace(token));
  RETURN_IF_ERROR(CheckToken(settings.token));
  settings.tls = settings.tls || !settings.ca_pem.empty() || !settings.cert_pem.empty();
  if (settings.cert_pem.empty() != settings.key_pem.empty()) {
    return absl::InvalidArgumentError(
        "SANDBOX_BRIDGE_CLIENT_CERT_FILE and SANDBOX_BRIDGE_CLIENT_KEY_FILE go together");
  }
  if (!settings.token.empty() && !settings.tls && !settings.loopback) {
    return absl::InvalidArgumentError(
        fmt::format("a token would travel to {} in the clear; use https:// or "
                    "SANDBOX_BRIDGE_CA_FILE",
                    settings.target));
  }
  return settings;
}

Connection::Connection(Settings settings) : settings_(std::move(settings)) {
  grpc::ChannelArguments arguments;
  // A proxy of the environment is for the world outside, never for this machine.
  if (settings_.loopback) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetUserAgentPrefix("sbx");
  // A connection that died without a word (a suspend, a NAT) is noticed within half a minute, also
  // while nothing is sent for long. Bridges allow a ping every 10 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Whoever tries again has waited already; gRPC is not to fail it for having failed before.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (settings_.tls) {
    credentials = grpc::SslCredentials({.pem_root_certs = settings_.ca_pem,
                                        .pem_private_key = settings_.key_pem,
                                        .pem_cert_chain = settings_.cert_pem});
  }
  channel_ = grpc::CreateCustomChannel(settings_.target, credentials, arguments);
  bridge_ = sandbox::bridge::v1::BridgeService::NewStub(channel_);
  sandboxes_ = sandbox::bridge::v1::SandboxService::NewStub(channel_);
  exec_ = sandbox::bridge::v1::ExecService::NewStub(channel_);
  files_ = sandbox::bridge::v1::FileService::NewStub(channel_);
  processes_ = sandbox::bridge::v1::ProcessService::NewStub(channel_);
}

std::unique_ptr<grpc::ClientContext> Connection::NewContext(absl::Duration timeout) const {
  auto context = std::make_unique<grpc::ClientContext>();
  if (timeout < absl::InfiniteDuration()) {
    context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  if (!settings_.token.empty()) {
    context->AddMetadata("authorization", fmt::format("Bearer {}", settings_.token));
  }
  return context;
}

}  // namespace bridge::cli
