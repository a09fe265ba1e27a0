// SPDX-License-Identifier: Apache-2.0
//
// Processes: how late a terminal shows what was typed, and many that do nothing.
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <iostream>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "tests/bench/client/over_grpc.h"

namespace bridge::bench {
namespace {

namespace v1 = sandbox::bridge::v1;
using Stub = v1::ProcessService::Stub;

// The id of a new terminal, "" when there is none.
std::string Start(Stub& stub, const std::string& sandbox_id, const std::string& program,
                  Sample& sample) {
  grpc::ClientContext context;
  v1::StartProcessRequest request;
  request.set_sandbox_id(sandbox_id);
  request.mutable_spec()->mutable_argv()->add_args(program);
  if (program == "sleep") request.mutable_spec()->mutable_argv()->add_args("3600");
  request.mutable_spec()->mutable_terminal()->set_rows(24);
  request.mutable_spec()->mutable_terminal()->set_columns(80);
  v1::StartProcessResponse response;
  const grpc::Status status = stub.StartProcess(&context, request, &response);
  if (!status.ok()) sample.Fail("StartProcess: " + status.error_message());
  return response.process_id();
}

void Delete(Stub& stub, const std::string& sandbox_id, const std::string& process_id) {
  grpc::ClientContext context;
  v1::DeleteProcessRequest request;
  request.set_sandbox_id(sandbox_id);
  request.set_process_id(process_id);
  v1::DeleteProcessResponse response;
  (void)stub.DeleteProcess(&context, request, &response);
}

v1::AttachProcessRequest Attach(const std::string& sandbox_id, const std::string& process_id) {
  v1::AttachProcessRequest request;
  request.mutable_attach()->set_sandbox_id(sandbox_id);
  request.mutable_attach()->set_process_id(process_id);
  request.mutable_attach()->mutable_keepalive_interval()->set_seconds(60);
  return request;
}

// What all attachments tell.
struct Tally {
  std::mutex mutex;
  std::condition_variable changed;
  int attached = 0;
  int running = 0;
  std::string first_end = {};  // why the first attachment ended
};

class Attachment : public grpc::ClientBidiReactor<v1::AttachProcessRequest, v1::ProcessEvent> {
 public:
  Attachment(Stub& stub, v1::AttachProcessRequest request, Tally& tally)
      : request_(std::move(request)), tally_(tally) {
    stub.async()->AttachProcess(&context_, this);
    StartWrite(&request_);
    StartRead(&event_);
    StartCall();
  }
  void Cut() { context_.TryCancel(); }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    exited_ = exited_ || event_.has_exited();
    if (event_.has_attached()) {
      const std::lock_guard lock(tally_.mutex);
      ++tally_.attached;
      tally_.changed.notify_all();
    }
    StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override {
    const std::lock_guard lock(tally_.mutex);
    --tally_.running;
    if (tally_.first_end.empty()) {
      tally_.first_end = std::to_string(status.error_code()) + " " + status.error_message() +
                         (exited_ ? ", after the process's end" : "");
    }
    tally_.changed.notify_all();
  }

 private:
  grpc::ClientContext context_;
  const v1::AttachProcessRequest request_;
  v1::ProcessEvent event_;
  bool exited_ = false;
  Tally& tally_;
};

}  // namespace

Sample GrpcTerminalEcho(const std::shared_ptr<grpc::Channel>& channel,
                        const std::string& sandbox_id, int keys) {
  Sample sample;
  auto stub = v1::ProcessService::NewStub(channel);
  const std::string id = Start(*stub, sandbox_id, "cat", sample);
  if (id.empty()) return sample;
  grpc::ClientContext context;
  auto stream = stub->AttachProcess(&context);
  stream->Write(Attach(sandbox_id, id));
  v1::ProcessEvent event;
  while (stream->Read(&event) && !event.has_attached()) {
  }
  const double start = Now();
  for (int i = 0; i < keys; ++i) {
    v1::AttachProcessRequest key;
    key.mutable_stdin()->set_offset(i);
    key.mutable_stdin()->set_data("x");
    const double typed = Now();
    stream->Write(key);
    bool shown = false;
    while (!shown && stream->Read(&event)) shown = event.has_output();
    if (!shown) {
      sample.Fail("the terminal ended");
      break;
    }
    sample.latencies.push_back(Now() - typed);
    ++sample.items;
  }
  sample.seconds = Now() - start;
  context.TryCancel();
  (void)stream->Finish();
  Delete(*stub, sandbox_id, id);
  return sample;
}

Sample GrpcIdleProcesses(const std::shared_ptr<grpc::Channel>& channel,
                         const std::vector<std::string>& sandbox_ids, int processes) {
  Sample sample;
  auto stub = v1::ProcessService::NewStub(channel);
  Tally tally;
  std::vector<std::pair<std::string, std::string>> ids;  // sandbox, process
  std::vector<std::unique_ptr<Attachment>> all;
  const double start = Now();
  for (int i = 0; i < processes && sample.failures == 0; ++i) {
    const std::string& sandbox_id = sandbox_ids[static_cast<size_t>(i) % sandbox_ids.size()];
    const std::string id = Start(*stub, sandbox_id, "sleep", sample);
    if (id.empty()) break;
    ids.emplace_back(sandbox_id, id);
    std::unique_lock lock(tally.mutex);
    ++tally.running;
    lock.unlock();
    all.push_back(std::make_unique<Attachment>(*stub, Attach(sandbox_id, id), tally));
    lock.lock();
    const auto attached = [&] { return tally.attached == static_cast<int>(all.size()); };
    if (!tally.changed.wait_for(lock, std::chrono::seconds(30), attached)) {
      sample.Fail("not all processes were attached to");
    }
  }
  sample.seconds = Now() - start;
  sample.items = tally.attached;
  std::cout << "{\"open\": " << tally.attached << "}" << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  std::unique_lock lock(tally.mutex);
  if (tally.running < static_cast<int>(all.size())) {
    sample.Fail("an attachment ended by itself: " + tally.first_end);
  }
  lock.unlock();
  for (auto& one : all) one->Cut();
  lock.lock();
  tally.changed.wait(lock, [&] { return tally.running == 0; });
  lock.unlock();
  for (const auto& [sandbox_id, id] : ids) Delete(*stub, sandbox_id, id);
  sample.latencies.push_back(0);
  return sample;
}

}  // namespace bridge::bench
