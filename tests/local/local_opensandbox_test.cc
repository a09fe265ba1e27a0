// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/local_opensandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "bridge/local/http/client.h"

namespace bridge::local {
namespace {

using http::Response;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class LocalTest : public ::testing::Test {
 protected:
  void Start(LocalOptions options = {}) {
    options.api_key = "key";
    auto local = LocalOpenSandbox::Start(std::move(options));
    ASSERT_TRUE(local.ok()) << local.status();
    local_ = *std::move(local);
  }

  Response Call(const std::string& method, const std::string& target,
                const std::string& body = "") {
    http::Headers headers = {{"OPEN-SANDBOX-API-KEY", "key"}};
    if (!body.empty()) headers.Add("Content-Type", "application/json");
    return CallPort(local_->port(), method, target, headers, body);
  }

  static Response CallPort(int port, const std::string& method, const std::string& target,
                           const http::Headers& headers = {}, const std::string& body = "") {
    auto response = http::Fetch("127.0.0.1", port, method, target, headers, body);
    EXPECT_TRUE(response.ok()) << method << " " << target << ": " << response.status();
    return response.ok() ? *std::move(response) : Response{0, {}, ""};
  }

  std::string Create(const std::string& more = "") {
    const Response response = Call(
        "POST", "/v1/sandboxes",
        R"({"image":{"uri":"base"},"entrypoint":["tail","-f","/dev/null"],"resourceLimits":{})" +
            more + "}");
    EXPECT_EQ(response.status, 202) << response.body;
    return response.status == 202 ? Json::parse(response.body)["id"].get<std::string>() : "";
  }

  int ExecdPort(const std::string& id) {
    const Response response = Call("GET", "/v1/sandboxes/" + id + "/endpoints/44772");
    const std::string endpoint = Json::parse(response.body)["endpoint"];
    const auto address = http::ParseHostPort(endpoint.substr(0, endpoint.find('/')));
    return address->port;
  }

  // The events of a command, as text.
  std::string Run(const std::string& id, const std::string& command) {
    return CallPort(ExecdPort(id), "POST", "/command", {}, Json({{"command", command}}).dump())
        .body;
  }

  std::string State(const std::string& id) {
    const Response response = Call("GET", "/v1/sandboxes/" + id);
    if (response.status == 404) return "gone";
    return Json::parse(response.body)["status"]["state"];
  }

  std::unique_ptr<LocalOpenSandbox> local_;
};

TEST_F(LocalTest, RunsACommandInASandboxOfItsOwn) {
  Start();
  const std::string a = Create(R"(,"env":{"WHO":"alice"},"metadata":{"team":"core"})");
  const std::string b = Create();
  EXPECT_THAT(Run(a, "echo $WHO > /tmp/mark; cat /tmp/mark"),
              AllOf(HasSubstr(R"("text":"alice")"), HasSubstr("execution_complete")));
  EXPECT_THAT(Run(b, "cat /tmp/mark"), HasSubstr("No such file"));
  const Response list = Call("GET", "/v1/sandboxes?metadata=team%3Dcore");
  EXPECT_EQ(Json::parse(list.body)["items"][0]["id"], a);
  EXPECT_EQ(Call("DELETE", "/v1/sandboxes/" + a).status, 204);
  EXPECT_EQ(State(a), "gone");
  EXPECT_EQ(State(b), "Running");
}

TEST_F(LocalTest, CreateAndDeleteTakeMilliseconds) {
  Start();
  Create();  // the first one warms the page cache
  absl::Duration best_create = absl::InfiniteDuration();
  absl::Duration best_delete = absl::InfiniteDuration();
  for (int i = 0; i < 5; ++i) {
    const absl::Time start = absl::Now();
    const std::string id = Create();
    const absl::Time created = absl::Now();
    Call("DELETE", "/v1/sandboxes/" + id);
    best_create = std::min(best_create, created - start);
    best_delete = std::min(best_delete, absl::Now() - created);
  }
  EXPECT_LT(best_create, absl::Milliseconds(100));
  EXPECT_LT(best_delete, absl::Milliseconds(100));
}

TEST_F(LocalTest, ExpiryIsEnforcedByTheClock) {
  FakeClock clock(absl::Now());
  Start({.clock = &clock});
  const std::string id = Create(R"(,"timeout":60)");
  const std::string forever = Create();
  EXPECT_EQ(State(id), "Running");
  clock.Advance(absl::Seconds(61));
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (State(id) != "gone" && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_EQ(State(id), "gone");
  EXPECT_EQ(State(forever), "Running");
}

TEST_F(LocalTest, ConcurrentDeletesAnswerAsTheRealOneDoes) {
  Start();
  const std::string id = Create();
  std::vector<int> statuses(6);
  std::vector<std::thread> threads;
  threads.reserve(statuses.size());
  for (int& status : statuses) {
    threads.emplace_back([&] { status = Call("DELETE", "/v1/sandboxes/" + id).status; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), 204), 1);
  for (const int status : statuses) EXPECT_THAT(status, ::testing::AnyOf(204, 500, 404));
  EXPECT_EQ(State(id), "gone");
}

TEST_F(LocalTest, PausedSandboxAcceptsAndDoesNotAnswer) {
  Start();
  const std::string id = Create();
  const int port = ExecdPort(id);
  EXPECT_EQ(CallPort(port, "GET", "/ping").status, 200);
  EXPECT_EQ(Call("POST", "/v1/sandboxes/" + id + "/pause").status, 202);
  EXPECT_EQ(State(id), "Paused");
  const auto hung = http::Fetch("127.0.0.1", port, "GET", "/ping", {}, "", absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsDeadlineExceeded(hung.status())) << hung.status();
  EXPECT_EQ(Call("POST", "/v1/sandboxes/" + id + "/resume").status, 202);
  EXPECT_EQ(CallPort(port, "GET", "/ping").status, 200);
  EXPECT_EQ(Call("POST", "/v1/sandboxes/" + id + "/pause").status, 202);
  EXPECT_EQ(Call("DELETE", "/v1/sandboxes/" + id).status, 204);
}

TEST_F(LocalTest, FaultPlansActOnBothHalvesAndTheRecorderSeesThem) {
  Start({.intercept_execd = true});
  const std::string id = Create();
  ASSERT_TRUE(local_
                  ->set_fault_plan(R"(
      rule { half: LIFECYCLE method: "GET" route: "/v1/sandboxes/{id}" times: 1
             action { answer { status: 503 body: "busy" } } }
      rule { half: EXECD route: "/command" action { drop_event: "execution_complete" } }
  )")
                  .ok());
  EXPECT_EQ(Call("GET", "/v1/sandboxes/" + id).status, 503);
  EXPECT_EQ(Call("GET", "/v1/sandboxes/" + id).status, 200);
  EXPECT_EQ(local_->faults().fired(0), 1);
  const std::string events = Run(id, "echo hello");
  EXPECT_THAT(events, HasSubstr("hello"));
  EXPECT_THAT(events, ::testing::Not(HasSubstr("execution_complete")));
  const auto commands = local_->recorder().Matching("POST", "/command");
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands[0].body, R"({"command":"echo hello"})");
  EXPECT_EQ(commands[0].half, faults::EXECD);
}

// What is wrong is repeated in the answer, as deep as it came.
TEST_F(LocalTest, NestedRequestsAreAnswered) {
  Start();
  const std::string nested = std::string(890, '[') + std::string(890, ']');
  for (const char* field : {"metadata", "env", "extensions", "image"}) {
    const Response response =
        Call("POST", "/v1/sandboxes", "{\"" + std::string(field) + "\":{\"a\":" + nested + "}}");
    EXPECT_EQ(response.status, 422) << field;
  }
  EXPECT_EQ(Call("POST", "/v1/sandboxes", std::string(100'000, '[')).status, 500);
}

TEST_F(LocalTest, BadFaultPlanSaysWhere) {
  Start();
  const absl::Status status = local_->set_fault_plan("rule { nonsense: 1 }");
  EXPECT_THAT(std::string(status.message()), StartsWith("fault plan: line 1, column"));
}

TEST_F(LocalTest, EndsEverythingWithTheServer) {
  Start();
  const std::string id = Create();
  const int port = ExecdPort(id);
  local_ = nullptr;
  const auto response = http::Fetch("127.0.0.1", port, "GET", "/ping", {}, "", absl::Seconds(2));
  EXPECT_FALSE(response.ok());
}

}  // namespace
}  // namespace bridge::local
