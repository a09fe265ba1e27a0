// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/session.h"

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "bridge/base/error.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/manifest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/frontends/epp/fake_bridge.h"
#include "tests/frontends/epp/plugin_host.h"

namespace bridge::epp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr absl::Duration kSoon = absl::Seconds(5);

// Blocks a service method until its call is cancelled; then says so.
absl::Status BlockUntilCancelled(grpc::ServerContext* context, std::promise<void>* begun,
                                 std::promise<void>* cancelled) {
  if (begun != nullptr) begun->set_value();
  while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (cancelled != nullptr) cancelled->set_value();
  return absl::CancelledError("");
}

bool Came(std::future<void> event) {
  return event.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
}

TEST(Session, AnswersInitializeWithTheManifestsValues) {
  FakeBridge bridge;
  PluginHost host(bridge.link_factory());
  const Json result = host.Initialize();
  EXPECT_EQ(result["protocol"], "epp/1");
  EXPECT_TRUE(result["operation_contract_version"].is_number_integer());
  EXPECT_EQ(result["operation_contract_version"], 1);
  EXPECT_EQ(result["operations"], Json::parse(manifest::kOperations));
  EXPECT_EQ(result["workflow_inputs"], Json::parse(manifest::kWorkflowInputs));
  EXPECT_EQ(result["startup_modes"], Json::parse(manifest::kStartupModes));
  EXPECT_EQ(result["features"], Json::parse(manifest::kFeatures));
  // Install and doctor initialize too: no bridge is made for that.
  EXPECT_EQ(bridge.links, 0);
}

TEST(Session, RefusesABadConfigurationByName) {
  FakeBridge bridge;
  PluginHost host(bridge.link_factory());
  const Json error = host.Error("initialize", {{"config", {{"use_server_proxy", "maybe"}}}});
  EXPECT_EQ(error["code"], kConfigError);
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("use_server_proxy"));
  // The host may try again.
  host.Initialize();
}

TEST(Session, WantsInitializeFirstAndOnce) {
  FakeBridge bridge;
  PluginHost host(bridge.link_factory());
  EXPECT_EQ(host.Error("sandbox.list", Json::object())["code"], kInvalidRequest);
  host.Initialize();
  EXPECT_EQ(host.Error("initialize", Json::object())["code"], kInvalidRequest);
}

TEST(Session, RefusesAnotherProtocol) {
  FakeBridge bridge;
  PluginHost host(bridge.link_factory());
  EXPECT_EQ(host.Error("initialize", {{"protocol", "epp/2"}})["code"], kInvalidRequest);
}

TEST(Session, TellsUnknownMethodsFromWhatItDoesNotOffer) {
  FakeBridge bridge;
  PluginHost host(bridge.link_factory());
  host.Initialize();
  EXPECT_EQ(host.Error("sandbox.fly", Json::object())["code"], kMethodNotFound);
  for (const char* method :
       {"code.execute", "templates.build", "files.watch", "files.upload_url"}) {
    const Json error = host.Error(method, Json::object());
    EXPECT_EQ(error["code"], kUnsupported) << method;
    EXPECT_TRUE(error["data"]["details"]["feature"].is_string()) << method;
  }
}

