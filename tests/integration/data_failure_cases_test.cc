// SPDX-License-Identifier: Apache-2.0
//
// Cases of sandboxes that fail in mid-work: what stands between answers in the daemon's place, the
// daemon refuses, says nothing, or goes away with everything that ran.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bridge/base/error.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using ::testing::AllOf;

constexpr char kStock[] =
    R"(rule { half: EXECD route: "/v1/capabilities" action { answer { status: 404 } } } )";
using Files = v1::FileService::Stub;
using Processes = v1::ProcessService::Stub;
using Code = absl::StatusCode;

class DataFailureCases : public BridgeOverLocal, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    BridgeOverLocal::SetUp();
    Faults(GetParam());
    id_ = MustCreate();
    Stubs();
    v1::RunResponse run;
    ASSERT_THAT(Run(id_, "echo content > /tmp/f", &run), IsOk());
  }
  void Stubs() {
    files_ = v1::FileService::NewStub(channel_);
    processes_ = v1::ProcessService::NewStub(channel_);
  }
  // A bridge that knows nothing of the sandbox yet.
  void ConnectAnew(bool use_server_proxy = false) {
    Connect(local_->url(), use_server_proxy);
    Stubs();
  }
  // From now on every request to the daemon gets this answer.
  void DaemonAnswers(const std::string& answer, const std::string& routes = "") {
    Faults(std::string(GetParam()) + "rule { half: EXECD " + routes + " action { answer { " +
           answer + " } } }");
  }

  absl::Status RunOne(absl::Duration deadline = absl::Seconds(60)) {
    v1::RunResponse run;
    return Run(id_, "echo once", &run, deadline);
  }
  absl::Status ReadOne(absl::Duration deadline = absl::Seconds(60)) {
    v1::ReadFileRequest request;
    request.set_sandbox_id(id_);
    request.set_path("/tmp/f");
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    const absl::Time start = absl::Now();
    auto stream = files_->ReadFile(&context, request);
    v1::ReadFileChunk chunk;
    while (stream->Read(&chunk)) {
    }
    const absl::Status status = FromGrpcStatus(stream->Finish());
    took_ = absl::Now() - start;
    return status;
  }
  // Unary calls about files and processes have a lane of their own, which asks once, too.
  void KnowTheSandbox() {
    v1::ListProcessesRequest list;
    list.set_sandbox_id(id_);
    v1::ListProcessesResponse listed;
    EXPECT_THAT(Call(*processes_, &Processes::ListProcesses, list, &listed), IsOk());
  }
  // Files of the bridge's own in the sandbox that are not gone within a while.
  std::string Leftovers() {
    // A command of a stock daemon has a folder of its own while it runs.
    const std::string find =
        "find /tmp -name '.sandbox-bridge-*.in' -o -name '.sandbox-bridge-*.tmp'";
    v1::RunResponse run;
    const absl::Time until = absl::Now() + absl::Seconds(10);
    do {
      EXPECT_THAT(Run(id_, find, &run), IsOk());
    } while (!run.stdout().empty() && absl::Now() < until);
    return run.stdout();
  }
  // Folders of commands that are not gone within a while, but for that of the command that looks.
  int FoldersLeft() {
    const int own = *GetParam() != '\0' ? 1 : 0;
    v1::RunResponse run;
    const absl::Time until = absl::Now() + absl::Seconds(10);
    do {
      EXPECT_THAT(Run(id_, "find /tmp -name '.sandbox-bridge-*' -type d | wc -l", &run), IsOk());
    } while (std::stoi("0" + run.stdout()) > own && absl::Now() < until);
    return std::stoi("0" + run.stdout()) - own;
  }
  absl::Status StartOne(v1::StartProcessResponse* started, const std::string& line = "cat",
                        absl::Duration deadline = absl::Seconds(60)) {
    v1::StartProcessRequest request;
    request.set_sandbox_id(id_);
    request.mutable_spec()->set_shell(line);
    return Call(*processes_, &Processes::StartProcess, request, started, deadline);
  }
  absl::Status AttachOne(const std::string& process_id, absl::Duration deadline) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    const absl::Time start = absl::Now();
    auto stream = processes_->AttachProcess(&context);
    v1::AttachProcessRequest request;
    request.mutable_attach()->set_sandbox_id(id_);
    request.mutable_attach()->set_process_id(process_id);
    stream->Write(request);
    v1::ProcessEvent event;
    while (stream->Read(&event)) {
    }
    const absl::Status status = FromGrpcStatus(stream->Finish());
    took_ = absl::Now() - start;
    return status;
  }

  std::unique_ptr<Files> files_;
  std::unique_ptr<Processes> processes_;
  std::string id_;
};

