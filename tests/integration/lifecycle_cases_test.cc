// SPDX-License-Identifier: Apache-2.0
//
// Lifecycle cases from the field, each named by what its user saw: the whole bridge against a whole
// local OpenSandbox that misbehaves. The waits and races behind them are tested one by one, on a
// clock that stands still, in tests/opensandbox.
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LifecycleCases : public BridgeOverLocal {
 protected:
  json CreateBody() {
    const auto posts = local_->recorder().Matching("POST", "/v1/sandboxes");
    return posts.empty() ? json() : json::parse(posts.back().body);
  }
};

// Create succeeded, and the very first command failed with a proxy's 502.
TEST_F(LifecycleCases, TheFirstCommandRightAfterCreate) {
  for (const char* fault :
       {R"(answer { status: 502 body: '{"message":"Could not connect to the backend sandbox"}' })",
        R"(answer { status: 500 body: "An internal error occurred in the proxy" })",
        "reset: true"}) {
    Faults(std::string(R"(rule { half: EXECD times: 6 action { )") + fault + " } }");
    local_->recorder().Clear();
    const std::string id = MustCreate();
    v1::RunResponse run;
    ASSERT_THAT(Run(id, "echo hi", &run), IsOk());
    EXPECT_EQ(run.stdout(), "hi\n");
    EXPECT_EQ(run.outcome().exit_code(), 0);
    EXPECT_EQ(CommandsWith("echo hi"), 1);
  }
}

// Readiness never came, and the clean-up's 404 hid the cause.
TEST_F(LifecycleCases, NeverReadyAndTheDeleteSaysNotFound) {
  Faults(R"(rule { half: EXECD action { answer { status: 500 body: "boom" } } }
            rule { half: LIFECYCLE method: "DELETE" route: "/v1/sandboxes/{id}" times: 1
                   action { answer { status: 404
                     body: '{"code":"DOCKER::SANDBOX_NOT_FOUND","message":"gone"}' } } })");
  v1::CreateSandboxRequest request = CreateRequest();
  request.mutable_ready_timeout()->set_seconds(3);
  v1::Sandbox sandbox;
  const absl::Status status = Create(request, &sandbox);
  EXPECT_THAT(status, AllOf(HasReason("READY_TIMEOUT"), HasMessage("500: boom")));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.ToString(),
              AllOf(Not(HasSubstr("answered 404")), Not(HasSubstr("NOT_FOUND"))));
  EXPECT_GE(took_, absl::Seconds(3));
  EXPECT_LE(took_, absl::Seconds(6));
  EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 1u);
  const auto leaked = MetadataOf(status);
  ASSERT_TRUE(leaked.contains("leaked_sandbox_id"));  // the server still shows it
  v1::DeleteSandboxResponse response;
  EXPECT_THAT(Delete(leaked.at("leaked_sandbox_id"), &response), IsOk());
}

// The caller gave up during create, and the sandbox lived on.
TEST_F(LifecycleCases, ACallerWhoGivesUpWhileItStarts) {
  Faults(R"(rule { half: LIFECYCLE action { pending_seconds: 20 } })");
  grpc::ClientContext context;
  v1::CreateSandboxResponse response;
  grpc::Status status;
  std::thread call(
      [&] { status = sandboxes_->CreateSandbox(&context, CreateRequest(), &response); });
  ASSERT_TRUE(WaitFor("GET", "/v1/sandboxes/{id}", 1));
  context.TryCancel();
  call.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(WaitFor("DELETE", "/v1/sandboxes/{id}", 1, absl::Seconds(5)));
}

TEST_F(LifecycleCases, ACallerWhoGivesUpBeforeTheAnswer) {
  Faults(R"(rule { half: LIFECYCLE method: "POST" route: "/v1/sandboxes"
                   action { delay_seconds: 2 } })");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(700));
  v1::CreateSandboxResponse response;
  const grpc::Status status = sandboxes_->CreateSandbox(&context, CreateRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 0u);
  EXPECT_TRUE(WaitFor("DELETE", "/v1/sandboxes/{id}", 1, absl::Seconds(10)));
}

// A wrong image name meant waiting the whole ready timeout with no reason.
TEST_F(LifecycleCases, AnImageThatCannotBePulled) {
  Faults(R"(rule { half: LIFECYCLE method: "POST" route: "/v1/sandboxes" action { answer {
            status: 500 body: '{"code":"DOCKER::SANDBOX_IMAGE_PULL_FAILED","message":"no such image nope:0"}' } } })");
  v1::Sandbox sandbox;
  EXPECT_THAT(Create(CreateRequest(), &sandbox),
              AllOf(HasReason("SANDBOX_FAILED"), HasMessage("no such image nope:0"),
                    HasDetail("upstream_code", "DOCKER::SANDBOX_IMAGE_PULL_FAILED")));
  EXPECT_LE(took_, absl::Seconds(1));
}

TEST_F(LifecycleCases, AnEntrypointThatEnds) {
  v1::CreateSandboxRequest request = CreateRequest();
  request.mutable_spec()->add_entrypoint("sh");
  request.mutable_spec()->add_entrypoint("-c");
  request.mutable_spec()->add_entrypoint("exit 3");
  Faults(R"(rule { half: EXECD action { answer { status: 502 } } })");  // not before it is over
  v1::Sandbox sandbox;
  EXPECT_THAT(Create(request, &sandbox), AllOf(HasReason("SANDBOX_FAILED"),
                                               HasDetail("state", "Failed"), HasMessage("code 3")));
  EXPECT_LE(took_, absl::Seconds(10));
  EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 1u);
}

