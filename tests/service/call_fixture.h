// SPDX-License-Identifier: Apache-2.0
//
// tests/service/call_fixture.h — a gRPC server on a loopback port whose four methods, one of each
// kind, run whatever coroutine a test gives them.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "bridge/net/event_loop.h"
#include "bridge/service/call.h"
#include "bridge/service/call_host.h"
#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"

namespace bridge::testing {

namespace v1 = sandbox::bridge::v1;

// Waits until `condition` holds, for at most ten seconds. True: it does.
template <class Condition>
bool Eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// A flag that one thread sets and another one waits for.
class Flag {
 public:
  void Set() {
    std::lock_guard<std::mutex> lock(mu_);
    set_ = true;
    changed_.notify_all();
  }
  bool Wait() {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [this] { return set_; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool set_ = false;
};

// Keeps what it is told.
class Recorder final : public CallObserver {
 public:
  struct Ended {
    std::string method, message, tenant, trace_id, waiting_for;
    absl::StatusCode code;
    ErrorReason reason;
    absl::Duration duration;
  };
  void OnStart(const Method&) override { ++started; }
  void OnEnd(const CallRecord& r) override {
    std::lock_guard<std::mutex> lock(mu_);
    ended_.push_back({r.method.name, std::string(r.message), std::string(r.tenant),
                      std::string(r.trace_id), r.waiting_for, r.code, r.reason, r.duration});
  }
  std::vector<Ended> ended() const {
    std::lock_guard<std::mutex> lock(mu_);
    return ended_;
  }
  std::atomic<int> started{0};

 private:
  mutable std::mutex mu_;
  std::vector<Ended> ended_;
};

using GetCall = Unary;
using ExecuteCall = Writer<v1::ExecEvent>;
using WriteFileCall = Reader<v1::WriteFileChunk>;
using AttachCall = Bidi<v1::AttachProcessRequest, v1::ProcessEvent>;

inline constexpr Method kGet = UnaryMethod("sandbox.bridge.v1.SandboxService/GetSandbox");
inline constexpr Method kExecute = StreamingMethod("sandbox.bridge.v1.ExecService/Execute");
inline constexpr Method kWriteFile = StreamingMethod("sandbox.bridge.v1.FileService/WriteFile");
inline constexpr Method kAttach = StreamingMethod("sandbox.bridge.v1.ProcessService/AttachProcess");

struct Handlers {
  Method get_method = kGet;
  Method execute_method = kExecute;
  std::function<Task<absl::Status>(GetCall&, const v1::GetSandboxRequest&, v1::Sandbox&)> get;
  std::function<Task<absl::Status>(ExecuteCall&, const v1::ExecuteRequest&)> execute;
  std::function<Task<absl::Status>(WriteFileCall&, v1::WriteFileResponse&)> write_file;
  std::function<Task<absl::Status>(AttachCall&)> attach;
};

class CallServer {
 public:
  explicit CallServer(Handlers handlers, CallHost::Options options = {})
      : handlers_(std::move(handlers)), host_(WithRecorder(options, recorder)) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&sandboxes_);
    builder.RegisterService(&exec_);
    builder.RegisterService(&files_);
    builder.RegisterService(&processes_);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~CallServer() { Stop(); }

  // Ends all calls. `grace` is how long they may take.
  void Stop(std::chrono::milliseconds grace = std::chrono::milliseconds(0)) {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_->Wait();
    EXPECT_TRUE(Eventually([this] { return host_.live() == 0; })) << host_.DescribeLiveCalls();
    server_.reset();
  }

  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    return grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
  }
  grpc::Server& grpc() { return *server_; }
  CallHost& host() { return host_; }
  EventLoop& loop() { return loop_; }

  Recorder recorder;

 private:
  static CallHost::Options WithRecorder(CallHost::Options options, Recorder& recorder) {
    options.observer = &recorder;
    return options;
  }

  struct Sandboxes final : v1::SandboxService::CallbackService {
    explicit Sandboxes(CallServer& s) : server(s) {}
    grpc::ServerUnaryReactor* GetSandbox(grpc::CallbackServerContext* context,
                                         const v1::GetSandboxRequest* request,
                                         v1::Sandbox* response) override {
      return Start<GetCall>(server.host_, server.loop_, context, server.handlers_.get_method,
                            [this, request, response](auto& call) {
                              return server.handlers_.get(call, *request, *response);
                            });
    }
    CallServer& server;
  };
  struct Exec final : v1::ExecService::CallbackService {
    explicit Exec(CallServer& s) : server(s) {}
    grpc::ServerWriteReactor<v1::ExecEvent>* Execute(grpc::CallbackServerContext* context,
                                                     const v1::ExecuteRequest* request) override {
      return Start<ExecuteCall>(
          server.host_, server.loop_, context, server.handlers_.execute_method,
          [this, request](auto& call) { return server.handlers_.execute(call, *request); });
    }
    CallServer& server;
  };
  struct Files final : v1::FileService::CallbackService {
    explicit Files(CallServer& s) : server(s) {}
    grpc::ServerReadReactor<v1::WriteFileChunk>* WriteFile(
        grpc::CallbackServerContext* context, v1::WriteFileResponse* response) override {
      return Start<WriteFileCall>(
          server.host_, server.loop_, context, kWriteFile,
          [this, response](auto& call) { return server.handlers_.write_file(call, *response); });
    }
    CallServer& server;
  };
  struct Processes final : v1::ProcessService::CallbackService {
    explicit Processes(CallServer& s) : server(s) {}
    grpc::ServerBidiReactor<v1::AttachProcessRequest, v1::ProcessEvent>* AttachProcess(
        grpc::CallbackServerContext* context) override {
      return Start<AttachCall>(server.host_, server.loop_, context, kAttach,
                               [this](auto& call) { return server.handlers_.attach(call); });
    }
    CallServer& server;
  };

  const Handlers handlers_;
  EventLoop loop_;
  CallHost host_;
  Sandboxes sandboxes_{*this};
  Exec exec_{*this};
  Files files_{*this};
  Processes processes_{*this};
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace bridge::testing
