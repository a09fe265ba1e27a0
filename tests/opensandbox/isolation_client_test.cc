// SPDX-License-Identifier: Apache-2.0
//
// Isolated sessions against a daemon that has them, with real shells and real processes.
#include "bridge/opensandbox/isolation_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "bridge/base/error.h"
#include "bridge/net/http.h"
#include "tests/fakes/execd_process.h"
#include "tests/fakes/fixed_directory.h"
#include "tests/fakes/isolating_daemon.h"
#include "tests/fakes/run_task.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using R = ErrorReason;
using RunSpec = IsolationClient::RunSpec;

struct Ran {
  absl::Status status;
  std::string out;
  std::optional<Outcome> outcome;
  ExecBatch last;
};

class IsolationClientTest : public ::testing::Test {
 protected:
  IsolationClientTest() : workspace_(daemon_.tmpdir() + "/w s") {
    std::filesystem::create_directory(workspace_);
  }
  ~IsolationClientTest() override { Settle(); }

  void Settle() {
    RunTask(loop_,
            [this]() -> Task<void> { co_await background_.Drain(loop_, absl::Seconds(30)); });
  }
  IsolatedSessionSpec Spec() {
    return {.workspace_path = workspace_, .workspace_source = workspace_};
  }
  absl::StatusOr<IsolatedSession> Open(IsolatedSessionSpec spec) {
    return RunTask(loop_, [&] { return client_.Open({}, box_, std::move(spec)); });
  }
  std::string Opened() {
    const auto session = Open(Spec());
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() ? session->id : "";
  }
  // Runs a script to its end; `seen` is called with all that was printed so far.
  Ran Run(const std::string& id, RunSpec spec, std::function<void(const std::string&)> seen = {},
          CancelSource* cancel = nullptr) {
    const auto body = [&]() -> Task<Ran> {
      Ran ran;
      const CallContext context;
      auto run = co_await client_.Run(context, box_, id, std::move(spec));
      ran.status = run.status();
      while (ran.status.ok() && !ran.last.drained) {
        ran.status = co_await (*run)->Next(&ran.last, absl::Seconds(5));
        for (const ExecOutput& output : ran.last.outputs) {
          EXPECT_EQ(output.offset, static_cast<int64_t>(ran.out.size()));
          ran.out += output.data;
        }
        if (ran.last.exited) ran.outcome = ran.last.exited;
        if (seen && !ran.last.outputs.empty()) seen(ran.out);
      }
      co_return ran;
    };
    return RunTask(loop_, body, cancel);
  }
  absl::StatusOr<std::vector<IsolatedSession>> List(std::string workspace = "") {
    return RunTask(loop_, [&] { return client_.List({}, box_, workspace); });
  }
  absl::StatusOr<bool> Close(const std::string& id) {
    return RunTask(loop_, [&] { return client_.Close({}, box_, id); });
  }
  // An argument of sleep that no other test has.
  std::string Nap() { return "7000." + std::to_string(getpid()) + std::to_string(++naps_); }

  const SandboxTarget box_{"box", ""};
  IsolatingDaemon daemon_;
  const std::string workspace_;
  int naps_ = 0;
  EventLoop loop_;
  HttpClient http_{loop_};
  TaskScope background_;
  FixedDirectory directory_{daemon_.url()};
  DaemonClient daemons_{http_, directory_};
  IsolationClient client_{daemons_, background_};
};

TEST_F(IsolationClientTest, FromOpenToClose) {
  const auto info = RunTask(loop_, [&] { return client_.Get({}, box_); });
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(info->available);
  const auto session = Open(Spec());
  ASSERT_TRUE(session.ok()) << session.status();
  const Ran ran =
      Run(session->id, {.script = "pwd; printf '%s\\n' \"$A\"; echo e >&2; printf end; exit 4",
                        .env = {{"A", "it's  $HOME"}}});
  ASSERT_TRUE(ran.status.ok()) << ran.status;
  EXPECT_EQ(ran.out, workspace_ + "\nit's  $HOME\ne\nend\n");
  EXPECT_EQ(ran.outcome, Outcome(ExitCode{4}));
  EXPECT_TRUE(ran.last.lossy);
  EXPECT_EQ(ran.last.stdout_bytes, static_cast<int64_t>(ran.out.size()));
  const auto list = List(workspace_);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ((*list)[0].id, session->id);
  EXPECT_EQ((*list)[0].workspace_path, workspace_);
  EXPECT_TRUE(List("/elsewhere")->empty());
  EXPECT_TRUE(*Close(session->id));
  EXPECT_FALSE(*Close(session->id));
  EXPECT_TRUE(List()->empty());
}

