// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/exec_storm.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "tests/server/http_get.h"

namespace bridge::testing {
namespace {

namespace v1 = sandbox::bridge::v1;
using Clock = std::chrono::steady_clock;

// What all streams of a storm tell.
struct Tally {
  std::mutex mutex;
  std::condition_variable changed;
  int started = 0;
  int running = 0;
  StormResult result;
};

class Stream : public grpc::ClientReadReactor<v1::ExecEvent> {
 public:
  Stream(v1::ExecService::Stub& stub, v1::ExecuteRequest request, Tally& tally)
      : request_(std::move(request)), tally_(tally) {
    stub.async()->Execute(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }
  void Cut() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (event_.has_started()) {
      const std::lock_guard lock(tally_.mutex);
      ++tally_.started;
      tally_.changed.notify_all();
    }
    StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override {
    const std::lock_guard lock(tally_.mutex);
    --tally_.running;
    if (status.error_code() == grpc::StatusCode::CANCELLED) {
      ++tally_.result.cut;
    } else if (tally_.result.refused++ == 0) {
      tally_.result.first_refusal =
          std::to_string(status.error_code()) + ": " + status.error_message();
    }
    tally_.changed.notify_all();
  }

 private:
  grpc::ClientContext context_;
  const v1::ExecuteRequest request_;
  v1::ExecEvent event_;
  Tally& tally_;
};

v1::ExecuteRequest Request(const std::string& sandbox_id, const std::string& command, int number,
                           v1::Fidelity fidelity = v1::FIDELITY_UNSPECIFIED) {
  v1::ExecuteRequest request;
  request.set_sandbox_id(sandbox_id);
  request.mutable_spec()->set_shell(command);
  if (fidelity == v1::FIDELITY_UNSPECIFIED) {
    fidelity = number % 2 == 0 ? v1::FIDELITY_BYTES : v1::FIDELITY_LINES;
  }
  request.mutable_spec()->set_fidelity(fidelity);
  request.mutable_keepalive_interval()->set_seconds(60);
  return request;
}

}  // namespace

StormResult CutExecs(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                     const std::string& command, int streams, int at_once, int longest_ms,
                     uint32_t seed) {
  auto stub = v1::ExecService::NewStub(channel);
  Tally tally;
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> life(0, longest_ms * 1000);
  struct Cut {
    Clock::time_point when;
    Stream* stream;
    bool operator<(const Cut& other) const { return other.when < when; }  // the next one on top
  };
  std::vector<std::unique_ptr<Stream>> all;
  std::vector<Cut> cuts;  // a heap
  std::unique_lock lock(tally.mutex);
  while (static_cast<int>(all.size()) < streams || !cuts.empty() || tally.running > 0) {
    while (static_cast<int>(all.size()) < streams && tally.running < at_once) {
      ++tally.running;
      const int number = static_cast<int>(all.size());
      lock.unlock();
      all.push_back(std::make_unique<Stream>(*stub, Request(sandbox_id, command, number), tally));
      lock.lock();
      cuts.push_back({Clock::now() + std::chrono::microseconds(life(random)), all.back().get()});
      std::push_heap(cuts.begin(), cuts.end());
    }
    const auto next = cuts.empty() ? Clock::now() + std::chrono::seconds(60) : cuts.front().when;
    tally.changed.wait_until(lock, next);
    while (!cuts.empty() && cuts.front().when <= Clock::now()) {
      std::pop_heap(cuts.begin(), cuts.end());
      Stream* stream = cuts.back().stream;
      cuts.pop_back();
      lock.unlock();
      stream->Cut();
      lock.lock();
    }
  }
  return tally.result;
}

class OpenExecs::Impl {
 public:
  Impl(const std::shared_ptr<grpc::Channel>& channel, const std::vector<std::string>& sandbox_ids,
       const std::string& command, int streams, v1::Fidelity fidelity)
      : stub(v1::ExecService::NewStub(channel)) {
    constexpr int kStartingAtOnce = 32;
    for (int i = 0; i < streams; ++i) {
      {
        const std::lock_guard lock(tally.mutex);
        ++tally.running;
      }
      const std::string& sandbox_id = sandbox_ids[static_cast<size_t>(i) % sandbox_ids.size()];
      all.push_back(
          std::make_unique<Stream>(*stub, Request(sandbox_id, command, i, fidelity), tally));
      std::unique_lock lock(tally.mutex);
      const int wanted = i + 1 == streams ? streams : i - kStartingAtOnce;
      tally.changed.wait_for(lock, std::chrono::seconds(60), [&] {
        return tally.started >= wanted || tally.running < static_cast<int>(all.size());
      });
    }
  }

  std::unique_ptr<v1::ExecService::Stub> stub;
  Tally tally;
  std::vector<std::unique_ptr<Stream>> all;
};

OpenExecs::OpenExecs(const std::shared_ptr<grpc::Channel>& channel,
                     const std::vector<std::string>& sandbox_ids, const std::string& command,
                     int streams, v1::Fidelity fidelity)
    : impl_(std::make_unique<Impl>(channel, sandbox_ids, command, streams, fidelity)) {}

OpenExecs::~OpenExecs() {
  Cut();
  if (!AwaitEnd()) std::abort();  // their reactors are still in use
}

int OpenExecs::started() const {
  const std::lock_guard lock(impl_->tally.mutex);
  return impl_->tally.started;
}

int OpenExecs::running() const {
  const std::lock_guard lock(impl_->tally.mutex);
  return impl_->tally.running;
}

void OpenExecs::Cut() {
  for (auto& stream : impl_->all) stream->Cut();
}

bool OpenExecs::AwaitEnd() {
  std::unique_lock lock(impl_->tally.mutex);
  return impl_->tally.changed.wait_for(lock, std::chrono::seconds(60),
                                       [&] { return impl_->tally.running == 0; });
}

double Metric(int admin_port, const std::string& name, const std::vector<std::string>& labels) {
  std::istringstream lines(HttpGet(admin_port, "/metrics"));
  double sum = -1;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name, 0) != 0 || (line[name.size()] != '{' && line[name.size()] != ' '))
      continue;
    const bool wanted = std::all_of(labels.begin(), labels.end(), [&](const std::string& label) {
      return line.find(label) != std::string::npos;
    });
    if (!wanted) continue;
    sum = std::max(sum, 0.0) + std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return sum;
}

}  // namespace bridge::testing
