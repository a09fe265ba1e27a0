// SPDX-License-Identifier: Apache-2.0
//
// Cases from the field about commands: what they print, how they end, what they leave running. Each
// on our own daemon and on a stock one, with the whole bridge in front.
#include <gmock/gmock.h>
#include <signal.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using nlohmann::json;

// A stock daemon is ours without the page that announces what it can do besides.
constexpr char kStock[] =
    R"(rule { half: EXECD route: "/v1/capabilities" action { answer { status: 404 } } } )";
// Far below what a held-up call would take, far above what a busy machine needs.
constexpr absl::Duration kSoon = absl::Seconds(8);

class ExecCases : public BridgeOverLocal, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    BridgeOverLocal::SetUp();
    Faults(GetParam());
    id_ = MustCreate();
  }
  v1::RunResponse MustRun(const std::string& line, absl::Duration deadline = absl::Seconds(60)) {
    v1::RunResponse response;
    EXPECT_THAT(Run(id_, line, &response, deadline), IsOk()) << line;
    return response;
  }
  std::string Output(const std::string& line) { return MustRun(line).stdout(); }

  // Starts a command that nobody waits for.
  std::string Detach(const std::string& line) {
    v1::ExecuteRequest request;
    request.set_sandbox_id(id_);
    request.set_detached(true);
    request.mutable_spec()->set_shell(line);
    grpc::ClientContext context;
    auto stream = execs_->Execute(&context, request);
    v1::ExecEvent event;
    EXPECT_TRUE(stream->Read(&event) && event.has_started());
    EXPECT_TRUE(stream->Finish().ok());
    return event.started().exec_id();
  }
  struct Events {
    std::string id, out, err;
    v1::ExecEvent::Drained drained;
  };
  static Events ReadAll(grpc::ClientReader<v1::ExecEvent>& stream) {
    Events all;
    v1::ExecEvent event;
    while (stream.Read(&event)) {
      if (event.has_started()) all.id = event.started().exec_id();
      for (const auto& output : event.output_batch().outputs()) {
        (output.stream() == v1::OUTPUT_STREAM_STDERR ? all.err : all.out) += output.data();
      }
      if (event.has_drained()) all.drained = event.drained();
    }
    EXPECT_THAT(FromGrpcStatus(stream.Finish()), IsOk());
    return all;
  }
  // All that a detached command prints, and its end.
  v1::RunResponse Follow(const std::string& exec_id) {
    v1::AttachExecRequest request;
    request.set_sandbox_id(id_);
    request.set_exec_id(exec_id);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    auto stream = execs_->AttachExec(&context, request);
    v1::RunResponse all;
    v1::ExecEvent event;
    while (stream->Read(&event)) {
      for (const auto& output : event.output_batch().outputs())
        *all.mutable_stdout() += output.data();
      if (event.has_exited()) *all.mutable_outcome() = event.exited().outcome();
    }
    EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
    return all;
  }

  std::string id_;
};

INSTANTIATE_TEST_SUITE_P(Daemons, ExecCases, ::testing::Values("", kStock),
                         [](const auto& info) { return info.param[0] == 0 ? "own" : "stock"; });

// A failed command lost its output and its code.
TEST_P(ExecCases, ACodeIsDataAndBothStreamsAreKept) {
  for (const int code : {1, 2, 42, 126, 127, 128, 137, 255, 300}) {
    const v1::RunResponse run = MustRun("echo o; echo e >&2; exit " + std::to_string(code));
    EXPECT_EQ(run.outcome().kind_case(), v1::Outcome::kExitCode) << code;
    EXPECT_EQ(run.outcome().exit_code(), code % 256);
    EXPECT_EQ(run.stdout(), "o\n");
    EXPECT_EQ(run.stderr(), "e\n");
  }
}

// A crash, or a kill for want of memory, looked like success.
TEST_P(ExecCases, DeathBySignalIsNeitherACodeNorSuccess) {
  for (const int signal : {SIGKILL, SIGSEGV, SIGTERM}) {
    const v1::RunResponse run = MustRun("echo o; kill -" + std::to_string(signal) + " $$");
    EXPECT_EQ(run.outcome().kind_case(), v1::Outcome::kSignal) << signal;
    EXPECT_EQ(run.outcome().signal().number(), signal);
    EXPECT_EQ(run.stdout(), "o\n");
  }
}

