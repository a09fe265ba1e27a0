// SPDX-License-Identifier: Apache-2.0
//
// cli/connection.h — the way to a bridge: address, transport security, the caller's token.
//
// A token is read from a file, sent with every call and never printed; over a connection without
// TLS it is sent to this machine only. Threads: a Connection may be used from any thread at once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "sandbox/bridge/v1/bridge.grpc.pb.h"
#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"

namespace bridge::cli {

using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// Where settings come from: the option --bridge, then the environment
//   SANDBOX_BRIDGE_ADDRESS           default 127.0.0.1:50051
//   SANDBOX_BRIDGE_TOKEN_FILE        a bearer token, white space around it is ignored
//   SANDBOX_BRIDGE_CA_FILE           PEM; turns TLS on
//   SANDBOX_BRIDGE_CLIENT_CERT_FILE  PEM, with ..._CLIENT_KEY_FILE: a client certificate
struct Settings {
  std::string address;  // as given
  std::string target;   // for gRPC: "host:port" or "unix:/path"
  bool tls = false;
  bool loopback = false;  // this machine: 127.0.0.0/8, [::1], localhost, unix
  std::string ca_pem = {}, cert_pem = {}, key_pem = {};
  std::string token = {};

  // InvalidArgument or NotFound, naming the option or variable.
  static absl::StatusOr<Settings> Read(const std::string& bridge_option,
                                       const EnvironmentLookup& environment);
};

// Splits "host:port", "http://host:port", "https://host:port" or "unix:/path" into the fields
// above.
absl::Status ParseAddress(const std::string& address, Settings& settings);

class Connection {
 public:
  explicit Connection(Settings settings);

  const Settings& settings() const { return settings_; }
  // For messages: the address as given.
  const std::string& where() const { return settings_.address; }

  // A context with the token, and with a deadline unless `timeout` is infinite.
  std::unique_ptr<grpc::ClientContext> NewContext(absl::Duration timeout) const;

  sandbox::bridge::v1::BridgeService::Stub& bridge() { return *bridge_; }
  sandbox::bridge::v1::SandboxService::Stub& sandboxes() { return *sandboxes_; }
  sandbox::bridge::v1::ExecService::Stub& exec() { return *exec_; }
  sandbox::bridge::v1::FileService::Stub& files() { return *files_; }
  sandbox::bridge::v1::ProcessService::Stub& processes() { return *processes_; }

 private:
  const Settings settings_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<sandbox::bridge::v1::BridgeService::Stub> bridge_;
  std::unique_ptr<sandbox::bridge::v1::SandboxService::Stub> sandboxes_;
  std::unique_ptr<sandbox::bridge::v1::ExecService::Stub> exec_;
  std::unique_ptr<sandbox::bridge::v1::FileService::Stub> files_;
  std::unique_ptr<sandbox::bridge::v1::ProcessService::Stub> processes_;
};

}  // namespace bridge::cli
