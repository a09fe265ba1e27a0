// SPDX-License-Identifier: Apache-2.0
//
// Commands, files and processes through gRPC, a whole bridge and a whole local OpenSandbox.
#include <signal.h>

#include <string>
#include <thread>
#include <vector>

#include "bridge/base/error.h"
#include "sandbox/bridge/v1/bridge.grpc.pb.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using R = ErrorReason;
using ::testing::ElementsAre;

class DataPlane : public BridgeOverLocal {
 protected:
  void SetUp() override {
    BridgeOverLocal::SetUp();
    files_ = v1::FileService::NewStub(channel_);
    processes_ = v1::ProcessService::NewStub(channel_);
    id_ = MustCreate();
  }

  // What Execute said, event by event.
  struct Events {
    absl::Status status;
    std::vector<std::string> order;
    std::string out, err;
    std::string exec_id;
    v1::Outcome outcome;
    v1::ExecEvent::Drained drained;
    size_t largest = 0;
  };
  Events Execute(v1::ExecuteRequest request) {
    request.set_sandbox_id(id_);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    auto stream = execs_->Execute(&context, request);
    Events events;
    v1::ExecEvent event;
    while (stream->Read(&event)) Take(event, &events);
    events.status = FromGrpcStatus(stream->Finish());
    return events;
  }
  static void Take(const v1::ExecEvent& event, Events* events) {
    events->largest = std::max(events->largest, event.ByteSizeLong());
    switch (event.event_case()) {
      case v1::ExecEvent::kStarted:
        events->order.push_back("started");
        events->exec_id = event.started().exec_id();
        break;
      case v1::ExecEvent::kOutputBatch:
        for (const auto& output : event.output_batch().outputs()) {
          std::string& text =
              output.stream() == v1::OUTPUT_STREAM_STDOUT ? events->out : events->err;
          EXPECT_EQ(output.offset(), static_cast<int64_t>(text.size()));
          text += output.data();
        }
        break;
      case v1::ExecEvent::kExited:
        events->order.push_back("exited");
        events->outcome = event.exited().outcome();
        break;
      case v1::ExecEvent::kDrained:
        events->order.push_back("drained");
        events->drained = event.drained();
        break;
      default:
        break;
    }
  }
  static v1::ExecuteRequest Shell(const std::string& line) {
    v1::ExecuteRequest request;
    request.mutable_spec()->set_shell(line);
    return request;
  }
  std::string Output(const std::string& line) {
    v1::RunResponse response;
    EXPECT_THAT(Run(id_, line, &response), IsOk());
    return response.stdout();
  }

  std::unique_ptr<v1::FileService::Stub> files_;
  std::unique_ptr<v1::ProcessService::Stub> processes_;
  std::string id_;
};

TEST_F(DataPlane, ExactBytesStreamsApartAndTheCode) {
  const Events events = Execute(Shell("printf 'a\\r\\n\\377b'; echo err >&2; exit 3"));
  EXPECT_THAT(events.status, IsOk());
  EXPECT_THAT(events.order, ElementsAre("started", "exited", "drained"));
  EXPECT_EQ(events.out,
            "a\r\n\xff"
            "b");
  EXPECT_EQ(events.err, "err\n");
  EXPECT_EQ(events.outcome.exit_code(), 3);
  EXPECT_EQ(events.drained.stdout_bytes(), 5);
  EXPECT_FALSE(events.drained.lossy());
  v1::RunResponse response;
  EXPECT_THAT(Run(id_, "printf 'a\\r\\n\\377b'; echo err >&2; exit 3", &response), IsOk());
  EXPECT_EQ(response.stdout(),
            "a\r\n\xff"
            "b");
  EXPECT_EQ(response.stderr(), "err\n");
  EXPECT_EQ(response.outcome().exit_code(), 3);
}