TEST_F(IsolationClientTest, AScriptCannotEndOrStarveTheSession) {
  const std::string id = Opened();
  EXPECT_EQ(Run(id, {.script = "exit 5"}).outcome, Outcome(ExitCode{5}));
  const Ran reader = Run(id, {.script = "cat; echo end of input"});
  EXPECT_EQ(reader.out, "end of input\n");
  EXPECT_EQ(Run(id, {.script = "kill -9 $$"}).outcome, Outcome(ExitCode{137}));
  const Ran broken = Run(id, {.script = "if true; then"});
  EXPECT_EQ(broken.outcome, Outcome(ExitCode{2}));
  EXPECT_THAT(broken.out, HasSubstr("syntax error"));
  EXPECT_EQ(Run(id, {.script = "cd /; A=1; set -e"}).outcome, Outcome(ExitCode{0}));
  EXPECT_EQ(Run(id, {.script = "echo A=$A; pwd"}).out, "A=\n" + workspace_ + "\n");
}

TEST_F(IsolationClientTest, ATimeoutKillsTheScriptAndNotTheSession) {
  const std::string id = Opened();
  const std::string nap = Nap();
  const Ran ran = Run(id, {.script = "trap '' INT TERM; echo on; sleep " + nap,
                           .timeout = absl::Milliseconds(300)});
  ASSERT_TRUE(ran.status.ok()) << ran.status;
  EXPECT_EQ(ran.out, "on\n");
  EXPECT_EQ(ran.outcome, Outcome(TimedOut{absl::Milliseconds(300)}));
  EXPECT_TRUE(SurvivorsWith(nap).empty());
  EXPECT_EQ(Run(id, {.script = "echo again"}).out, "again\n");
}

TEST_F(IsolationClientTest, ACallerWhoGoesAwayTakesTheScriptAlongAndNotTheSession) {
  const std::string id = Opened();
  const std::string nap = Nap();
  CancelSource cancel;
  const Ran ran = Run(
      id, {.script = "echo on; sleep " + nap},
      [&](const std::string&) { loop_.Post([&] { cancel.Cancel(); }); }, &cancel);
  EXPECT_EQ(ReasonOf(ran.status), R::ERROR_REASON_CANCELLED);
  Settle();
  EXPECT_TRUE(SurvivorsWith(nap).empty());
  EXPECT_EQ(Run(id, {.script = "echo again"}).out, "again\n");
}

TEST_F(IsolationClientTest, ChildrenOfEarlierScriptsLiveUntilTheSessionIsClosed) {
  const std::string id = Opened();
  const std::string nap = Nap();
  EXPECT_EQ(Run(id, {.script = "sleep " + nap + " >/dev/null 2>&1 &"}).outcome,
            Outcome(ExitCode{0}));
  EXPECT_EQ(ProcessesWith(nap).size(), 1u);
  EXPECT_EQ(Run(id, {.script = "true"}).outcome, Outcome(ExitCode{0}));
  EXPECT_EQ(ProcessesWith(nap).size(), 1u);
  // The namespace's end would take it along; without one it has to be ended here.
  for (const pid_t pid : ProcessesWith(nap)) kill(pid, SIGKILL);
}

TEST_F(IsolationClientTest, AnEndedSessionIsNotFound) {
  const std::string id = Opened();
  daemon_.KillSession(id);
  EXPECT_EQ(ReasonOf(Run(id, {.script = "true"}).status), R::ERROR_REASON_PROCESS_NOT_FOUND);
  EXPECT_EQ(ReasonOf(Run("no-such", {.script = "true"}).status), R::ERROR_REASON_PROCESS_NOT_FOUND);
  EXPECT_TRUE(List()->empty()) << "only those that are open";
}

TEST_F(IsolationClientTest, ASessionThatEndsMeanwhileLeavesNoMadeUpStatus) {
  const std::string id = Opened();
  const Ran ran = Run(id, {.script = "echo on; sleep " + Nap()},
                      [&](const std::string&) { daemon_.KillSession(id); });
  ASSERT_TRUE(ran.status.ok()) << ran.status;
  ASSERT_TRUE(ran.outcome.has_value());
  EXPECT_TRUE(std::holds_alternative<Lost>(*ran.outcome));
}