INSTANTIATE_TEST_SUITE_P(Daemons, DataFailureCases, ::testing::Values("", kStock),
                         [](const auto& info) { return info.param[0] == 0 ? "own" : "stock"; });

// 'Invalid character <' instead of a cause.
TEST_P(DataFailureCases, WebPagesInTheDaemonsPlace) {
  const std::string html = R"( header { name: "Content-Type" value: "text/html" } body: ')";
  const std::string page = "<html><title>Bad Gateway</title>" + std::string(2000, 'x') + "</html>'";
  for (const std::string status : {"502", "503", "504"}) {
    std::string answer = "status: ";
    answer += status;
    answer += html;
    answer += page;
    DaemonAnswers(answer);
    for (const absl::Status& failure : {RunOne(), ReadOne()}) {
      EXPECT_EQ(failure.code(), Code::kUnavailable) << failure;
      EXPECT_THAT(failure, AllOf(HasMessage(status), HasDetail("upstream_status", status)));
      EXPECT_LE(failure.message().size(), 500u);
    }
  }
  DaemonAnswers("status: 400" + html + "<html><title>Corp</title>Please log in</html>'");
  for (const absl::Status& failure : {RunOne(), ReadOne()}) {
    EXPECT_THAT(failure, AllOf(HasReason("UPSTREAM_UNAUTHENTICATED"), HasMessage("web page")));
  }
}

// The delay was lost, and the command was sent again.
TEST_P(DataFailureCases, TooManyRequestsToTheDaemon) {
  local_->recorder().Clear();
  DaemonAnswers(R"(status: 429 header { name: "Retry-After" value: "7" } body: "{}")");
  const absl::Status run = RunOne();
  EXPECT_THAT(run, HasReason("QUOTA_EXCEEDED"));
  EXPECT_EQ(RetryAfterOf(run), absl::Seconds(7));
  EXPECT_EQ(Count("POST", "/v1/exec") + Count("POST", "/command"), 1u);
  const absl::Status read = ReadOne();
  EXPECT_THAT(read, HasReason("QUOTA_EXCEEDED"));
  EXPECT_EQ(RetryAfterOf(read), absl::Seconds(7));
}

// A wrong key looked like something else.
TEST_P(DataFailureCases, ADaemonThatRefusesAKnownCaller) {
  for (const int status : {401, 403}) {
    DaemonAnswers("status: " + std::to_string(status) + R"( body: '{"error":"Unauthorized"}')");
    for (const absl::Status& failure : {RunOne(), ReadOne()}) {
      EXPECT_THAT(failure, AllOf(HasReason(status == 401 ? "UPSTREAM_UNAUTHENTICATED"
                                                         : "UPSTREAM_PERMISSION_DENIED"),
                                 HasDetail("hop", "sandbox")));
    }
  }
}

// The same status meant one thing to one call and another to the next.
TEST_P(DataFailureCases, AStatusHasOneMeaning) {
  const struct {
    int status;
    Code code;
  } kCases[] = {
      {400, Code::kInvalidArgument},  {401, Code::kUnauthenticated},
      {403, Code::kPermissionDenied}, {405, Code::kInternal},
      {408, Code::kDeadlineExceeded}, {409, Code::kAborted},
      {410, Code::kInternal},         {413, Code::kInvalidArgument},
      {422, Code::kInvalidArgument},  {429, Code::kResourceExhausted},
      {500, Code::kInternal},         {501, Code::kUnimplemented},
      {502, Code::kUnavailable},      {503, Code::kUnavailable},
      {504, Code::kUnavailable},
  };
  for (const auto& c : kCases) {
    DaemonAnswers("status: " + std::to_string(c.status) + R"( body: '{"code":"X","message":"m"}')");
    v1::StartProcessResponse started;
    for (const absl::Status& failure : {RunOne(), ReadOne(), StartOne(&started)}) {
      EXPECT_EQ(failure.code(), c.code) << c.status << ": " << failure;
      EXPECT_THAT(failure, HasDetail("upstream_status", std::to_string(c.status)));
    }
  }
}

// Hours of retries against a dead sandbox.
TEST_P(DataFailureCases, ADeadSandboxIsGivenUpByEveryCall) {
  ConnectAnew();
  DaemonAnswers("status: 502");
  v1::StartProcessResponse started;
  EXPECT_THAT(ReadOne(), HasReason("SANDBOX_UNREACHABLE"));
  EXPECT_LE(took_, absl::Seconds(15));
  EXPECT_THAT(StartOne(&started), HasReason("SANDBOX_UNREACHABLE"));
  EXPECT_LE(took_, absl::Seconds(15));
}

