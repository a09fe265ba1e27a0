// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/process_methods.h"

#include <string>

#include "bridge/base/error.h"
#include "frontends/epp/errors.h"
#include "gtest/gtest.h"
#include "tests/frontends/epp/fake_bridge.h"
#include "tests/frontends/epp/plugin_host.h"

namespace bridge::epp {
namespace {

TEST(ProcessNameOf, TellsNumbersFromIds) {
  EXPECT_EQ(std::get<int64_t>(*ProcessNameOf(12, "pid")), 12);
  EXPECT_EQ(std::get<int64_t>(*ProcessNameOf("12", "pid")), 12);
  EXPECT_EQ(std::get<std::string>(*ProcessNameOf("f.0123456789abcdef.0.n0nce", "pid")),
            "f.0123456789abcdef.0.n0nce");
  EXPECT_EQ(std::get<std::string>(*ProcessNameOf(std::string(32, 'a'), "pid")),
            std::string(32, 'a'));
  for (const Json& bad : {Json(0), Json(-1), Json(true), Json(1.5), Json(std::string(40, '1')),
                          Json(int64_t{1} << 31), Json("0"), Json("-1"), Json(""), Json(nullptr),
                          Json("a b c d e f"), Json("../../etc"), Json("TERM"), Json::array()}) {
    EXPECT_FALSE(ProcessNameOf(bad, "pid").ok()) << bad;
  }
}

class ProcessMethods : public testing::Test {
 protected:
  ProcessMethods() : host_(bridge_.link_factory()) {
    host_.Initialize();
    bridge_.signal_process = [this](const v1::SignalProcessRequest& request, auto*, auto*) {
      by_process_ = request;
      return absl::OkStatus();
    };
    bridge_.signal_exec = [this](const v1::SignalExecRequest& request, auto*, auto*) {
      by_exec_ = request;
      return absl::OkStatus();
    };
  }
  FakeBridge bridge_;
  PluginHost host_;
  v1::SignalProcessRequest by_process_;
  v1::SignalExecRequest by_exec_;
};

TEST_F(ProcessMethods, ListsWhatRuns) {
  bridge_.list_processes = [](const v1::ListProcessesRequest& request,
                              v1::ListProcessesResponse* response, auto*) {
    EXPECT_TRUE(request.all());
    auto* process = response->add_processes();
    process->set_pid(7);
    process->add_command_line("sleep");
    process->add_command_line("it's \xFF");
    process->set_state(v1::ProcessInfo::STATE_RUNNING);
    process = response->add_processes();
    process->set_process_id("proc-123456");
    process->set_state(v1::ProcessInfo::STATE_STOPPED);
    process = response->add_processes();
    process->set_pid(9);
    process->set_state(v1::ProcessInfo::STATE_EXITED);
    return absl::OkStatus();
  };
  const Json listed = host_.Result("process.list", {{"sandbox_id", "sb"}})["processes"];
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0]["pid"], 7);
  EXPECT_EQ(listed[0]["command"], "sleep 'it'\\''s \xEF\xBF\xBD'");
  EXPECT_EQ(listed[0]["status"], "running");
  EXPECT_EQ(listed[1]["pid"], "proc-123456");
  EXPECT_EQ(listed[1]["status"], "stopped");
}

TEST_F(ProcessMethods, SignalsByNumber) {
  host_.Result("process.signal", {{"sandbox_id", "sb"}, {"pid", 12}, {"signal", "SIGINT"}});
  EXPECT_EQ(by_process_.pid(), 12);
  EXPECT_EQ(by_process_.signal().number(), 2);
  host_.Result("process.signal", {{"sandbox_id", "sb"}, {"pid", "12"}});
  EXPECT_EQ(by_process_.signal().number(), 15);
  host_.Result("process.kill", {{"sandbox_id", "sb"}, {"pid", 12}});
  EXPECT_EQ(by_process_.signal().number(), 9);
}

TEST_F(ProcessMethods, SignalsCommandsById) {
  host_.Result("process.signal", {{"sandbox_id", "sb"}, {"pid", "f.abcdef.0.x"}, {"signal", 10}});
  EXPECT_EQ(by_exec_.exec_id(), "f.abcdef.0.x");
  EXPECT_EQ(by_exec_.signal().number(), 10);
}

TEST_F(ProcessMethods, FindsTerminalsByIdToo) {
  bridge_.signal_exec = [](const auto&, auto*, auto*) {
    return MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND, "no exec");
  };
  host_.Result("process.signal", {{"sandbox_id", "sb"}, {"pid", "proc-123456"}});
  EXPECT_EQ(by_process_.process_id(), "proc-123456");
}

TEST_F(ProcessMethods, SaysWhatCannotBeSignalled) {
  const auto not_found = [](const auto&, auto*, auto*) {
    return MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND, "none");
  };
  bridge_.signal_exec = not_found;
  bridge_.signal_process = not_found;
  for (const Json& pid : {Json(99), Json("f.abcdef.0.x")}) {
    const Json error = host_.Error("process.signal", {{"sandbox_id", "sb"}, {"pid", pid}});
    EXPECT_EQ(error["code"], kNotFound);
    EXPECT_FALSE(error.contains("data") && error["data"].contains("sdk_code"));  // E8005
  }
  bridge_.signal_exec = [](const auto&, auto*, auto*) { return Unsupported("exec.signal", "no"); };
  const Json error = host_.Error("process.signal", {{"sandbox_id", "sb"}, {"pid", "f.abcdef.0.x"}});
  EXPECT_EQ(error["code"], kUnsupported);
  EXPECT_EQ(error["data"]["details"]["feature"], "exec.signal");
  for (const Json& bad : {Json(0), Json(65), Json("term"), Json(true)}) {
    EXPECT_EQ(
        host_.Error("process.signal", {{"sandbox_id", "sb"}, {"pid", 9}, {"signal", bad}})["code"],
        kConfigError);
  }
}

TEST_F(ProcessMethods, HasNoStdinForRunningCommands) {
  const Json error =
      host_.Error("process.stdin", {{"sandbox_id", "sb"}, {"pid", 1}, {"data", "x"}});
  EXPECT_EQ(error["code"], kUnsupported);
  EXPECT_EQ(error["data"]["details"]["feature"], "process.stdin");
}

}  // namespace
}  // namespace bridge::epp
