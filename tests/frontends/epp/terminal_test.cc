// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/terminal.h"

#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "bridge/base/error.h"
#include "frontends/epp/errors.h"
#include "gtest/gtest.h"
#include "tests/frontends/epp/fake_bridge.h"
#include "tests/frontends/epp/plugin_host.h"

namespace bridge::epp {
namespace {

using Stream = grpc::ServerReaderWriter<v1::ProcessEvent, v1::AttachProcessRequest>;

std::string Encoded(const std::string& bytes) { return absl::Base64Escape(bytes); }

// A shell that echoes its input, knows its size, and ends with the code after "exit ".
class Terminals : public testing::Test {
 protected:
  Terminals() : host_(bridge_.link_factory()) {
    host_.Initialize();
    bridge_.start_process = [this](const auto& request, v1::StartProcessResponse* response, auto*) {
      started_ = request;
      response->set_process_id("proc-000001");
      return absl::OkStatus();
    };
    bridge_.attach_process = [this](Stream* stream, auto*) { return Attach(stream); };
    bridge_.delete_process = [this](const v1::DeleteProcessRequest& request, auto*, auto*) {
      std::lock_guard lock(mu_);
      if (deletions_++ == 0) deleted_.set_value(request.process_id());
      return absl::OkStatus();
    };
  }

  absl::Status Attach(Stream* stream) {
    v1::AttachProcessRequest request;
    if (!stream->Read(&request)) return absl::CancelledError("");
    attach_ = request.attach();
    v1::ProcessEvent event;
    event.mutable_attached()->set_running(true);
    stream->Write(event);
    int64_t offset = 0;
    while (stream->Read(&request)) {
      if (request.has_resize()) {
        event.mutable_output()->set_data(std::to_string(request.resize().columns()) + "x" +
                                         std::to_string(request.resize().rows()));
        stream->Write(event);
      }
      if (!request.has_stdin()) continue;
      EXPECT_EQ(request.stdin().offset(), offset);
      offset += static_cast<int64_t>(request.stdin().data().size());
      if (request.stdin().data().substr(0, 5) == "exit ") {
        event.mutable_exited()->mutable_outcome()->set_exit_code(
            std::stoi(request.stdin().data().substr(5)));
        stream->Write(event);
        return absl::OkStatus();
      }
      event.mutable_output()->set_data(request.stdin().data());
      stream->Write(event);
    }
    return absl::CancelledError("");
  }

  std::string Open(Json changes = Json::object()) {
    Json params = {{"sandbox_id", "sb"}, {"cols", 100}, {"rows", 40}};
    params.update(changes);
    return host_.Result("pty.open", params)["process_id"];
  }
  Json WriteTo(const std::string& id, const std::string& bytes) {
    return host_.Call("pty.write",
                      {{"sandbox_id", "sb"}, {"process_id", id}, {"data_b64", Encoded(bytes)}});
  }
  std::string NextOutput(size_t* position) {
    const Json note = host_.NextMessage(
        position, [](const Json& m) { return m.value("method", "") == "pty.output"; });
    std::string bytes;
    EXPECT_TRUE(absl::Base64Unescape(note["params"]["data_b64"].get<std::string>(), &bytes));
    return bytes;
  }
  std::string Deleted() {
    auto event = deleted_.get_future();
    if (event.wait_for(std::chrono::seconds(5)) != std::future_status::ready) return "never";
    return event.get();
  }

