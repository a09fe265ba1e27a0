// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/client/over_grpc.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "sandbox/bridge/v1/bridge.grpc.pb.h"
#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"

namespace bridge::bench {
namespace {

namespace v1 = sandbox::bridge::v1;

// What went wrong; empty when nothing did.
std::string Why(const grpc::Status& status) {
  if (status.ok()) return "";
  return "gRPC status " + std::to_string(status.error_code()) + ": " + status.error_message();
}

// Lines may be cut anywhere between messages.
class Lines {
 public:
  explicit Lines(bool stamped) : stamped_(stamped) {}
  void Take(const std::string& data, Sample& sample) {
    if (!stamped_) {
      sample.items += std::count(data.begin(), data.end(), '\n');
      return;
    }
    rest_ += data;
    size_t from = 0;
    for (size_t end; (end = rest_.find('\n', from)) != std::string::npos; from = end + 1) {
      ++sample.items;
      sample.latencies.push_back(Now() - std::stod(rest_.substr(from, end - from)) / 1e9);
    }
    rest_.erase(0, from);
  }

 private:
  bool stamped_;
  std::string rest_;
};

}  // namespace

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 20);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

Sample GrpcEcho(const std::shared_ptr<grpc::Channel>& channel, int calls) {
  auto stub = v1::BridgeService::NewStub(channel);
  return Timed(calls, [&stub] {
    grpc::ClientContext context;
    v1::ServerInfo info;
    return Why(stub->GetServerInfo(&context, {}, &info));
  });
}

Sample GrpcUnary(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                 int calls, bool gaps) {
  auto stub = v1::SandboxService::NewStub(channel);
  v1::GetSandboxRequest request;
  request.set_sandbox_id(sandbox_id);
  std::mt19937 random(20261130);
  std::uniform_real_distribution<double> gap(0.7, 1.6);
  const auto call = [&] {
    grpc::ClientContext context;
    v1::Sandbox sandbox;
    return Why(stub->GetSandbox(&context, request, &sandbox));
  };
  return Timed(calls, call, [&] {
    if (gaps) std::this_thread::sleep_for(std::chrono::duration<double>(gap(random)));
  });
}

Sample GrpcExec(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                const std::string& command, v1::Fidelity fidelity, bool stamped) {
  Sample sample;
  auto stub = v1::ExecService::NewStub(channel);
  v1::ExecuteRequest request;
  request.set_sandbox_id(sandbox_id);
  request.mutable_spec()->set_shell(command);
  request.mutable_spec()->set_fidelity(fidelity);
  grpc::ClientContext context;
  Lines lines(stamped);
  const double start = Now();
  auto reader = stub->Execute(&context, request);
  bool ended = false;
  for (v1::ExecEvent event; reader->Read(&event);) {
    if (event.has_output_batch()) {
      for (const auto& output : event.output_batch().outputs()) lines.Take(output.data(), sample);
    } else if (event.has_exited()) {
      ended = event.exited().outcome().exit_code() == 0 &&
              event.exited().outcome().kind_case() == v1::Outcome::kExitCode;
    }
  }
  const grpc::Status status = reader->Finish();
  sample.seconds = Now() - start;
  if (!status.ok()) sample.Fail(Why(status));
  if (!ended) sample.Fail("the command did not end with 0");
  return sample;
}

Sample GrpcCreate(const std::shared_ptr<grpc::Channel>& channel, const std::string& image,
                  int times) {
  Sample sample;
  auto stub = v1::SandboxService::NewStub(channel);
  v1::CreateSandboxRequest request;
  request.mutable_spec()->set_image(image);
  const double start = Now();
  for (int i = 0; i < times; ++i) {
    grpc::ClientContext creating, deleting;
    v1::CreateSandboxResponse made;
    const double begin = Now();
    grpc::Status status = stub->CreateSandbox(&creating, request, &made);
    sample.latencies.push_back(Now() - begin);
    ++sample.items;
    v1::DeleteSandboxRequest gone;
    gone.set_sandbox_id(made.sandbox().sandbox_id());
    v1::DeleteSandboxResponse deleted;
    if (status.ok()) status = stub->DeleteSandbox(&deleting, gone, &deleted);
    if (!status.ok()) sample.Fail(Why(status));
  }
  sample.seconds = Now() - start;
  return sample;
}

Sample GrpcDownload(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                    const std::string& path) {
  Sample sample;
  auto stub = v1::FileService::NewStub(channel);
  v1::ReadFileRequest request;
  request.set_sandbox_id(sandbox_id);
  request.set_path(path);
  grpc::ClientContext context;
  const double start = Now();
  auto reader = stub->ReadFile(&context, request);
  for (v1::ReadFileChunk chunk; reader->Read(&chunk);) {
    sample.items += static_cast<int64_t>(chunk.data().size());
  }
  const grpc::Status status = reader->Finish();
  sample.seconds = Now() - start;
  if (!status.ok()) sample.Fail(Why(status));
  return sample;
}

Sample GrpcUpload(const std::shared_ptr<grpc::Channel>& channel, const std::string& sandbox_id,
                  const std::string& path, int64_t bytes) {
  Sample sample;
  auto stub = v1::FileService::NewStub(channel);
  grpc::ClientContext context;
  v1::WriteFileResponse response;
  v1::WriteFileChunk chunk;
  chunk.mutable_header()->set_sandbox_id(sandbox_id);
  chunk.mutable_header()->mutable_options()->set_path(path);
  chunk.mutable_header()->set_size_bytes(bytes);
  const double start = Now();
  auto writer = stub->WriteFile(&context, &response);
  bool alive = writer->Write(chunk);
  chunk.set_data(std::string(256 << 10, '\0'));
  for (int64_t left = bytes; alive && left > 0; left -= 256 << 10) {
    if (left < 256 << 10) chunk.mutable_data()->resize(static_cast<size_t>(left));
    alive = writer->Write(chunk);
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  sample.seconds = Now() - start;
  sample.items = response.size_bytes();
  if (!status.ok()) sample.Fail(Why(status));
  if (status.ok() && response.size_bytes() != bytes) sample.Fail("another size was written");
  return sample;
}

}  // namespace bridge::bench
