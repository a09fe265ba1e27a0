// SPDX-License-Identifier: Apache-2.0
//
// tests/server/server_fixture.h — a whole Server on a free port, and a client of it.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bridge/server/log.h"
#include "bridge/server/options.h"
#include "bridge/server/server.h"
#include "bridge/service/status.h"
#include "sandbox/bridge/v1/bridge.grpc.pb.h"

namespace bridge::testing {

namespace v1 = sandbox::bridge::v1;

template <class Condition>
bool Eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Listens on a free port of the loopback; nothing is behind it.
inline ServerOptions TestOptions() {
  ServerOptions options;
  options.listen = {{.host = "127.0.0.1"}};
  options.services.upstream.url = "http://127.0.0.1:1";
  options.reload_interval = absl::Seconds(1);
  return options;
}

class TestServer {
 public:
  explicit TestServer(ServerOptions options = TestOptions())
      : log_(LogLevel::kDebug, [this](std::string_view line) {
          std::lock_guard<std::mutex> lock(mu_);
          text_ += line;
        }) {
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Create(std::move(options), log_);
    status_ = server.status();
    if (server.ok()) server_ = *std::move(server);
  }

  const absl::Status& status() const { return status_; }
  Server& operator*() { return *server_; }
  Server* operator->() { return server_.get(); }
  void Destroy() { server_.reset(); }
  int port() { return server_->addresses().at(0).port; }
  std::string address() { return server_->addresses().at(0).ToString(); }

  // What was logged so far; after Destroy() all of it.
  std::string log() const {
    std::lock_guard<std::mutex> lock(mu_);
    return text_;
  }

  // A connection of its own each time.
  std::shared_ptr<grpc::Channel> NewChannel(
      std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials()) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address(), credentials, arguments);
  }

 private:
  mutable std::mutex mu_;
  std::string text_;
  Log log_;
  absl::Status status_;
  std::unique_ptr<Server> server_;
};

// Asks what every bridge answers. `metadata` goes along.
inline absl::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                         const std::vector<std::pair<std::string, std::string>>& metadata = {},
                         v1::ServerInfo* info = nullptr) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
  v1::ServerInfo response;
  const grpc::Status status =
      v1::BridgeService::NewStub(channel)->GetServerInfo(&context, {}, &response);
  if (info != nullptr) *info = response;
  return FromGrpcStatus(status);
}

}  // namespace bridge::testing