  FakeBridge bridge_;
  v1::StartProcessRequest started_;
  v1::AttachProcessRequest::Attach attach_;
  std::mutex mu_;
  int deletions_ = 0;
  std::promise<std::string> deleted_;
  PluginHost host_;
};

TEST_F(Terminals, OpensAShellOfTheAskedSize) {
  EXPECT_EQ(Open(), "proc-000001");
  EXPECT_EQ(started_.spec().terminal().columns(), 100u);
  EXPECT_EQ(started_.spec().terminal().rows(), 40u);
  EXPECT_EQ(attach_.process_id(), "proc-000001");
  EXPECT_TRUE(attach_.has_offset());  // from the first byte on
}

TEST_F(Terminals, CarriesBytesBothWays) {
  const std::string id = Open();
  size_t position = 0;
  WriteTo(id, "ls\n");
  EXPECT_EQ(NextOutput(&position), "ls\n");
  WriteTo(id, std::string("\xFF\0\x03", 3));
  EXPECT_EQ(NextOutput(&position), std::string("\xFF\0\x03", 3));
  host_.Result("pty.resize", {{"sandbox_id", "sb"}, {"process_id", id}, {"cols", 7}, {"rows", 3}});
  EXPECT_EQ(NextOutput(&position), "7x3");
}

TEST_F(Terminals, TellsTheEndOnce) {
  const std::string id = Open();
  WriteTo(id, "exit 3");
  const std::vector<Json> notes = host_.Notifications(id, "pty.exit");
  EXPECT_EQ(notes.back()["params"]["exit_code"], 3);
  EXPECT_EQ(Deleted(), id);
  const Json late = WriteTo(id, "x");
  EXPECT_EQ(late["error"]["code"], kNotFound);
}

TEST_F(Terminals, CloseEndsTheShell) {
  const std::string id = Open();
  host_.Result("pty.close", {{"sandbox_id", "sb"}, {"process_id", id}});
  EXPECT_EQ(Deleted(), id);
  EXPECT_EQ(host_.Notifications(id, "pty.exit").back()["params"]["reason"], "cancelled");
  // Again, and of what never was: nothing to do.
  host_.Result("pty.close", {{"sandbox_id", "sb"}, {"process_id", id}});
  host_.Result("pty.close", {{"sandbox_id", "sb"}, {"process_id", "proc-999999"}});
}

// The id of a terminal of another sandbox is one that nobody knows.
TEST_F(Terminals, AreThoseOfTheSandboxThatIsNamed) {
  const std::string id = Open();
  const Json other = {{"sandbox_id", "no-such-sandbox"},
                      {"process_id", id},
                      {"data_b64", Encoded("exit 3")},
                      {"cols", 7},
                      {"rows", 3}};
  for (const char* method : {"pty.write", "pty.resize"}) {
    EXPECT_EQ(host_.Error(method, other)["code"], kNotFound) << method;
  }
  host_.Result("pty.close", other);
  size_t position = 0;
  WriteTo(id, "still there");
  EXPECT_EQ(NextOutput(&position), "still there");
}

TEST_F(Terminals, TheEndOfTheConversationEndsShells) {
  const std::string id = Open();
  host_.Result("shutdown", Json::object());
  EXPECT_EQ(Deleted(), id);
  EXPECT_TRUE(host_.WaitForEnd(absl::Seconds(5)));
}

TEST_F(Terminals, SaysWhenThereIsNoTerminal) {
  bridge_.start_process = [](const auto&, auto*, auto*) {
    return Unsupported("process.terminal", "no");
  };
  EXPECT_EQ(host_.Error("pty.open", {{"sandbox_id", "sb"}})["code"], kUnsupported);
  EXPECT_EQ(host_.Error("pty.open", {{"sandbox_id", "sb"}, {"cols", 0}})["code"], kConfigError);
  EXPECT_EQ(WriteTo("proc-000009", "x")["error"]["code"], kNotFound);
  EXPECT_EQ(host_.Error("pty.resize", {{"sandbox_id", "sb"}, {"process_id", "p"}})["code"],
            kNotFound);
}

TEST_F(Terminals, AnAttachThatFailsLeavesNoShellBehind) {
  bridge_.attach_process = [](Stream*, auto*) {
    return MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE, "gone");
  };
  EXPECT_EQ(host_.Error("pty.open", {{"sandbox_id", "sb"}})["data"]["sdk_code"], "E5001");
  EXPECT_EQ(Deleted(), "proc-000001");
}

TEST_F(Terminals, RefusesInputThatNobodyTakes) {
  std::promise<void> stop;
  auto stopped = stop.get_future().share();
  bridge_.attach_process = [stopped](Stream* stream, auto*) {
    v1::AttachProcessRequest request;
    stream->Read(&request);
    v1::ProcessEvent event;
    event.mutable_attached()->set_running(true);
    stream->Write(event);
    stopped.wait();
    return absl::OkStatus();
  };
  const std::string id = Open();
  bool refused = false;
  for (int i = 0; i < 100 && !refused; ++i) {
    refused = WriteTo(id, std::string(256 * 1024, 'x')).contains("error");
  }
  EXPECT_TRUE(refused);
  stop.set_value();
}

}  // namespace
}  // namespace bridge::epp