// Accepts, and never answers: everything blocked.
TEST_P(DataFailureCases, ASilentDaemonIsWaitedForAsLongAsTheCallerWants) {
  v1::StartProcessResponse started;
  ASSERT_THAT(StartOne(&started), IsOk());
  const auto silent = [this](const std::string& routes) {
    Faults(std::string(GetParam()) + "rule { half: EXECD " + routes +
           " action { never_answer: true } }");
  };
  constexpr absl::Duration kDeadline = absl::Seconds(2), kBound = absl::Seconds(5);
  silent("");
  EXPECT_EQ(ReadOne(kDeadline).code(), Code::kDeadlineExceeded);
  EXPECT_LE(took_, kBound);
  EXPECT_EQ(RunOne(kDeadline).code(), Code::kDeadlineExceeded);
  EXPECT_LE(took_, kBound);
  silent(R"(route: "/pty/{id}/ws")");
  EXPECT_EQ(AttachOne(started.process_id(), kDeadline).code(), Code::kDeadlineExceeded);
  EXPECT_LE(took_, kBound);
  ConnectAnew();
  silent(R"(route: "/ping")");
  EXPECT_EQ(RunOne(kDeadline).code(), Code::kDeadlineExceeded);
  EXPECT_LE(took_, kBound);
  v1::Sandbox sandbox;
  EXPECT_THAT(Get(id_, &sandbox), IsOk());  // others are not concerned
  Faults(GetParam());
}

// A write that was cut while its place was made left an empty file beside the target.
TEST_P(DataFailureCases, AWriteThatIsCutAtItsBeginningLeavesNothing) {
  KnowTheSandbox();
  Faults(std::string(GetParam()) +
         R"(rule { half: EXECD method: "POST" route: "/command" times: 1
                   action { hang_after_bytes: 1 } })");
  v1::WriteSmallFileRequest request;
  request.set_sandbox_id(id_);
  request.mutable_options()->set_path("/tmp/d/private");
  request.mutable_options()->set_mode(0600);
  request.mutable_options()->set_create_parents(true);
  request.set_data("x");
  v1::WriteFileResponse written;
  const absl::Status status =
      Call(*files_, &Files::WriteSmallFile, request, &written, absl::Seconds(3));
  EXPECT_EQ(status.ok(), *GetParam() == '\0') << status;
  Faults(GetParam());
  EXPECT_EQ(Leftovers(), "");
}

