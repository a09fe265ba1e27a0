// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/exec_methods.h"

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "bridge/base/error.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/exec_output.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/frontends/epp/fake_bridge.h"
#include "tests/frontends/epp/plugin_host.h"

namespace bridge::epp {
namespace {

using testing::HasSubstr;
using Writer = grpc::ServerWriter<v1::ExecEvent>;

// What the SDK sends for commands.run("echo hi").
Json ExecParams(Json changes = Json::object()) {
  Json params = {{"sandbox_id", "sb"}, {"cmd", "echo"}, {"args", {"hi"}}, {"env", Json::object()},
                 {"cwd", ""},          {"user", ""},    {"timeout", 60}};
  params.update(changes);
  return params;
}

void Started(Writer* writer, const std::string& id) {
  v1::ExecEvent event;
  event.mutable_started()->set_exec_id(id);
  event.mutable_started()->set_fidelity(v1::FIDELITY_BYTES);
  writer->Write(event);
}

void Add(v1::ExecEvent* event, v1::OutputStream stream, const std::string& data) {
  auto* output = event->mutable_output_batch()->add_outputs();
  output->set_stream(stream);
  output->set_data(data);
}

void Print(Writer* writer, const std::string& text) {
  v1::ExecEvent event;
  Add(&event, v1::OUTPUT_STREAM_STDOUT, text);
  writer->Write(event);
}

void Exit(Writer* writer, int code) {
  v1::ExecEvent event;
  event.mutable_exited()->mutable_outcome()->set_exit_code(code);
  writer->Write(event);
  event.mutable_drained();
  writer->Write(event);
}

class ExecMethods : public testing::Test {
 protected:
  ExecMethods() : host_(bridge_.link_factory()) { host_.Initialize(); }
  std::string Start(Json changes = Json::object()) {
    return host_.Result("exec.start", ExecParams(std::move(changes)))["process_id"];
  }
  static std::string Text(const std::vector<Json>& notes, std::string_view stream) {
    std::string text;
    for (const Json& note : notes) {
      if (note["method"] == "exec.output" && note["params"]["stream"] == stream) {
        text += note["params"]["data"].get<std::string>();
      }
    }
    return text;
  }
  FakeBridge bridge_;
  PluginHost host_;
};

TEST_F(ExecMethods, StreamsOutputInOrderAndOneExit) {
  bridge_.execute = [](const auto&, Writer* writer, auto*) {
    Started(writer, "exec-0001");
    v1::ExecEvent batch;
    Add(&batch, v1::OUTPUT_STREAM_STDOUT, "one");
    Add(&batch, v1::OUTPUT_STREAM_STDOUT, " two\n");
    Add(&batch, v1::OUTPUT_STREAM_STDERR, "err\n");
    Add(&batch, v1::OUTPUT_STREAM_STDOUT, "three\n");
    writer->Write(batch);
    Exit(writer, 4);
    return absl::OkStatus();
  };
  EXPECT_EQ(Start(), "exec-0001");
  const std::vector<Json> notes = host_.Notifications("exec-0001", "exec.exit");
  ASSERT_EQ(notes.size(), 4u);
  EXPECT_EQ(notes[0]["params"]["data"], "one two\n");
  EXPECT_EQ(notes[1]["params"]["stream"], "stderr");
  EXPECT_EQ(notes[2]["params"]["data"], "three\n");
  EXPECT_EQ(notes[3]["params"]["exit_code"], 4);
  EXPECT_TRUE(notes[3]["params"]["exit_code"].is_number_integer());
  EXPECT_FALSE(notes[3].contains("id"));
}

TEST_F(ExecMethods, OutputAfterTheExitComesBeforeIt) {
  bridge_.execute = [](const auto&, Writer* writer, auto*) {
    Started(writer, "exec-0002");
    v1::ExecEvent event;
    event.mutable_exited()->mutable_outcome()->set_exit_code(0);
    writer->Write(event);
    Print(writer, "late");
    event.mutable_drained();
    writer->Write(event);
    return absl::OkStatus();
  };
  Start();
  const std::vector<Json> notes = host_.Notifications("exec-0002", "exec.exit");
  EXPECT_EQ(Text(notes, "stdout"), "late");
}

TEST_F(ExecMethods, CutsCharactersNowhere) {
  bridge_.execute = [](const auto&, Writer* writer, auto*) {
    Started(writer, "exec-0003");
    for (const char c : std::string("naive \xF0\x9F\x98\x80 \xE6\x97\xA5 \xFF")) {
      Print(writer, std::string(1, c));
    }
    Print(writer, "\xE6");  // never finished
    Exit(writer, 0);
    return absl::OkStatus();
  };
  Start();
  EXPECT_EQ(Text(host_.Notifications("exec-0003", "exec.exit"), "stdout"),
            "naive \xF0\x9F\x98\x80 \xE6\x97\xA5 \xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_F(ExecMethods, ReportsAFailureBeforeTheStartAsAnError) {
  bridge_.execute = [](const auto&, auto*, auto*) {
    return MakeError(ErrorReason::ERROR_REASON_SANDBOX_NOT_RUNNING, "paused");
  };
  EXPECT_EQ(host_.Error("exec.start", ExecParams())["code"], kProviderError);
  EXPECT_EQ(host_.Error("exec.run", ExecParams())["code"], kProviderError);
  bridge_.execute = [](const auto&, auto*, auto*) {
    return MakeError(ErrorReason::ERROR_REASON_SANDBOX_NOT_FOUND, "none");
  };
  EXPECT_EQ(host_.Error("exec.start", ExecParams())["data"]["sdk_code"], "E2009");
}

TEST_F(ExecMethods, InventsNoExitStatus) {
  bridge_.execute = [](const auto&, Writer* writer, auto*) {
    Started(writer, "exec-0004");
    Print(writer, "half");
    return MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE, "the daemon is gone");
  };
  Start();
  const std::vector<Json> notes = host_.Notifications("exec-0004", "exec.exit");
  EXPECT_EQ(Text(notes, "stdout"), "half");
  EXPECT_THAT(Text(notes, "stderr"), HasSubstr("the daemon is gone"));
  EXPECT_EQ(notes.back()["params"]["exit_code"], 125);
  EXPECT_EQ(notes.back()["params"]["reason"], "lost");
}

// What is not all must not look as if it were.
TEST_F(ExecMethods, TellsLossesAndWhatMayStillPrint) {
  v1::ExecEvent drained;
  v1::Fidelity fidelity = v1::FIDELITY_BYTES;
  int runs = 0;
  bridge_.execute = [&](const auto&, Writer* writer, auto*) {
    v1::ExecEvent event;
    event.mutable_started()->set_exec_id("exec-end-" + std::to_string(++runs));
    event.mutable_started()->set_fidelity(fidelity);
    writer->Write(event);
    event.mutable_exited()->mutable_outcome()->set_exit_code(0);
    writer->Write(event);
    if (!drained.has_drained()) return MakeError(ErrorReason::ERROR_REASON_INTERNAL, "broke off");
    writer->Write(drained);
    return absl::OkStatus();
  };
  const auto end = [&] {
    Start();
    const auto notes = host_.Notifications("exec-end-" + std::to_string(runs), "exec.exit");
    Json params = notes.back()["params"];
    params["said"] = Text(notes, "stderr");
    const Json result = host_.Result("exec.run", ExecParams());
    EXPECT_EQ(result["stderr"], params["said"]);
    for (const char* member : {"exit_code", "reason", "lossy", "still_open"}) {
      EXPECT_EQ(result.contains(member), params.contains(member)) << member;
      EXPECT_EQ(result.value(member, Json()), params.value(member, Json())) << member;
    }
    return params;
  };
  Json params = end();
  EXPECT_EQ(params["exit_code"], 0);
  EXPECT_EQ(params["lossy"], true);
  EXPECT_EQ(params["said"], "opensandbox: some of the command's output was lost\n");
  drained.mutable_drained();
  params = end();
  EXPECT_FALSE(params.contains("lossy"));
  EXPECT_FALSE(params.contains("still_open"));
  EXPECT_EQ(params["said"], "");
  drained.mutable_drained()->set_still_open(false);
  EXPECT_EQ(end()["still_open"], false);
  drained.mutable_drained()->set_still_open(true);
  EXPECT_EQ(end()["still_open"], true);
  drained.mutable_drained()->set_lossy(true);
  params = end();
  EXPECT_EQ(params["lossy"], true);
  EXPECT_EQ(params["said"], "opensandbox: some of the command's output was lost\n");
  fidelity = v1::FIDELITY_LINES;
  params = end();
  EXPECT_EQ(params["lossy"], true);
  EXPECT_EQ(params["said"], "");
}

TEST_F(ExecMethods, PassesKeepalivesOnAsHeartbeats) {
  bridge_.execute = [](const auto&, Writer* writer, auto*) {
    Started(writer, "exec-0005");
    v1::ExecEvent event;
    event.mutable_keepalive();
    writer->Write(event);
    Exit(writer, 0);
    return absl::OkStatus();
  };
  Start({{"timeout", 0}});
  const std::vector<Json> notes = host_.Notifications("exec-0005", "exec.exit");
  EXPECT_EQ(notes[0]["method"], "exec.heartbeat");
}

TEST_F(ExecMethods, CancelEndsARunningCommandOnce) {
  std::promise<void> cancelled;
  bridge_.execute = [&](const auto& request, Writer* writer, grpc::ServerContext* context) {
    EXPECT_EQ(request.spec().on_disconnect(), v1::ExecSpec::ON_DISCONNECT_UNSPECIFIED);
    Started(writer, "exec-0006");
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    cancelled.set_value();
    return absl::CancelledError("");
  };
  const int64_t id = host_.Send("exec.start", ExecParams());
  host_.Answer(id);
  host_.Cancel(id);
  host_.Cancel(id);
  const std::vector<Json> notes = host_.Notifications("exec-0006", "exec.exit");
  EXPECT_EQ(notes.back()["params"]["exit_code"], 130);
  EXPECT_EQ(notes.back()["params"]["reason"], "cancelled");
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
  host_.Cancel(id);  // of what is over: nothing
}

TEST_F(ExecMethods, TheEndOfTheConversationEndsCommands) {
  std::promise<void> cancelled;
  bridge_.execute = [&](const auto&, Writer* writer, grpc::ServerContext* context) {
    Started(writer, "exec-0007");
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    cancelled.set_value();
    return absl::CancelledError("");
  };
  Start();
  host_.Result("shutdown", Json::object());
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_EQ(host_.Notifications("exec-0007", "exec.exit").back()["params"]["exit_code"], 130);
}

TEST_F(ExecMethods, ADetachedCommandIsOnlyStarted) {
  bridge_.execute = [](const v1::ExecuteRequest& request, Writer* writer, auto*) {
    EXPECT_TRUE(request.detached());
    Started(writer, "exec-0008");
    return absl::OkStatus();
  };
  const Json result = host_.Result("exec.start", ExecParams({{"detached", true}}));
  EXPECT_EQ(result["process_id"], "exec-0008");
  EXPECT_EQ(result["detached"], true);
  host_.Result("shutdown", Json::object());
  EXPECT_TRUE(host_.WaitForEnd(absl::Seconds(5)));
  EXPECT_EQ(host_.messages(), 3u);  // initialize, exec.start, shutdown
}

TEST_F(ExecMethods, EndsAStreamWhoseBridgeForgetsTheTimeout) {
  bridge_.execute = [](const auto&, Writer* writer, grpc::ServerContext* context) {
    Started(writer, "exec-0009");
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::CancelledError("");
  };
  const absl::Time begin = absl::Now();
  Start({{"timeout", 0.1}});
  const std::vector<Json> notes = host_.Notifications("exec-0009", "exec.exit");
  EXPECT_EQ(notes.back()["params"]["exit_code"], 124);
  EXPECT_THAT(Text(notes, "stderr"), HasSubstr("could not be confirmed"));
  // Before the host's own patience (timeout + 5 s) is over.
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

TEST_F(ExecMethods, ManyCommandsRunSideBySide) {
  std::atomic<int> next{0};
  bridge_.execute = [&](const v1::ExecuteRequest& request, Writer* writer, auto*) {
    Started(writer, "exec-many-" + std::to_string(next++));
    for (int i = 0; i < 20; ++i) Print(writer, request.spec().argv().args(1) + "\n");
    Exit(writer, 0);
    return absl::OkStatus();
  };
  std::vector<int64_t> ids;
  ids.reserve(40);
  for (int i = 0; i < 40; ++i) {
    ids.push_back(host_.Send("exec.start", ExecParams({{"args", {std::to_string(i)}}})));
  }
  for (int i = 0; i < 40; ++i) {
    const std::string process = host_.Answer(ids[i])["result"]["process_id"];
    std::string expected;
    for (int k = 0; k < 20; ++k) expected += std::to_string(i) + "\n";
    EXPECT_EQ(Text(host_.Notifications(process, "exec.exit"), "stdout"), expected);
  }
}

TEST_F(ExecMethods, ManyMegabytesArriveInChunks) {
  constexpr int kMegabytes = 4;
  bridge_.execute = [](const auto&, Writer* writer, auto*) {
    Started(writer, "exec-0010");
    for (int i = 0; i < kMegabytes * 2; ++i) Print(writer, std::string(512 * 1024, '\1'));
    Exit(writer, 0);
    return absl::OkStatus();
  };
  Start();
  const std::vector<Json> notes = host_.Notifications("exec-0010", "exec.exit");
  size_t total = 0;
  for (const Json& note : notes) {
    if (note["method"] != "exec.output") continue;
    const size_t size = note["params"]["data"].get_ref<const std::string&>().size();
    EXPECT_LE(size, ExecOutput::kMaxChunkBytes);
    total += size;
  }
  EXPECT_EQ(total, static_cast<size_t>(kMegabytes) << 20);
}

TEST_F(ExecMethods, AHostThatDoesNotReadHoldsUpOneProducerAndNoCancel) {
  std::atomic<int> written{0};
  std::promise<void> cancelled;
  bridge_.execute = [&](const auto&, Writer* writer, grpc::ServerContext* context) {
    Started(writer, "exec-0011");
    v1::ExecEvent event;
    Add(&event, v1::OUTPUT_STREAM_STDOUT, std::string(256 * 1024, 'x'));
    while (!context->IsCancelled() && writer->Write(event)) ++written;
    cancelled.set_value();
    return absl::CancelledError("");
  };
  const int64_t id = host_.Send("exec.start", ExecParams());
  host_.Answer(id);
  host_.StopReading();
  // The producer comes to a halt: what was written stops growing.
  int before = -1;
  while (before != written.load()) {
    before = written.load();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  EXPECT_LT(before, 200);  // 50 MB; without a bound it would never stop
  host_.Cancel(id);
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

TEST_F(ExecMethods, RunAnswersOnce) {
  bridge_.execute = [](const auto&, Writer* writer, auto*) {
    Started(writer, "exec-0012");
    v1::ExecEvent batch;
    Add(&batch, v1::OUTPUT_STREAM_STDOUT, "out\xE6");
    Add(&batch, v1::OUTPUT_STREAM_STDERR, "err");
    writer->Write(batch);
    Print(writer, "\x97\xA5");
    Exit(writer, 3);
    return absl::OkStatus();
  };
  const Json result = host_.Result("exec.run", ExecParams());
  EXPECT_EQ(result["stdout"], "out\xE6\x97\xA5");
  EXPECT_EQ(result["stderr"], "err");
  EXPECT_EQ(result["exit_code"], 3);
}

TEST_F(ExecMethods, RunRefusesOutputThatNoLineHolds) {
  bridge_.execute = [](const auto&, Writer* writer, auto*) {
    Started(writer, "exec-0013");
    for (int i = 0; i < 20; ++i) Print(writer, std::string(512 * 1024, 'x'));
    Exit(writer, 0);
    return absl::OkStatus();
  };
  const Json error = host_.Error("exec.run", ExecParams());
  EXPECT_EQ(error["code"], kProviderError);
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("10485760"));
  EXPECT_EQ(host_.Error("exec.run", ExecParams({{"detached", true}}))["code"], kConfigError);
}

}  // namespace
}  // namespace bridge::epp