// Rows of "malformed input" that a plugin must survive: after each, a call works as before.
TEST(Session, SurvivesEveryBrokenLine) {
  FakeBridge bridge;
  bridge.list = [](const auto&, auto*, auto*) { return absl::OkStatus(); };
  PluginHost host(bridge.link_factory());
  host.Initialize();
  const std::string broken[] = {
      "",
      "   ",
      "{",
      "[]",
      R"([{"jsonrpc":"2.0","id":900,"method":"sandbox.list"}])",
      R"({"id":901,"method":"sandbox.list"})",
      R"({"jsonrpc":"2.0","id":902,"method":5})",
      R"({"jsonrpc":"2.0","id":903,"method":"sandbox.get","params":{"sandbox_id":7}})",
      R"({"jsonrpc":"2.0","id":904,"method":"sandbox.get","params":[]})",
      R"({"jsonrpc":"2.0","id":{},"method":"sandbox.get"})",
      R"({"jsonrpc":"2.0","method":"unknown.notification"})",
      R"({"jsonrpc":"2.0","method":"$/cancel"})",
      R"({"jsonrpc":"2.0","method":"$/cancel","params":{"id":{}}})",
      R"({"jsonrpc":"2.0","method":"$/cancel","params":{"id":12345}})",
      R"({"jsonrpc":"2.0","method":"$/cancel","params":[]})",
      "\xFF\xFE\xFD",
      "{\"jsonrpc\":\"2.0\",\"id\":905,\"method\":\"a\xFF\"}",
      R"({"jsonrpc":"2.0","id":906,"method":"x"}{"jsonrpc":"2.0","id":907,"method":"x"})",
      std::string(9 << 20, 'z'),
      R"({"jsonrpc":"2.0","id":908,"method":"files.write","params":{"content_b64":")" +
          std::string(9 << 20, 'A') + "\"}}",
  };
  for (const std::string& line : broken) {
    host.SendLine(line);
    host.Result("sandbox.list", Json::object());
  }
  for (const int id : {901, 902, 903, 904, 905, 906, 908}) {
    EXPECT_TRUE(host.Answer(id).contains("error")) << id;
  }
}

TEST(Session, AnswersWithTheIdItWasAskedWith) {
  FakeBridge bridge;
  bridge.list = [](const auto&, auto*, auto*) { return absl::OkStatus(); };
  PluginHost host(bridge.link_factory());
  host.Initialize();
  for (const char* id : {"\"text\"", "0", "null", "1.5", "-7", "123456789012345678901234567890"}) {
    host.SendLine(R"({"jsonrpc":"2.0","id":)" + std::string(id) +
                  R"(,"method":"sandbox.list","params":{}})");
    const Json wanted = Json::parse(id);
    size_t position = 0;
    host.NextMessage(&position, [&](const Json& m) {
      return m.contains("id") && m["id"] == wanted && m.contains("result");
    });
  }
  // Twice the same: two answers.
  for (int i = 0; i < 2; ++i) {
    host.SendLine(R"({"jsonrpc":"2.0","id":"twin","method":"sandbox.list","params":{}})");
  }
  size_t position = 0;
  for (int i = 0; i < 2; ++i) {
    host.NextMessage(&position, [](const Json& m) { return m.value("id", Json()) == "twin"; });
  }
}

TEST(Session, OneSlowCallDelaysNoOther) {
  FakeBridge bridge;
  std::promise<void> begun, cancelled;
  bridge.get = [&](const auto&, auto*, grpc::ServerContext* context) {
    return BlockUntilCancelled(context, &begun, &cancelled);
  };
  bridge.list = [](const auto&, auto*, auto*) { return absl::OkStatus(); };
  PluginHost host(bridge.link_factory());
  host.Initialize();
  const int64_t slow = host.Send("sandbox.get", {{"sandbox_id", "s"}});
  ASSERT_TRUE(Came(begun.get_future()));
  for (int i = 0; i < 20; ++i) host.Result("sandbox.list", Json::object());
  host.Cancel(slow);
  EXPECT_TRUE(host.Answer(slow).contains("error"));
  EXPECT_TRUE(Came(cancelled.get_future()));
}

TEST(Session, CancelReachesACallWhoseIdIsText) {
  FakeBridge bridge;
  std::promise<void> begun, cancelled;
  bridge.get = [&](const auto&, auto*, grpc::ServerContext* context) {
    return BlockUntilCancelled(context, &begun, &cancelled);
  };
  PluginHost host(bridge.link_factory());
  host.Initialize();
  host.SendLine(
      R"({"jsonrpc":"2.0","id":"x\u00e9","method":"sandbox.get","params":{"sandbox_id":"s"}})");
  ASSERT_TRUE(Came(begun.get_future()));
  host.SendLine("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel\",\"params\":{\"id\":\"x\xC3\xA9\"}}");
  EXPECT_TRUE(Came(cancelled.get_future()));
}

// --- The end. The host does one of these; each must reclaim what a create left half-made.