// Running, and execd never started because there was no entrypoint.
TEST_F(LifecycleCases, ACreateWithoutAnEntrypoint) {
  MustCreate();
  const json body = CreateBody();
  EXPECT_EQ(body["entrypoint"], json({"tail", "-f", "/dev/null"}));
  EXPECT_TRUE(body.contains("resourceLimits"));
  EXPECT_TRUE(body.contains("image"));
  EXPECT_FALSE(body.contains("snapshotId"));
}

// The command's or the readiness timeout was used as the sandbox's lifetime.
TEST_F(LifecycleCases, ThreeTimeoutsThatAreNotTheSame) {
  v1::CreateSandboxRequest request = CreateRequest();
  request.mutable_ready_timeout()->set_seconds(20);
  v1::Sandbox sandbox;
  ASSERT_THAT(Create(request, &sandbox), IsOk());
  const json create = CreateBody();
  EXPECT_EQ(create["timeout"], 600);
  const json fields = create.flatten();
  for (const auto& [key, value] : fields.items()) EXPECT_NE(value, 20) << key;
  v1::RunRequest run;
  run.set_sandbox_id(sandbox.sandbox_id());
  run.mutable_spec()->set_shell("true");
  run.mutable_spec()->mutable_timeout()->set_seconds(5);
  v1::RunResponse response;
  ASSERT_THAT(Call(*execs_, &Execs::Run, run, &response), IsOk());
  EXPECT_EQ(Count("POST", "/v1/sandboxes/{id}/renew-expiration"), 0u);
  json command;
  for (const auto& received : local_->recorder().requests()) {
    if (received.half == local::faults::EXECD && received.method == "POST") {
      const json body = json::parse(received.body, nullptr, /*allow_exceptions=*/false);
      if (body.is_object() && body.contains("timeout_ms")) command = body;
    }
  }
  EXPECT_EQ(command["timeout_ms"], 5000) << command;
}

// A second terminate reported an error for a sandbox that was gone.
TEST_F(LifecycleCases, DeletingTwice) {
  const std::string id = MustCreate();
  v1::DeleteSandboxResponse response;
  ASSERT_THAT(Delete(id, &response), IsOk());
  EXPECT_EQ(response.verdict(), v1::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE);
  local_->recorder().Clear();
  response.Clear();
  ASSERT_THAT(Delete(id, &response), IsOk());
  EXPECT_EQ(response.verdict(), v1::DeleteSandboxResponse::VERDICT_ALREADY_GONE);
  EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 1u);
}

// Delete answered 409 while another transition ran.
TEST_F(LifecycleCases, ADeleteThatMeetsATransition) {
  const std::string id = MustCreate();
  Faults(R"(rule { half: LIFECYCLE method: "DELETE" times: 1 action { answer { status: 409 } } }
            rule { half: LIFECYCLE method: "DELETE" first: 2 times: 1 action { answer { status: 409
                   header { name: "Retry-After" value: "1" } } } })");
  v1::DeleteSandboxResponse response;
  ASSERT_THAT(Delete(id, &response), IsOk());
  EXPECT_EQ(response.verdict(), v1::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE);
  EXPECT_LE(took_, absl::Seconds(5));
  EXPECT_EQ(Count("DELETE", "/v1/sandboxes/{id}"), 3u);
}

// A paused sandbox could not be deleted, and nobody said so.
TEST_F(LifecycleCases, ADeleteThatFailsForGood) {
  const std::string id = MustCreate();
  Faults(R"(rule { half: LIFECYCLE method: "DELETE" action { answer { status: 500
            body: '{"code":"X","message":"sandbox not in normal state"}' } } })");
  v1::DeleteSandboxResponse response;
  EXPECT_THAT(Delete(id, &response),
              AllOf(HasReason("UPSTREAM_FAILED"), HasMessage("not in normal state")));
  EXPECT_LE(Count("DELETE", "/v1/sandboxes/{id}"), 3u);
}

// 204, and the sandbox went on.
TEST_F(LifecycleCases, ADeleteThatIsOnlyAccepted) {
  const std::string id = MustCreate();
  Faults(R"(rule { half: LIFECYCLE method: "DELETE" action { keep_on_delete: true } })");
  v1::DeleteSandboxRequest request;
  request.set_sandbox_id(id);
  request.mutable_wait_for_proof()->set_seconds(1);
  v1::DeleteSandboxResponse response;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::DeleteSandbox, request, &response), IsOk());
  EXPECT_EQ(response.verdict(), v1::DeleteSandboxResponse::VERDICT_ACCEPTED_UNCONFIRMED);
  EXPECT_EQ(response.evidence(0).upstream_status(), 204);
  EXPECT_EQ(response.evidence(1).upstream_status(), 200);
}

// The answer to a create was lost, and a second try made a second sandbox.
TEST_F(LifecycleCases, ALostAnswerMakesNoSecondSandbox) {
  Faults(R"(rule { half: LIFECYCLE method: "POST" route: "/v1/sandboxes" times: 1
                   action { reset_after_bytes: 0 } }
            rule { half: LIFECYCLE action { hide_new_seconds: 1 } })");
  v1::CreateSandboxRequest request = CreateRequest();
  request.set_request_id("r-1");
  v1::CreateSandboxResponse first;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::CreateSandbox, request, &first), IsOk());
  EXPECT_EQ(Count("POST", "/v1/sandboxes"), 1u);
  v1::CreateSandboxResponse second;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::CreateSandbox, request, &second), IsOk());
  EXPECT_TRUE(second.adopted());
  EXPECT_EQ(second.sandbox().sandbox_id(), first.sandbox().sandbox_id());
  EXPECT_EQ(Count("POST", "/v1/sandboxes"), 1u);
}

}  // namespace
}  // namespace bridge
