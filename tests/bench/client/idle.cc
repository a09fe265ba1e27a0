// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "tests/bench/client/over_grpc.h"

namespace bridge::bench {
namespace {

namespace v1 = sandbox::bridge::v1;

// How many streams are asked for and not yet started at any time: a burst of thousands would
// measure the spawning of processes.
constexpr int kStartingAtOnce = 32;

struct Tally {
  std::atomic<int> started{0};
  std::atomic<int> done{0};
  std::atomic<int> refused{0};  // ended before they started
};

class IdleExec : public grpc::ClientReadReactor<v1::ExecEvent> {
 public:
  IdleExec(v1::ExecService::Stub& stub, const v1::ExecuteRequest& request, Tally& tally)
      : tally_(tally) {
    stub.async()->Execute(&context_, &request, this);
    StartRead(&event_);
    StartCall();
  }
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (event_.has_started() && !started_) {
      started_ = true;
      ++tally_.started;
    }
    StartRead(&event_);
  }
  void OnDone(const grpc::Status&) override {
    if (!started_) {
      ++tally_.refused;
      ++tally_.started;
    }
    ++tally_.done;
  }

 private:
  Tally& tally_;
  grpc::ClientContext context_;
  v1::ExecEvent event_;
  bool started_ = false;
};

template <class Done>
bool WaitUntil(Done done) {
  const double deadline = Now() + 120;
  while (!done()) {
    if (Now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace

Sample GrpcIdle(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                int streams, v1::Fidelity fidelity) {
  Sample sample;
  auto stub = v1::ExecService::NewStub(channel);
  v1::ExecuteRequest request;
  request.set_sandbox_id(sandbox_id);
  request.mutable_spec()->mutable_argv()->add_args("sleep");
  request.mutable_spec()->mutable_argv()->add_args("3600");
  request.mutable_spec()->set_fidelity(fidelity);
  request.mutable_keepalive_interval()->set_seconds(60);
  Tally tally;
  std::vector<std::unique_ptr<IdleExec>> execs;
  const double start = Now();
  for (int i = 0; i < streams; ++i) {
    execs.push_back(std::make_unique<IdleExec>(*stub, request, tally));
    if (!WaitUntil([&] { return i - tally.started < kStartingAtOnce; })) break;
  }
  if (!WaitUntil([&] { return tally.started == streams; })) sample.Fail("not all streams started");
  sample.seconds = Now() - start;
  std::cout << "{\"open\": " << tally.started - tally.refused << "}" << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  if (tally.done > 0) sample.Fail("a stream ended by itself");
  const double cancelled = Now();
  for (auto& exec : execs) exec->Cancel();
  if (!WaitUntil([&] { return tally.done == static_cast<int>(execs.size()); })) {
    sample.Fail("not all streams ended");
    sample.Print();
    std::_Exit(1);  // their reactors are still in use
  }
  sample.latencies.push_back(Now() - cancelled);
  sample.items = streams - tally.refused;
  return sample;
}

}  // namespace bridge::bench