// Binary on stdout was cut at a NUL, or came back as text.
TEST_P(ExecCases, RandomBytesArriveAsTheyAre) {
  MustRun("head -c 300000 /dev/urandom >/tmp/b");
  std::string expected;
  ASSERT_TRUE(absl::Base64Unescape(Output("base64 -w0 /tmp/b"), &expected));
  ASSERT_EQ(expected.size(), 300'000u);
  EXPECT_TRUE(Output("cat /tmp/b") == expected);
  EXPECT_TRUE(MustRun("cat /tmp/b >&2").stderr() == expected);
}

// Several lines in one argument were refused or mangled.
TEST_P(ExecCases, AProgramOfSeveralLinesIsOneArgument) {
  v1::RunRequest request;
  request.set_sandbox_id(id_);
  for (const char* arg : {"python3", "-c", "def f():\n  print('\"$HOME\" *')\nf()"}) {
    request.mutable_spec()->mutable_argv()->add_args(arg);
  }
  v1::RunResponse response;
  ASSERT_THAT(Call(*execs_, &Execs::Run, request, &response), IsOk());
  EXPECT_EQ(response.stdout(), "\"$HOME\" *\n");
  EXPECT_EQ(response.outcome().exit_code(), 0);
}

// Warnings made a good build 'fail'.
TEST_P(ExecCases, TextOnStderrIsNoFailure) {
  const v1::RunResponse run = MustRun("echo warn >&2");
  EXPECT_EQ(run.outcome().kind_case(), v1::Outcome::kExitCode);
  EXPECT_EQ(run.outcome().exit_code(), 0);
  EXPECT_EQ(run.stdout(), "");
  EXPECT_EQ(run.stderr(), "warn\n");
}

// The limit of the call that starts a command is no limit of what others can have of it.
TEST_P(ExecCases, ALimitOfOutputIsOneCallsOwn) {
  v1::ExecuteRequest request;
  request.set_sandbox_id(id_);
  request.mutable_spec()->set_shell("printf 0123456789; printf abc >&2");
  request.mutable_spec()->set_max_output_bytes(4);
  request.mutable_spec()->set_on_disconnect(v1::ExecSpec::ON_DISCONNECT_DETACH);
  grpc::ClientContext context;
  auto stream = execs_->Execute(&context, request);
  const Events limited = ReadAll(*stream);
  EXPECT_EQ(limited.out, "0123");
  EXPECT_EQ(limited.err, "abc");
  EXPECT_EQ(limited.drained.stdout_bytes(), 10);
  EXPECT_TRUE(limited.drained.stdout_truncated());
  EXPECT_FALSE(limited.drained.stderr_truncated());

  v1::AttachExecRequest attach;
  attach.set_sandbox_id(id_);
  attach.set_exec_id(limited.id);
  grpc::ClientContext attach_context;
  auto attached = execs_->AttachExec(&attach_context, attach);
  const Events all = ReadAll(*attached);
  EXPECT_EQ(all.out, "0123456789");
  EXPECT_EQ(all.err, "abc");
  EXPECT_EQ(all.drained.stdout_bytes(), 10);
  EXPECT_FALSE(all.drained.stdout_truncated());
  EXPECT_FALSE(all.drained.lossy());
}

// 'cat' without input hung for ever.
TEST_P(ExecCases, ACommandThatReadsFindsTheEndOfItsInput) {
  for (const auto& [line, out] :
       {std::pair("cat", ""), {"read x; echo done", "done\n"}, {"wc -c", "0\n"}}) {
    EXPECT_EQ(Output(line), out);
    EXPECT_LE(took_, kSoon) << line;
  }
}

TEST_P(ExecCases, ADetachedCommandThatReadsFindsTheEndOfItsInput) {
  const v1::RunResponse run = Follow(Detach("cat; read x; wc -c"));
  EXPECT_EQ(run.stdout(), "0\n");
  EXPECT_EQ(run.outcome().exit_code(), 0);
}

// 'server &' made the call hang.
TEST_P(ExecCases, ChildrenInTheBackgroundDoNotHoldTheCall) {
  for (const char* line : {"sleep 61 & echo started", "(setsid sleep 61 &); echo started",
                           "nohup sleep 61 >/dev/null 2>&1 & echo started"}) {
    EXPECT_EQ(Output(line), "started\n") << line;
    EXPECT_LE(took_, kSoon) << line;
  }
}

// The server that a command left running was gone a moment later.
TEST_P(ExecCases, AServerInTheBackgroundOutlivesCallAndBridge) {
  MustRun(
      "mkdir /tmp/www; cd /tmp/www; echo served > f; nohup python3 -c '"
      "import http.server, os\n"
      "server = http.server.HTTPServer((\"127.0.0.1\", 0), http.server.SimpleHTTPRequestHandler)\n"
      "open(\"/tmp/port.new\", \"w\").write(str(server.server_port))\n"
      "os.rename(\"/tmp/port.new\", \"/tmp/port\")\n"
      "server.serve_forever()' >/tmp/log 2>&1 &");
  bridge_->Shutdown(absl::Seconds(5));
  Connect(local_->url());
  EXPECT_EQ(
      Output("while [ ! -e /tmp/port ]; do sleep 0.05; done; python3 -c '"
             "import urllib.request as u\n"
             "url = \"http://127.0.0.1:\" + open(\"/tmp/port\").read() + \"/f\"\n"
             "print(u.build_opener(u.ProxyHandler({})).open(url).read().decode(), end=\"\")'"),
      "served\n");
}

// After one aborted command every call on that sandbox hung.
TEST_P(ExecCases, AnAbortedCommandDoesNotHoldUpTheNext) {
  {
    v1::ExecuteRequest request;
    request.set_sandbox_id(id_);
    request.mutable_spec()->set_shell("trap '' TERM; echo up; sleep 600");
    grpc::ClientContext context;
    auto stream = execs_->Execute(&context, request);
    v1::ExecEvent event;
    bool up = false;
    while (!up && stream->Read(&event)) up = event.has_output_batch();
    ASSERT_TRUE(up);
    context.TryCancel();
    (void)stream->Finish();
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Output("echo ok"), "ok\n");
    EXPECT_LE(took_, kSoon);
  }
  std::vector<v1::RunResponse> runs(10);
  std::vector<std::thread> parallel;
  parallel.reserve(runs.size());
  for (v1::RunResponse& run : runs) {
    parallel.emplace_back([this, &run] {
      v1::RunRequest request;
      request.set_sandbox_id(id_);
      request.mutable_spec()->set_shell("echo ok");
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + kSoon));
      (void)execs_->Run(&context, request, &run);
    });
  }
  for (std::thread& call : parallel) call.join();
  for (const v1::RunResponse& run : runs) EXPECT_EQ(run.stdout(), "ok\n");
}