class Ending : public testing::Test {
 protected:
  Ending() {
    bridge_.create = [this](const auto&, auto*, grpc::ServerContext* context) {
      return BlockUntilCancelled(context, &begun_, &cancelled_);
    };
    bridge_.settle = [this](absl::Duration) {
      settled_.set_value();
      return true;
    };
  }
  void StartCreate(PluginHost& host) {
    host.Initialize();
    create_ = host.Send("sandbox.create", {{"template", "base"}, {"timeout", 300}});
    ASSERT_TRUE(Came(begun_.get_future()));
  }
  void ExpectReclaimed() {
    EXPECT_TRUE(Came(cancelled_.get_future()));
    EXPECT_TRUE(Came(settled_.get_future()));
  }
  FakeBridge bridge_;
  std::promise<void> begun_, cancelled_, settled_;
  int64_t create_ = 0;
};

TEST_F(Ending, CancelThenShutdown) {
  PluginHost host(bridge_.link_factory());
  StartCreate(host);
  host.Cancel(create_);
  const int64_t shutdown = host.Send("shutdown", Json::object());
  EXPECT_TRUE(host.Answer(create_).contains("error"));
  EXPECT_EQ(host.Answer(shutdown)["result"], Json::object());
  ExpectReclaimed();
  EXPECT_TRUE(host.WaitForEnd(kSoon));
}

TEST_F(Ending, ShutdownWithoutCancel) {
  PluginHost host(bridge_.link_factory());
  StartCreate(host);
  EXPECT_EQ(host.Result("shutdown", Json::object()), Json::object());
  ExpectReclaimed();
  EXPECT_TRUE(host.WaitForEnd(kSoon));
}

TEST_F(Ending, EndOfInput) {
  PluginHost host(bridge_.link_factory());
  StartCreate(host);
  host.CloseInput();
  ExpectReclaimed();
  EXPECT_TRUE(host.WaitForEnd(kSoon));
}

TEST_F(Ending, Terminate) {
  PluginHost host(bridge_.link_factory());
  StartCreate(host);
  host.session().Terminate();
  host.session().Terminate();
  ExpectReclaimed();
  EXPECT_TRUE(host.WaitForEnd(kSoon));
}

TEST_F(Ending, ShutdownIsAnsweredInTimeAndTheRemovalGoesOn) {
  absl::Notification removed;
  bridge_.settle = [&](absl::Duration) {
    removed.WaitForNotification();
    return true;
  };
  PluginHost host(bridge_.link_factory(), absl::Milliseconds(200));
  StartCreate(host);
  const absl::Time begin = absl::Now();
  host.Result("shutdown", Json::object());
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(190));
  EXPECT_FALSE(host.WaitForEnd(absl::Milliseconds(50)));
  removed.Notify();
  EXPECT_TRUE(host.WaitForEnd(kSoon));
}

TEST_F(Ending, ShutdownWaitsForTheRemoval) {
  absl::Notification settling, removed;
  bridge_.settle = [&](absl::Duration) {
    settling.Notify();
    removed.WaitForNotification();
    return true;
  };
  PluginHost host(bridge_.link_factory());
  StartCreate(host);
  const int64_t shutdown = host.Send("shutdown", Json::object());
  settling.WaitForNotification();
  EXPECT_TRUE(host.Answer(create_).contains("error"));
  const size_t before = host.messages();
  EXPECT_FALSE(host.WaitForEnd(absl::Milliseconds(50)));
  EXPECT_EQ(host.messages(), before);  // not answered yet
  removed.Notify();
  EXPECT_TRUE(host.Answer(shutdown).contains("result"));
}

TEST_F(Ending, AHostThatDiedIsTheEndToo) {
  bridge_.list = [](const auto&, v1::ListSandboxesResponse* response, auto*) {
    for (int i = 0; i < 2000; ++i) {
      response->add_sandboxes()->set_sandbox_id("sandbox-" + std::to_string(i));
    }
    return absl::OkStatus();
  };
  PluginHost host(bridge_.link_factory());
  StartCreate(host);
  host.CloseOutput();
  for (int i = 0; i < 20; ++i) host.Send("sandbox.list", Json::object());
  ExpectReclaimed();
  EXPECT_TRUE(host.WaitForEnd(kSoon));
}