TEST_F(IsolationClientTest, MissingPlacesAreNamed) {
  IsolatedSessionSpec spec = Spec();
  spec.binds.push_back({workspace_ + "/none", "/x", false});
  const auto session = Open(spec);
  EXPECT_EQ(ReasonOf(session.status()), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_EQ(MetadataOf(session.status())["path_field"], "binds[0].source");
  // The field that was given.
  const std::string none = workspace_ + "/none";
  const absl::Status path = Open({.workspace_path = none, .workspace_source = none}).status();
  EXPECT_EQ(MetadataOf(path)["path_field"], "workspace_path") << path;
  spec = Spec();
  spec.workspace_source = none;
  const absl::Status source = Open(spec).status();
  EXPECT_EQ(MetadataOf(source)["path_field"], "workspace_source_path") << source;
  EXPECT_TRUE(daemon_.opened().empty());
}

TEST_F(IsolationClientTest, AGroupIsNeverRootsByAccident) {
  IsolatedSessionSpec spec = Spec();
  spec.user.uid = 54321;  // no account
  const auto session = Open(spec);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_EQ(daemon_.opened().size(), 1u);
  EXPECT_THAT(daemon_.opened()[0], HasSubstr(R"("gid":54321)"));
}

TEST_F(IsolationClientTest, AWorkspaceThatCannotBeEnteredLeavesNoSession) {
  IsolatedSessionSpec spec = Spec();
  spec.workspace_path = workspace_ + "/not there";
  const auto session = Open(spec);
  EXPECT_EQ(ReasonOf(session.status()), R::ERROR_REASON_PERMISSION_DENIED);
  Settle();
  EXPECT_EQ(daemon_.opened().size(), 1u);
  EXPECT_EQ(daemon_.live(), 0u);
}

TEST_F(IsolationClientTest, OlderDaemonsDoNotTellWorkspaces) {
  daemon_.tells_options = false;
  const std::string id = Opened();
  const auto all = List();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ((*all)[0].workspace_source, "");
  EXPECT_EQ(ReasonOf(List(workspace_).status()), R::ERROR_REASON_UNSUPPORTED_FEATURE);
}

TEST_F(IsolationClientTest, UnavailableIsAnAnswerAndARefusal) {
  daemon_.available = false;
  const auto info = RunTask(loop_, [&] { return client_.Get({}, box_); });
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_FALSE(info->available);
  EXPECT_EQ(info->detail, "bwrap: no such program");
  const auto session = Open(Spec());
  EXPECT_EQ(ReasonOf(session.status()), R::ERROR_REASON_UNSUPPORTED_FEATURE);
  EXPECT_EQ(MetadataOf(session.status())["feature"], "isolation");
  IsolatedSessionSpec missing = Spec();
  missing.binds.push_back({workspace_ + "/none", "/x", false});
  EXPECT_EQ(ReasonOf(Open(missing).status()), R::ERROR_REASON_UNSUPPORTED_FEATURE);
}

TEST(IsolationOnOtherDaemons, IsRefused) {
  ExecdProcess execd({"--extras=false"});
  EventLoop loop;
  HttpClient http{loop};
  TaskScope background;
  FixedDirectory directory{execd.url()};
  DaemonClient daemons{http, directory};
  IsolationClient client{daemons, background};
  const SandboxTarget box{"box", ""};
  const auto info = RunTask(loop, [&] { return client.Get({}, box); });
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_FALSE(info->available);
  EXPECT_EQ(info->detail, "this sandbox's daemon has no isolated sessions");
  const auto unsupported = [](const absl::Status& status) {
    EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_UNSUPPORTED_FEATURE) << status;
    EXPECT_EQ(MetadataOf(status)["feature"], "isolation");
  };
  const IsolatedSessionSpec spec{.workspace_path = "/tmp", .workspace_source = "/tmp"};
  unsupported(RunTask(loop, [&] { return client.Open({}, box, spec); }).status());
  const IsolatedSessionSpec none{.workspace_path = "/no such", .workspace_source = "/no such"};
  unsupported(RunTask(loop, [&] { return client.Open({}, box, none); }).status());
  unsupported(RunTask(loop, [&] { return client.List({}, box, ""); }).status());
  unsupported(
      RunTask(loop, [&] { return client.Run({}, box, "x", RunSpec{.script = "true"}); }).status());
  unsupported(RunTask(loop, [&] { return client.Close({}, box, "x"); }).status());
}

}  // namespace
}  // namespace bridge