// And so did one whose stream the daemon never went on with.
TEST_P(ExecCases, AStreamThatHangsDoesNotHoldUpTheNext) {
  MustRun("true");  // what is asked once of a sandbox is asked
  local_->recorder().Clear();
  Faults(
      std::string(GetParam()) +
      R"(rule { half: EXECD method: "POST" route: "/v1/exec" times: 1 action { never_answer: true } }
            rule { half: EXECD method: "POST" route: "/command" times: 1 action { never_answer: true } })");
  std::thread stuck([this] {
    v1::RunRequest request;
    request.set_sandbox_id(id_);
    request.mutable_spec()->set_shell("echo stuck");
    v1::RunResponse response;
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(6)));
    EXPECT_FALSE(execs_->Run(&context, request, &response).ok());
  });
  const absl::Time until = absl::Now() + absl::Seconds(10);
  while (Count("POST", "/v1/exec") + Count("POST", "/command") == 0 && absl::Now() < until) {
    std::this_thread::yield();
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Output("echo ok"), "ok\n");
    EXPECT_LE(took_, kSoon);
  }
  stuck.join();
}

// Every command in a directory that is not there gave exit 255 and no text.
TEST_P(ExecCases, ADirectoryThatIsNotThereIsNoExitCode) {
  v1::RunRequest request;
  request.set_sandbox_id(id_);
  request.mutable_spec()->set_shell("pwd");
  v1::RunResponse response;
  for (const char* cwd : {"/no/such", "/etc/passwd"}) {
    request.mutable_spec()->set_cwd(cwd);
    ASSERT_THAT(Call(*execs_, &Execs::Run, request, &response), IsOk()) << cwd;
    EXPECT_EQ(response.outcome().spawn_failed().kind(), v1::Outcome::SpawnFailed::KIND_BAD_CWD)
        << cwd;
    EXPECT_EQ(response.stdout(), "");
  }
  request.mutable_spec()->set_cwd("");
  ASSERT_THAT(Call(*execs_, &Execs::Run, request, &response), IsOk());
  EXPECT_EQ(response.outcome().exit_code(), 0);
  EXPECT_THAT(response.stdout(), ::testing::StartsWith("/"));
}

