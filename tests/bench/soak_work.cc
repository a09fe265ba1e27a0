// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/soak_work.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "sandbox/bridge/v1/exec.grpc.pb.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"
#include "tests/fakes/execd_process.h"
#include "tests/integration/exec_storm.h"

namespace bridge::bench {
namespace {

namespace v1 = sandbox::bridge::v1;
using Channel = std::shared_ptr<grpc::Channel>;

constexpr int kLines = 2000;
constexpr size_t kFileBytes = 512 << 10;

std::string Why(const grpc::Status& status) {
  return "status " + std::to_string(status.error_code()) + ": " + status.error_message();
}

std::string Unary(const Channel& channel, const std::string& id) {
  auto stub = v1::SandboxService::NewStub(channel);
  for (int i = 0; i < 100; ++i) {
    grpc::ClientContext context;
    v1::GetSandboxRequest request;
    request.set_sandbox_id(id);
    v1::Sandbox sandbox;
    const grpc::Status status = stub->GetSandbox(&context, request, &sandbox);
    if (!status.ok()) return Why(status);
    if (sandbox.sandbox_id() != id) return "another sandbox";
  }
  return "";
}

std::string Command(const Channel& channel, const std::string& id) {
  auto stub = v1::ExecService::NewStub(channel);
  grpc::ClientContext context;
  v1::ExecuteRequest request;
  request.set_sandbox_id(id);
  request.mutable_spec()->set_shell("seq " + std::to_string(kLines) + "; echo err >&2; exit 3");
  auto reader = stub->Execute(&context, request);
  int64_t lines = 0, err = 0;
  int code = -1;
  for (v1::ExecEvent event; reader->Read(&event);) {
    for (const auto& output : event.output_batch().outputs()) {
      if (output.stream() == v1::OUTPUT_STREAM_STDERR) {
        err += static_cast<int64_t>(output.data().size());
      } else {
        for (const char c : output.data()) lines += c == '\n';
      }
    }
    if (event.has_exited()) code = event.exited().outcome().exit_code();
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return Why(status);
  if (lines == kLines && err == 4 && code == 3) return "";
  return std::to_string(lines) + " lines, " + std::to_string(err) + " bytes of stderr, code " +
         std::to_string(code);
}

std::string File(const Channel& channel, const std::string& id) {
  auto stub = v1::FileService::NewStub(channel);
  v1::WriteSmallFileRequest write;
  write.set_sandbox_id(id);
  write.mutable_options()->set_path("/tmp/soak");
  for (size_t i = 0; i < kFileBytes; ++i) write.mutable_data()->push_back(static_cast<char>(i * 7));
  grpc::ClientContext first, second;
  v1::WriteFileResponse written;
  grpc::Status status = stub->WriteSmallFile(&first, write, &written);
  if (!status.ok()) return Why(status);
  v1::ReadSmallFileRequest read;
  read.set_sandbox_id(id);
  read.set_path("/tmp/soak");
  v1::ReadSmallFileResponse content;
  status = stub->ReadSmallFile(&second, read, &content);
  if (!status.ok()) return Why(status);
  return content.data() == write.data() ? "" : "other bytes than were written";
}

std::string Terminal(const Channel& channel, const std::string& id) {
  auto stub = v1::ProcessService::NewStub(channel);
  grpc::ClientContext starting, attaching, deleting;
  v1::StartProcessRequest start;
  start.set_sandbox_id(id);
  start.mutable_spec()->set_shell("read x; echo got $x; exit 4");
  start.mutable_spec()->mutable_terminal()->set_columns(80);
  start.mutable_spec()->mutable_terminal()->set_rows(24);
  v1::StartProcessResponse started;
  grpc::Status status = stub->StartProcess(&starting, start, &started);
  if (!status.ok()) return Why(status);
  auto stream = stub->AttachProcess(&attaching);
  v1::AttachProcessRequest request;
  request.mutable_attach()->set_sandbox_id(id);
  request.mutable_attach()->set_process_id(started.process_id());
  request.mutable_attach()->set_offset(0);
  stream->Write(request);
  request.mutable_stdin()->set_data("hello\n");
  stream->Write(request);
  std::string output;
  int code = -1;
  for (v1::ProcessEvent event; stream->Read(&event);) {
    if (event.has_output()) output += event.output().data();
    if (event.has_exited()) code = event.exited().outcome().exit_code();
  }
  status = stream->Finish();
  if (!status.ok()) return Why(status);
  v1::DeleteProcessRequest end;
  end.set_sandbox_id(id);
  end.set_process_id(started.process_id());
  v1::DeleteProcessResponse gone;
  status = stub->DeleteProcess(&deleting, end, &gone);
  if (!status.ok()) return Why(status);
  if (code != 4) return "code " + std::to_string(code);
  return output.find("got hello\r\n") != std::string::npos ? "" : "output is missing";
}

std::string Cuts(const Channel& channel, const std::string& id) {
  static uint32_t seed = 0;
  const std::string token = "6000." + std::to_string(getpid());  // of our commands alone
  const auto storm =
      testing::CutExecs(channel, id, "echo up; exec sleep " + token, 50, 25, 150, ++seed);
  if (storm.refused != 0) return storm.first_refusal;
  // The kills come after the answer. Without this wait, rounds that are quicker than the kills
  // would fill the daemon; and a command that stays is what is looked for.
  const absl::Time until = absl::Now() + absl::Seconds(60);
  while (!ProcessesWith(token).empty()) {
    if (absl::Now() > until) return "commands are left a minute after their streams were cut";
    absl::SleepFor(absl::Milliseconds(20));
  }
  return "";
}

std::string Lifecycle(const Channel& channel) {
  auto stub = v1::SandboxService::NewStub(channel);
  grpc::ClientContext making, deleting;
  v1::CreateSandboxRequest request;
  request.mutable_spec()->set_image("base");
  request.mutable_spec()->mutable_ttl()->set_seconds(600);
  v1::CreateSandboxResponse made;
  grpc::Status status = stub->CreateSandbox(&making, request, &made);
  if (!status.ok()) return Why(status);
  v1::DeleteSandboxRequest end;
  end.set_sandbox_id(made.sandbox().sandbox_id());
  v1::DeleteSandboxResponse gone;
  status = stub->DeleteSandbox(&deleting, end, &gone);
  return status.ok() ? "" : Why(status);
}

}  // namespace

std::vector<Work> AllWork(const Channel& channel, const std::string& sandbox_id) {
  return {{"unary", [=] { return Unary(channel, sandbox_id); }},
          {"commands", [=] { return Command(channel, sandbox_id); }},
          {"files", [=] { return File(channel, sandbox_id); }},
          {"terminals", [=] { return Terminal(channel, sandbox_id); }},
          {"cuts", [=] { return Cuts(channel, sandbox_id); }},
          {"sandboxes", [=] { return Lifecycle(channel); }}};
}

}  // namespace bridge::bench
