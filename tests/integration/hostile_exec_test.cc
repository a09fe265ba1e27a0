// SPDX-License-Identifier: Apache-2.0
//
// Hostile requests to every method about commands, processes and isolated sessions.
#include <string>

#include "tests/integration/hostile_fixture.h"

namespace bridge {
namespace {

// What an ExecSpec, and what a ProcessSpec, may not say.
template <class T>
void RefusesSpecs(T table, bool process) {
  table.Refuses("spec.argv.args", [](auto& r) { r.mutable_spec()->mutable_argv(); })
      .Refuses("spec.argv.args", [](auto& r) { r.mutable_spec()->mutable_argv()->add_args(""); })
      .Refuses("spec.argv.args[1]",
               [](auto& r) {
                 r.mutable_spec()->mutable_argv()->add_args("a");
                 r.mutable_spec()->mutable_argv()->add_args(kNul);
               })
      .Refuses("spec.shell", [](auto& r) { r.mutable_spec()->set_shell(""); })
      .Refuses("spec.shell", [](auto& r) { r.mutable_spec()->set_shell(kNul); })
      .Refuses("spec.shell",
               [](auto& r) { r.mutable_spec()->set_shell(std::string((2 << 20) + 1, 'a')); })
      .RefusesPaths(
          "spec.cwd", [](auto& r, const auto& path) { r.mutable_spec()->set_cwd(path); },
          /*may_be_empty=*/true)
      .Refuses("spec.env[0].name", [](auto& r) { r.mutable_spec()->add_env(); })
      .Refuses("spec.env[0].name", [](auto& r) { r.mutable_spec()->add_env()->set_name("A=B"); })
      .Refuses("spec.env[1].name",
               [](auto& r) {
                 r.mutable_spec()->add_env()->set_name("A");
                 r.mutable_spec()->add_env()->set_name("A");
               })
      .Refuses("spec.env[0].value",
               [](auto& r) {
                 r.mutable_spec()->add_env()->set_name("A");
                 r.mutable_spec()->mutable_env(0)->set_value(kNul);
               })
      .Refuses("spec.user", [](auto& r) { r.mutable_spec()->mutable_user(); })
      .Refuses("spec.user.name", [](auto& r) { r.mutable_spec()->mutable_user()->set_name("a:b"); })
      .Refuses("spec.user.ids.uid", [](auto& r) {
        r.mutable_spec()->mutable_user()->mutable_ids()->set_uid(4294967295u);
      });
  if (!process) table.Refuses("spec.command", [](auto& r) { r.mutable_spec()->clear_command(); });
}

TEST_F(HostileRequests, ExecuteAndRun) {
  v1::ExecuteRequest execute = To<v1::ExecuteRequest>();
  execute.mutable_spec()->set_shell("true");
  auto executes = TABLE(execs_, Execs, Execute, execute);
  v1::RunRequest run = To<v1::RunRequest>();
  run.mutable_spec()->set_shell("true");
  auto runs = TABLE(execs_, Execs, Run, run);
  const auto both = [](auto table) {
    table.RefusesTargets()
        .Refuses("spec.command", [](auto& r) { r.clear_spec(); })
        .Refuses("spec.timeout", [](auto& r) { r.mutable_spec()->mutable_timeout(); })
        .Refuses("spec.timeout",
                 [](auto& r) { r.mutable_spec()->mutable_timeout()->set_seconds(-1); })
        .Refuses("spec.timeout",
                 [](auto& r) { r.mutable_spec()->mutable_timeout()->set_seconds(INT64_MAX); })
        .Refuses("spec.timeout",
                 [](auto& r) {
                   r.mutable_spec()->mutable_timeout()->set_seconds(1);
                   r.mutable_spec()->mutable_timeout()->set_nanos(-1);
                 })
        .Refuses("spec.stdin",
                 [](auto& r) { r.mutable_spec()->set_stdin(std::string((8 << 20) + 1, 'i')); })
        .Refuses("spec.on_disconnect",
                 [](auto& r) {
                   r.mutable_spec()->set_on_disconnect(static_cast<v1::ExecSpec::OnDisconnect>(77));
                 })
        .Refuses("spec.fidelity",
                 [](auto& r) { r.mutable_spec()->set_fidelity(static_cast<v1::Fidelity>(-1)); })
        .Refuses("spec.max_output_bytes",
                 [](auto& r) { r.mutable_spec()->set_max_output_bytes(INT64_MIN); });
    RefusesSpecs(table, /*process=*/false);
  };
  both(executes);
  both(runs);
  for (const int64_t seconds : {int64_t{0}, int64_t{-5}, int64_t{3601}, INT64_MAX}) {
    executes.Refuses("keepalive_interval",
                     [&](auto& r) { r.mutable_keepalive_interval()->set_seconds(seconds); });
  }
  runs.Refuses("spec.max_output_bytes",
               [](auto& r) { r.mutable_spec()->set_max_output_bytes((1 << 20) + 1); });
  runs.Refuses("spec.on_disconnect", [](auto& r) {
    r.mutable_spec()->set_on_disconnect(v1::ExecSpec::ON_DISCONNECT_DETACH);
  });
  NothingWasSent();
}

// What a Signal may not say.
template <class T>
void RefusesSignals(T table) {
  table.Refuses("signal", [](auto& r) { r.clear_signal(); });
  for (const int number : {0, -9, 65, INT32_MAX}) {
    table.Refuses("signal.number", [&](auto& r) { r.mutable_signal()->set_number(number); });
  }
  for (const std::string& name : {std::string(), std::string("SIGNONE"), kNul}) {
    table.Refuses("signal.name", [&](auto& r) { r.mutable_signal()->set_name(name); });
  }
}

TEST_F(HostileRequests, TheOtherMethodsOfExecs) {
  v1::AttachExecRequest attach = To<v1::AttachExecRequest>();
  attach.set_exec_id("o.1");
  TABLE(execs_, Execs, AttachExec, attach)
      .RefusesTargets()
      .Refuses("exec_id", [](auto& r) { r.clear_exec_id(); })
      .Refuses("stdout_offset", [](auto& r) { r.set_stdout_offset(-1); })
      .Refuses("stderr_offset", [](auto& r) { r.set_stderr_offset(INT64_MIN); })
      .Refuses("keepalive_interval", [](auto& r) { r.mutable_keepalive_interval(); })
      .Refuses("on_disconnect",
               [](auto& r) { r.set_on_disconnect(static_cast<v1::ExecSpec::OnDisconnect>(3)); });
  v1::SignalExecRequest signal = To<v1::SignalExecRequest>();
  signal.set_exec_id("o.1");
  signal.mutable_signal()->set_number(15);
  auto signals = TABLE(execs_, Execs, SignalExec, signal);
  signals.RefusesTargets().Refuses("exec_id", [](auto& r) { r.clear_exec_id(); });
  RefusesSignals(signals);
  v1::GetExecRequest get = To<v1::GetExecRequest>();
  get.set_exec_id("o.1");
  TABLE(execs_, Execs, GetExec, get).RefusesTargets().Refuses("exec_id", [](auto& r) {
    r.clear_exec_id();
  });
  NothingWasSent();
}

TEST_F(HostileRequests, Processes) {
  v1::StartProcessRequest start = To<v1::StartProcessRequest>();
  start.mutable_spec()->set_shell("true");
  auto starts = TABLE(processes_, Processes, StartProcess, start);
  starts.RefusesTargets()
      .Refuses("spec.terminal.rows",
               [](auto& r) { r.mutable_spec()->mutable_terminal()->set_rows(65536); })
      .Refuses("spec.terminal.columns",
               [](auto& r) { r.mutable_spec()->mutable_terminal()->set_columns(0xffffffff); });
  RefusesSpecs(starts, /*process=*/true);
  TABLE(processes_, Processes, ListProcesses, To<v1::ListProcessesRequest>()).RefusesTargets();
  TABLE(processes_, Processes, GetProcess, To<v1::GetProcessRequest>()).RefusesTargets();
  TABLE(processes_, Processes, DeleteProcess, To<v1::DeleteProcessRequest>()).RefusesTargets();
  v1::SignalProcessRequest signal = To<v1::SignalProcessRequest>();
  signal.set_pid(2);
  signal.mutable_signal()->set_number(15);
  auto signals = TABLE(processes_, Processes, SignalProcess, signal);
  signals.RefusesTargets()
      .Refuses("target", [](auto& r) { r.clear_target(); })
      .Refuses("pid", [](auto& r) { r.set_pid(1); })
      .Refuses("pid", [](auto& r) { r.set_pid(-1); })
      .Refuses("pid", [](auto& r) { r.set_pid(INT64_MAX); });
  RefusesSignals(signals);
  NothingWasSent();
}

TEST_F(HostileRequests, Attachments) {
  const auto attach = [this](const v1::AttachProcessRequest& first) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    auto stream = processes_->AttachProcess(&context);
    stream->Write(first);
    stream->WritesDone();
    v1::ProcessEvent event;
    while (stream->Read(&event)) ADD_FAILURE() << event.DebugString();
    return FromGrpcStatus(stream->Finish());
  };
  using Attach = v1::AttachProcessRequest::Attach;
  Attach good = To<Attach>();
  good.set_process_id("p.1.2");
  Table<Attach>(
      [&](const Attach& message) {
        v1::AttachProcessRequest first;
        *first.mutable_attach() = message;
        return attach(first);
      },
      good)
      .RefusesTargets("attach.")
      .Refuses("attach.process_id", [](auto& a) { a.clear_process_id(); })
      .Refuses("attach.offset", [](auto& a) { a.set_offset(-1); })
      .Refuses("attach.keepalive_interval", [](auto& a) { a.mutable_keepalive_interval(); });
  v1::AttachProcessRequest first;
  EXPECT_THAT(attach(first), RejectsField("attach"));
  first.mutable_stdin()->set_data("x");
  EXPECT_THAT(attach(first), RejectsField("attach"));
  NothingWasSent();
}

TEST_F(HostileRequests, IsolatedSessions) {
  TABLE(isolation_, Isolation, GetIsolation, To<v1::GetIsolationRequest>()).RefusesTargets();
  v1::OpenIsolatedSessionRequest open = To<v1::OpenIsolatedSessionRequest>();
  open.set_workspace_path("/w");
  TABLE(isolation_, Isolation, OpenIsolatedSession, open)
      .RefusesTargets()
      .RefusesPaths("workspace_path", [](auto& r, const auto& path) { r.set_workspace_path(path); })
      .RefusesPaths(
          "workspace_source_path",
          [](auto& r, const auto& path) { r.set_workspace_source_path(path); }, true)
      .RefusesPaths("extra_writable[0]",
                    [](auto& r, const auto& path) { r.add_extra_writable(path); })
      .RefusesPaths("binds[0].source",
                    [](auto& r, const auto& path) { r.add_binds()->set_source(path); })
      .RefusesPaths("binds[0].destination",
                    [](auto& r, const auto& path) {
                      r.add_binds()->set_source("/s");
                      r.mutable_binds(0)->set_destination(path);
                    })
      .Refuses("extra_writable",
               [](auto& r) {
                 for (int i = 0; i < 65; ++i) r.add_extra_writable("/x");
               })
      .Refuses("binds",
               [](auto& r) {
                 for (int i = 0; i < 65; ++i) r.add_binds();
               })
      .Refuses("user.uid", [](auto& r) { r.mutable_user()->set_uid(4294967295u); })
      .Refuses("idle_timeout", [](auto& r) { r.mutable_idle_timeout(); })
      .Refuses("idle_timeout", [](auto& r) { r.mutable_idle_timeout()->set_seconds(-1); });
  TABLE(isolation_, Isolation, ListIsolatedSessions, To<v1::ListIsolatedSessionsRequest>())
      .RefusesTargets()
      .RefusesPaths(
          "workspace_source_path",
          [](auto& r, const auto& path) { r.set_workspace_source_path(path); }, true);
  v1::RunInIsolatedSessionRequest run = To<v1::RunInIsolatedSessionRequest>();
  run.set_session_id("s-1");
  run.set_script("true");
  auto runs = TABLE(isolation_, Isolation, RunInIsolatedSession, run);
  runs.RefusesTargets()
      .Refuses("script", [](auto& r) { r.clear_script(); })
      .Refuses("script", [](auto& r) { r.set_script(kNul); })
      .Refuses("env[0].name", [](auto& r) { r.add_env()->set_name("1A"); })
      .Refuses("env[0].name", [](auto& r) { r.add_env()->set_name("UID"); })
      .Refuses("timeout", [](auto& r) { r.mutable_timeout(); })
      .Refuses("fidelity", [](auto& r) { r.set_fidelity(static_cast<v1::Fidelity>(50)); })
      .Refuses("keepalive_interval",
               [](auto& r) { r.mutable_keepalive_interval()->set_seconds(INT64_MAX); });
  v1::CloseIsolatedSessionRequest close = To<v1::CloseIsolatedSessionRequest>();
  close.set_session_id("s-1");
  auto closes = TABLE(isolation_, Isolation, CloseIsolatedSession, close);
  closes.RefusesTargets();
  for (const std::string& id : {std::string(), std::string("../x"), std::string("a/b"), kNul}) {
    runs.Refuses("session_id", [&](auto& r) { r.set_session_id(id); });
    closes.Refuses("session_id", [&](auto& r) { r.set_session_id(id); });
  }
  NothingWasSent();
}

}  // namespace
}  // namespace bridge