// A command died after 60 ms, or a fraction was refused: seconds and milliseconds.
TEST_P(ExecCases, ATimeoutTravelsInWholeMilliseconds) {
  struct Case {
    int64_t seconds = 0;
    int32_t nanos = 0;
    int64_t milliseconds = 0;
  };
  int n = 0;
  // None is none, the longest is a year, and 50 ms may be over before the command is.
  for (const Case& c : {Case{60, 0, 60'000}, Case{2, 500'000'000, 2500}, Case{5, 0, 5000},
                        Case{0, 50'000'000, 50}, Case{31'536'000, 0, 31'536'000'000}, Case{}}) {
    const std::string marker = "true marker" + std::to_string(++n);
    v1::RunRequest request;
    request.set_sandbox_id(id_);
    request.mutable_spec()->set_shell(marker);
    if (c.milliseconds != 0) {
      request.mutable_spec()->mutable_timeout()->set_seconds(c.seconds);
      request.mutable_spec()->mutable_timeout()->set_nanos(c.nanos);
    }
    v1::RunResponse response;
    ASSERT_THAT(Call(*execs_, &Execs::Run, request, &response), IsOk());
    json sent;
    for (const auto& received : local_->recorder().requests()) {
      if (received.method == "POST" && received.body.find(marker) != std::string::npos) {
        sent = json::parse(received.body);
      }
    }
    ASSERT_TRUE(sent.is_object()) << marker;
    const json timeout = sent.contains("timeout") ? sent["timeout"] : sent["timeout_ms"];
    if (c.milliseconds == 0) {
      EXPECT_TRUE(timeout.is_null()) << sent;
      continue;
    }
    EXPECT_TRUE(timeout.is_number_integer()) << sent;
    EXPECT_EQ(timeout, c.milliseconds);
    if (c.seconds > 0) {
      EXPECT_EQ(response.outcome().kind_case(), v1::Outcome::kExitCode) << sent;
    }
  }
}

// A result was short and looked complete.
TEST_P(ExecCases, ACappedResultSaysHowMuchThereWas) {
  const v1::RunResponse run = MustRun("seq 1 400000; exit 5");
  EXPECT_EQ(run.stdout().size(), size_t{1} << 20);
  EXPECT_TRUE(run.stdout_truncated());
  EXPECT_FALSE(run.stderr_truncated());
  EXPECT_EQ(run.stdout_bytes_produced(), 2'688'895);  // as `seq 1 400000 | wc -c` says
  EXPECT_EQ(run.outcome().exit_code(), 5);
}

// A background command counted as finished as soon as it had started.
TEST_P(ExecCases, ADetachedCommandRunsUntilItEnds) {
  const std::string id = Detach("while [ ! -e /tmp/go ]; do sleep 0.02; done; exit 7");
  // A stock daemon may not know a command yet whose id it has just told.
  Faults(std::string(GetParam()) +
         R"(rule { half: EXECD route: "/command/status/{id}" times: 2 action { answer { status: 404
              body: '{"code":"NOT_FOUND","message":"command not found"}' } } })");
  v1::GetExecRequest get;
  get.set_sandbox_id(id_);
  get.set_exec_id(id);
  v1::ExecInfo info;
  ASSERT_THAT(Call(*execs_, &Execs::GetExec, get, &info), IsOk());
  EXPECT_TRUE(info.running());
  EXPECT_FALSE(info.has_outcome());
  MustRun("touch /tmp/go");
  EXPECT_EQ(Follow(id).outcome().exit_code(), 7);
  info.Clear();
  ASSERT_THAT(Call(*execs_, &Execs::GetExec, get, &info), IsOk());
  EXPECT_FALSE(info.running());
  EXPECT_EQ(info.outcome().exit_code(), 7);
}

}  // namespace
}  // namespace bridge