TEST(Session, ShutdownWithNothingUnderWayIsAnsweredAtOnce) {
  FakeBridge bridge;
  PluginHost host(bridge.link_factory());
  host.Initialize();
  host.Result("shutdown", Json::object());
  EXPECT_TRUE(host.WaitForEnd(kSoon));
  EXPECT_EQ(bridge.links, 0);
}

TEST(Session, ShutdownBeforeInitializeIsFine) {
  FakeBridge bridge;
  PluginHost host(bridge.link_factory());
  host.Result("shutdown", Json::object());
  EXPECT_TRUE(host.WaitForEnd(kSoon));
}

TEST(Session, AKillMayFinishWhenTheConversationEnds) {
  FakeBridge bridge;
  std::promise<void> begun;
  absl::Notification go;
  bridge.remove = [&](const auto&, v1::DeleteSandboxResponse* response,
                      grpc::ServerContext* context) {
    begun.set_value();
    go.WaitForNotification();
    response->set_verdict(v1::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE);
    EXPECT_FALSE(context->IsCancelled());
    return absl::OkStatus();
  };
  PluginHost host(bridge.link_factory());
  host.Initialize();
  const int64_t kill = host.Send("sandbox.kill", {{"sandbox_id", "s"}});
  ASSERT_TRUE(Came(begun.get_future()));
  const int64_t shutdown = host.Send("shutdown", Json::object());
  go.Notify();
  EXPECT_EQ(host.Answer(kill)["result"]["verdict"], "confirmed_gone");
  EXPECT_TRUE(host.Answer(shutdown).contains("result"));
}

TEST(Session, RefusesNewCallsAtTheEnd) {
  FakeBridge bridge;
  absl::Notification settling, removed;
  bridge.list = [](const auto&, auto*, auto*) { return absl::OkStatus(); };
  bridge.settle = [&](absl::Duration) {
    settling.Notify();
    removed.WaitForNotification();
    return true;
  };
  PluginHost host(bridge.link_factory());
  host.Initialize();
  host.Result("sandbox.list", Json::object());
  host.Send("shutdown", Json::object());
  settling.WaitForNotification();
  EXPECT_EQ(host.Error("sandbox.list", Json::object())["code"], kProviderError);
  removed.Notify();
  EXPECT_TRUE(host.WaitForEnd(kSoon));
}

TEST(Session, HasOneLinkForAllCalls) {
  FakeBridge bridge;
  bridge.list = [](const auto&, auto*, auto*) { return absl::OkStatus(); };
  PluginHost host(bridge.link_factory());
  host.Initialize();
  for (int i = 0; i < 5; ++i) host.Result("sandbox.list", Json::object());
  EXPECT_EQ(bridge.links, 1);
}

TEST(Session, SaysWhenTheBridgeCannotBeMade) {
  PluginHost host([](const Config&) -> absl::StatusOr<std::unique_ptr<BridgeLink>> {
    return InvalidField("bridge_ca_file", "the file cannot be read");
  });
  host.Initialize();
  const Json error = host.Error("sandbox.list", Json::object());
  EXPECT_EQ(error["code"], kConfigError);
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("bridge_ca_file"));
}

TEST(Session, SaysWhenARemoteBridgeCannotBeReached) {
  PluginHost host(MakeRemoteLink);
  host.Initialize({{"bridge_address", "127.0.0.1:1"}});
  const Json error = host.Error("sandbox.list", Json::object());
  EXPECT_EQ(error["code"], kProviderError);
  EXPECT_EQ(error["data"]["sdk_code"], "E5001");
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(
      error["data"]["suggestion"].get<std::string>(),
      AllOf(HasSubstr("bridge_address"), HasSubstr("https://"), Not(HasSubstr("base_url"))));
}

TEST(Methods, AreAsManyAsPromised) {
  EXPECT_EQ(AllMethods().size(), 28u);
  for (const MethodEntry& method : AllMethods()) EXPECT_EQ(FindMethod(method.name), &method);
  EXPECT_EQ(FindMethod("initialize"), nullptr);
}

}  // namespace
}  // namespace bridge::epp
