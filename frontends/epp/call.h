// SPDX-License-Identifier: Apache-2.0
//
// epp/call.h — one request of the host while it is being answered, and what all requests share.
// Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/task.h"
#include "frontends/epp/bridge_link.h"
#include "frontends/epp/config.h"
#include "frontends/epp/message.h"
#include "frontends/epp/output.h"
#include "frontends/epp/rpc.h"
#include "frontends/epp/values.h"
#include "sandbox/bridge/v1/bridge.grpc.pb.h"
#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"

namespace bridge::epp {

namespace v1 = ::sandbox::bridge::v1;

class Terminal;

// The bridge's services on one channel.
struct Stubs {
  explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
      : sandboxes(channel), execs(channel), processes(channel), files(channel), bridge(channel) {}
  v1::SandboxService::Stub sandboxes;
  v1::ExecService::Stub execs;
  v1::ProcessService::Stub processes;
  v1::FileService::Stub files;
  v1::BridgeService::Stub bridge;
};

// What the plugin is, between `initialize` and its end.
struct Environment {
  EventLoop& loop;
  Output& output;
  LinkFactory make_link;

  Config config = {};
  // Of calls that look or change something small; from the host's http_timeout.
  absl::Duration call_timeout = absl::Seconds(30);
  std::unique_ptr<BridgeLink> link = {};
  std::unique_ptr<Stubs> stubs = {};
  // Open terminals by process_id; each belongs to the call that opened it.
  std::map<std::string, Terminal*> terminals = {};
};

class Call {
 public:
  Call(Environment& environment, grpc::CompletionQueue& queue, Message message)
      : environment_(environment),
        id_(std::move(message.id)),
        params_(std::move(message.params)),
        bytes_(message.bytes),
        scope_(environment.loop, queue) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Environment& environment() { return environment_; }
  const std::string& id() const { return id_; }
  Params params() const { return Params(params_); }
  // For what is large: the handler may move parts out of it.
  Json& raw_params() { return params_; }
  CallScope& scope() { return scope_; }
  Stubs& stubs() { return *environment_.stubs; }

  // The answer, once. What a handler does afterwards (streams) it does without its caller.
  void Result(const Json& result) { Answer(RenderResult(id_, result)); }
  void Error(const absl::Status& error) { Answer(RenderError(id_, error)); }
  void Answer(std::string line);
  bool answered() const { return answered_; }

  // Room in the output, before more is made. False: cancelled meanwhile.
  Task<bool> OutputRoom();

  // Of the request, to be given back with the answer; 0 the second time.
  size_t TakeBytes() { return std::exchange(bytes_, 0); }
  std::function<void(size_t bytes)> on_answer;

 private:
  Environment& environment_;
  const std::string id_;
  Json params_;
  size_t bytes_;
  CallScope scope_;
  bool answered_ = false;
};

// A handler of the common kind: the result is the answer.
using Handler = Task<absl::StatusOr<Json>> (*)(Call& call);

}  // namespace bridge::epp