TEST_F(DataPlane, LongLinesTravelInSmallMessages) {
  const Events events = Execute(Shell("head -c 12582912 /dev/zero | base64 -w0"));
  EXPECT_EQ(events.out.size(), 16'777'216u);
  EXPECT_LT(events.largest, size_t{1} << 20);
  EXPECT_EQ(events.outcome.exit_code(), 0);
}

TEST_F(DataPlane, OutputBeyondTheLimitIsDeclared) {
  v1::ExecuteRequest request = Shell("seq 1 100000");
  request.mutable_spec()->set_max_output_bytes(10);
  const Events events = Execute(request);
  EXPECT_EQ(events.out, "1\n2\n3\n4\n5\n");
  EXPECT_TRUE(events.drained.stdout_truncated());
  EXPECT_FALSE(events.drained.stderr_truncated());
  EXPECT_EQ(events.drained.stdout_bytes(), 588'895);
  EXPECT_EQ(events.outcome.exit_code(), 0);
}

TEST_F(DataPlane, CutClientLeavesNoProcess) {
  const std::string nap = "8000." + std::to_string(getpid());
  {
    grpc::ClientContext context;
    v1::ExecuteRequest request = Shell("(trap '' TERM; sleep " + nap + ") & echo up; sleep " + nap);
    request.set_sandbox_id(id_);
    auto stream = execs_->Execute(&context, request);
    v1::ExecEvent event;
    bool up = false;
    while (!up && stream->Read(&event)) up = event.has_output_batch();
    EXPECT_TRUE(up);
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  // The sandbox itself is asked; a kill may take the daemon 3 s.
  const std::string count =
      "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep " + nap.substr(0, 4) +
      "[.]" + nap.substr(5) + "'";
  std::string left = "?";
  const absl::Time until = absl::Now() + absl::Seconds(15);
  while (left != "0\n" && absl::Now() < until) left = Output(count);
  EXPECT_EQ(left, "0\n");
}

TEST_F(DataPlane, DetachedExecIsFoundAgain) {
  v1::ExecuteRequest request =
      Shell("echo one; while [ ! -e /tmp/go ]; do sleep 0.01; done; echo two");
  request.set_detached(true);
  const Events started = Execute(request);
  EXPECT_THAT(started.order, ElementsAre("started"));
  v1::GetExecRequest get;
  get.set_sandbox_id(id_);
  get.set_exec_id(started.exec_id);
  v1::ExecInfo info;
  EXPECT_THAT(Call(*execs_, &Execs::GetExec, get, &info), IsOk());
  EXPECT_TRUE(info.running());
  Output("touch /tmp/go");
  v1::AttachExecRequest attach;
  attach.set_sandbox_id(id_);
  attach.set_exec_id(started.exec_id);
  grpc::ClientContext context;
  auto stream = execs_->AttachExec(&context, attach);
  Events events;
  v1::ExecEvent event;
  while (stream->Read(&event)) Take(event, &events);
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(events.out, "one\ntwo\n");
  EXPECT_EQ(events.outcome.exit_code(), 0);
}

TEST_F(DataPlane, MalformedRequestsNameTheirField) {
  const int before = CommandsWith("");
  v1::RunRequest request;
  v1::RunResponse response;
  request.mutable_spec()->set_shell("true");
  for (const std::string& bad :
       {std::string(), std::string("../sandboxes"), std::string("a/b"), std::string("a?x=1"),
        std::string("A B"), std::string("a\n"), std::string(10'000, 'a')}) {
    request.set_sandbox_id(bad);
    const absl::Status status = Call(*execs_, &Execs::Run, request, &response);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.substr(0, 20);
  }
  request.set_sandbox_id(id_);
  request.mutable_spec()->set_on_disconnect(v1::ExecSpec::ON_DISCONNECT_DETACH);
  EXPECT_EQ(ReasonOf(Call(*execs_, &Execs::Run, request, &response)),
            R::ERROR_REASON_INVALID_ARGUMENT);
  EXPECT_EQ(CommandsWith(""), before);
  request.mutable_spec()->clear_on_disconnect();
  request.set_sandbox_id("no-such-sandbox");
  EXPECT_EQ(ReasonOf(Call(*execs_, &Execs::Run, request, &response)),
            R::ERROR_REASON_SANDBOX_NOT_FOUND);
}

TEST_F(DataPlane, FilesGoInAndOut) {
  std::string content;
  for (int i = 0; i < 2'000'000; ++i) content += static_cast<char>(i * 7);
  v1::WriteFileResponse written;
  {
    grpc::ClientContext context;
    auto stream = files_->WriteFile(&context, &written);
    v1::WriteFileChunk chunk;
    chunk.mutable_header()->set_sandbox_id(id_);
    chunk.mutable_header()->mutable_options()->set_path("/workspace/../workspace/a b");
    chunk.mutable_header()->mutable_options()->set_mode(0640);
    chunk.mutable_header()->mutable_options()->set_create_parents(true);
    EXPECT_TRUE(stream->Write(chunk));
    for (size_t i = 0; i < content.size(); i += 262'144) {
      chunk.set_data(content.substr(i, 262'144));
      EXPECT_TRUE(stream->Write(chunk));
    }
    stream->WritesDone();
    EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
  }
  EXPECT_EQ(written.size_bytes(), 2'000'000);
  EXPECT_EQ(written.info().mode(), 0640u);
  EXPECT_EQ(written.info().path(), "/workspace/a b");
  EXPECT_EQ(Output("sha256sum '/workspace/a b'").substr(0, 64), written.sha256());
  v1::ReadFileRequest request;
  request.set_sandbox_id(id_);
  request.set_path("/workspace/a b");
  grpc::ClientContext context;
  auto stream = files_->ReadFile(&context, request);
  v1::ReadFileChunk chunk;
  ASSERT_TRUE(stream->Read(&chunk));
  EXPECT_EQ(chunk.info().size_bytes(), 2'000'000);
  std::string back;
  while (stream->Read(&chunk)) back += chunk.data();
  EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
  EXPECT_TRUE(back == content);
}

TEST_F(DataPlane, CancelledUploadLeavesTheOldFileAlone) {
  Output("echo old > /tmp/f");
  {
    grpc::ClientContext context;
    v1::WriteFileResponse written;
    auto stream = files_->WriteFile(&context, &written);
    v1::WriteFileChunk chunk;
    chunk.mutable_header()->set_sandbox_id(id_);
    chunk.mutable_header()->mutable_options()->set_path("/tmp/f");
    EXPECT_TRUE(stream->Write(chunk));
    chunk.set_data(std::string(200'000, 'x'));
    EXPECT_TRUE(stream->Write(chunk));
    context.TryCancel();
    EXPECT_FALSE(stream->Finish().ok());
  }
  std::string listing = "?";
  const absl::Time until = absl::Now() + absl::Seconds(15);
  while (listing != "old\n" && absl::Now() < until) {
    listing = Output("cat /tmp/f; ls -A /tmp | grep 'sandbox-bridge.*tmp'");
  }
  EXPECT_EQ(listing, "old\n");
}

TEST_F(DataPlane, ListsSearchesAndRefuses) {
  Output("mkdir -p /tmp/t/src/x; cd /tmp/t; touch a.py src/b.py src/x/c.py");
  v1::SearchRequest request;
  request.set_sandbox_id(id_);
  request.set_path("/tmp/t");
  request.set_pattern("src/**/*.py");
  grpc::ClientContext context;
  auto stream = files_->Search(&context, request);
  v1::FileInfoBatch batch;
  std::vector<std::string> found;
  while (stream->Read(&batch)) {
    for (const auto& entry : batch.entries()) found.push_back(entry.path());
  }
  EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
  EXPECT_THAT(found, ElementsAre("/tmp/t/src/b.py", "/tmp/t/src/x/c.py"));
  v1::RemoveRequest remove;
  v1::RemoveResponse removed;
  remove.set_sandbox_id(id_);
  for (const char* path : {"", "/", "relative", "/..", "/tmp/../"}) {
    remove.set_path(path);
    remove.set_recursive(true);
    EXPECT_EQ(ReasonOf(Call(*files_, &v1::FileService::Stub::Remove, remove, &removed)),
              R::ERROR_REASON_PATH_REJECTED)
        << path;
  }
}

TEST_F(DataPlane, TerminalEchoesAndEnds) {
  v1::StartProcessRequest start;
  start.set_sandbox_id(id_);
  start.mutable_spec()->set_shell("read line; echo \"got $line\"; read line; exit 4");
  start.mutable_spec()->mutable_terminal()->set_rows(30);
  v1::StartProcessResponse started;
  EXPECT_THAT(Call(*processes_, &v1::ProcessService::Stub::StartProcess, start, &started), IsOk());
  EXPECT_GT(started.pid(), 1);
  grpc::ClientContext context;
  auto stream = processes_->AttachProcess(&context);
  v1::AttachProcessRequest request;
  request.mutable_attach()->set_sandbox_id(id_);
  request.mutable_attach()->set_process_id(started.process_id());
  request.mutable_attach()->set_offset(0);
  EXPECT_TRUE(stream->Write(request));
  request.mutable_stdin()->set_data("hello\n");
  EXPECT_TRUE(stream->Write(request));
  std::string output;
  int64_t taken = 0;
  int code = -1;
  bool sent_all = false;
  bool drained = false;
  v1::ProcessEvent event;
  while (stream->Read(&event)) {
    if (event.has_output()) output += event.output().data();
    if (event.has_stdin_ack()) taken = event.stdin_ack().offset();
    // What a terminal took just before its end may stay untold.
    if (taken == 6 && output == "hello\r\ngot hello\r\n" && !sent_all) {
      sent_all = true;
      request.mutable_stdin()->set_offset(6);
      request.mutable_stdin()->set_data("bye\n");
      EXPECT_TRUE(stream->Write(request));
    }
    if (event.has_exited()) code = event.exited().outcome().exit_code();
    drained = drained || event.has_drained();
  }
  EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
  EXPECT_EQ(output, "hello\r\ngot hello\r\nbye\r\n");
  EXPECT_GE(taken, 6);
  EXPECT_EQ(code, 4);
  EXPECT_TRUE(drained);
  v1::SignalProcessRequest kill;
  v1::SignalProcessResponse killed;
  kill.set_sandbox_id(id_);
  kill.mutable_signal()->set_number(SIGTERM);
  for (int64_t pid : {0, 1, -1}) {
    kill.set_pid(pid);
    EXPECT_EQ(ReasonOf(Call(*processes_, &v1::ProcessService::Stub::SignalProcess, kill, &killed)),
              R::ERROR_REASON_INVALID_ARGUMENT);
  }
  kill.set_pid(999'999);
  EXPECT_EQ(ReasonOf(Call(*processes_, &v1::ProcessService::Stub::SignalProcess, kill, &killed)),
            R::ERROR_REASON_PROCESS_NOT_FOUND);
}

TEST_F(DataPlane, CapabilitiesAreThoseOfTheDaemon) {
  auto stub = v1::BridgeService::NewStub(channel_);
  v1::GetCapabilitiesRequest request;
  v1::GetCapabilitiesResponse response;
  request.set_sandbox_id(id_);
  EXPECT_THAT(Call(*stub, &v1::BridgeService::Stub::GetCapabilities, request, &response), IsOk());
  bool bytes = false;
  for (const auto& row : response.capabilities()) {
    if (row.feature() == "exec.bytes") bytes = row.level() == v1::Capability::LEVEL_FULL;
  }
  EXPECT_TRUE(bytes);
  EXPECT_NE(response.daemon(), "");
}

}  // namespace
}  // namespace bridge