// Input of a command that the daemon refused stayed in the sandbox, for everyone to read.
TEST_P(DataFailureCases, InputOfARefusedCommandIsNotLeftBehind) {
  DaemonAnswers("status: 500", R"(method: "POST" route: "/command")");
  v1::RunRequest request;
  request.set_sandbox_id(id_);
  request.mutable_spec()->set_shell("cat >/dev/null");
  request.mutable_spec()->set_stdin(std::string(100'000, 's'));
  v1::RunResponse run;
  const bool stock = *GetParam() != '\0';
  EXPECT_EQ(Call(*execs_, &Execs::Run, request, &run).ok(), !stock);
  Faults(GetParam());
  EXPECT_EQ(Leftovers(), "");
  EXPECT_EQ(FoldersLeft(), 0);
}

// A daemon need not be able to make folders: the command's shell is.
TEST_P(DataFailureCases, ADaemonThatMakesNoFolderRunsCommands) {
  DaemonAnswers("status: 404", R"(method: "POST" route: "/directories")");
  v1::RunResponse run;
  ASSERT_THAT(Run(id_, "echo out; echo err >&2; exit 3", &run), IsOk());
  EXPECT_EQ(run.stdout(), "out\n");
  EXPECT_EQ(run.stderr(), "err\n");
  EXPECT_EQ(run.outcome().exit_code(), 3);
  EXPECT_EQ(FoldersLeft(), 0);
}

// Output whose last fetch was refused once was gone without a word.
TEST_P(DataFailureCases, OutputIsFetchedAgainWhenTheLastFetchFails) {
  for (const char* broken : {"answer { status: 503 }", "reset: true", "close_after_bytes: 3"}) {
    Faults(std::string(GetParam()) +
           R"(rule { half: EXECD route: "/files/download" times: 2 action { )" + broken + " } }");
    v1::RunResponse run;
    ASSERT_THAT(Run(id_, "printf 0123456789; printf abcdefghij >&2", &run), IsOk()) << broken;
    EXPECT_EQ(run.stdout(), "0123456789") << broken;
    EXPECT_EQ(run.stderr(), "abcdefghij") << broken;
    EXPECT_FALSE(run.lossy()) << broken;
  }
}

// A start that broke off in the middle, or whose caller left, left a process that nobody knew of.
TEST_P(DataFailureCases, AProcessThatNobodyWasToldOfIsForgotten) {
  KnowTheSandbox();
  size_t forgotten = 0;
  // In the order of a start: when it is noted down, begun, and when it is asked how that went.
  for (const char* broken :
       {R"(method: "POST" route: "/command" times: 1 action { never_answer: true })",
        R"(method: "POST" route: "/command" times: 1 action { answer { status: 500 } })",
        R"(route: "/pty/{id}/ws" action { close: true })",
        R"(method: "POST" route: "/command" first: 2 times: 1 action { never_answer: true })"}) {
    Faults(std::string(GetParam()) + "rule { half: EXECD " + broken + " }");
    v1::StartProcessResponse started;
    EXPECT_FALSE(StartOne(&started, "sleep 6161", absl::Seconds(3)).ok()) << broken;
    EXPECT_EQ(started.process_id(), "") << broken;
    EXPECT_TRUE(WaitFor("DELETE", "/pty/{id}", ++forgotten)) << broken;
    Faults(GetParam());
    v1::ListProcessesRequest list;
    list.set_sandbox_id(id_);
    v1::ListProcessesResponse listed;
    const absl::Time until = absl::Now() + absl::Seconds(10);
    do {
      listed.Clear();
      ASSERT_THAT(Call(*processes_, &Processes::ListProcesses, list, &listed), IsOk());
    } while (listed.processes_size() > 0 && absl::Now() < until);
    EXPECT_EQ(listed.processes_size(), 0) << broken;
    v1::RunResponse run;
    ASSERT_THAT(Run(id_, "pgrep -f '[s]leep 6161'", &run), IsOk());
    EXPECT_EQ(run.stdout(), "") << broken;
  }
}

// After a restart of the server nothing worked until the bridge was restarted, too.
TEST_P(DataFailureCases, ServerAndSandboxesGoAwayInMidWork) {
  v1::RunResponse run;
  ASSERT_THAT(Run(id_, "head -c 100000000 /dev/zero > /tmp/f", &run), IsOk());
  v1::StartProcessResponse started;
  ASSERT_THAT(StartOne(&started), IsOk());

  grpc::ClientContext reading;
  v1::ReadFileRequest read;
  read.set_sandbox_id(id_);
  read.set_path("/tmp/f");
  auto download = files_->ReadFile(&reading, read);
  v1::ReadFileChunk chunk;
  ASSERT_TRUE(download->Read(&chunk));

  constexpr int kCommands = 3;
  grpc::ClientContext executing[kCommands];
  std::vector<std::unique_ptr<grpc::ClientReader<v1::ExecEvent>>> commands;
  v1::ExecEvent event;
  for (grpc::ClientContext& context : executing) {
    v1::ExecuteRequest execute;
    execute.set_sandbox_id(id_);
    execute.mutable_spec()->set_shell("echo up; sleep 600");
    commands.push_back(execs_->Execute(&context, execute));
    bool up = false;
    while (!up && commands.back()->Read(&event)) up = event.has_output_batch();
    ASSERT_TRUE(up);
  }

  absl::Status attached;
  std::thread attachment([&] { attached = AttachOne(started.process_id(), absl::Seconds(60)); });
  ASSERT_TRUE(WaitFor("GET", "/pty/{id}", 1));

  const int port = local_->port();
  local_.reset();
  const absl::Time gone = absl::Now();
  while (download->Read(&chunk)) {
  }
  EXPECT_EQ(FromGrpcStatus(download->Finish()).code(), Code::kUnavailable);
  for (const auto& command : commands) {
    v1::ExecEvent::Exited exited;
    while (command->Read(&event)) {
      if (event.has_exited()) exited = event.exited();
    }
    EXPECT_THAT(FromGrpcStatus(command->Finish()), IsOk());
    EXPECT_TRUE(exited.outcome().has_lost()) << exited.DebugString();
    EXPECT_FALSE(exited.has_ran_for()) << "nobody saw its end";
  }
  attachment.join();
  EXPECT_EQ(attached.code(), Code::kUnavailable) << attached;
  EXPECT_LE(absl::Now() - gone, absl::Seconds(15));  // commands are looked for ten
  EXPECT_EQ(RunOne().code(), Code::kUnavailable);
  EXPECT_LE(took_, absl::Seconds(5));

  local::LocalOptions options;
  options.api_key = kKey;
  options.port = port;
  options.intercept_execd = true;
  auto local = local::LocalOpenSandbox::Start(std::move(options));
  ASSERT_TRUE(local.ok()) << local.status();
  local_ = *std::move(local);
  EXPECT_THAT(RunOne(), HasReason("SANDBOX_NOT_FOUND"));
  id_ = MustCreate();
  EXPECT_THAT(RunOne(), IsOk());
}

}  // namespace
}  // namespace bridge
