// SPDX-License-Identifier: Apache-2.0
//
// Cases from the field about sandboxes that live: expiry, pause, metadata, lists, usage.
#include <algorithm>
#include <set>

#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SandboxCases : public BridgeOverLocal {
 protected:
  absl::Status Renew(const std::string& id, int64_t seconds, v1::SetExpirationResponse* response) {
    v1::SetExpirationRequest request;
    request.set_sandbox_id(id);
    request.mutable_ttl()->set_seconds(seconds);
    return Call(*sandboxes_, &Sandboxes::SetExpiration, request, response);
  }
};

// Renew answered 200 and nothing moved; or 400, raw.
TEST_F(SandboxCases, RenewalsThatDoNotWhatTheySay) {
  v1::Sandbox sandbox;
  ASSERT_THAT(Create(CreateRequest(), &sandbox), IsOk());
  v1::SetExpirationResponse response;
  ASSERT_THAT(Renew(sandbox.sandbox_id(), 120, &response), IsOk());
  EXPECT_LT(response.expires_at().seconds(), sandbox.expires_at().seconds());  // shortened
  const int64_t stored = response.expires_at().seconds();

  Faults(R"(rule { half: LIFECYCLE route: "/v1/sandboxes/{id}/renew-expiration" times: 1 action {
            answer { status: 200 header { name: "Content-Type" value: "application/json" }
                     body: '{"expiresAt":"2020-01-01T00:00:00Z"}' } } })");
  ASSERT_THAT(Renew(sandbox.sandbox_id(), 600, &response), IsOk());
  EXPECT_EQ(response.expires_at().seconds(), stored);  // unmoved, and said so

  Faults(R"(rule { half: LIFECYCLE route: "/v1/sandboxes/{id}/renew-expiration" times: 1 action {
            answer { status: 400 body: '{"code":"DOCKER::INVALID_EXPIRATION","message":"later only"}' } } })");
  EXPECT_THAT(Renew(sandbox.sandbox_id(), 600, &response),
              AllOf(HasReason("UPSTREAM_REJECTED"), HasMessage("later only")));
}

// The server's clock is not the bridge's.
TEST_F(SandboxCases, ARenewalUnderASkewedClock) {
  const std::string id = MustCreate();
  Faults(R"(rule { half: LIFECYCLE action { date_skew_seconds: 1800 } })");
  v1::SetExpirationResponse response;
  ASSERT_THAT(Renew(id, 600, &response), IsOk());
  const int64_t ahead = response.expires_at().seconds() - absl::ToUnixSeconds(absl::Now());
  EXPECT_NEAR(static_cast<double>(ahead), 1800 + 600, 5);
}

// 'No timeout' crashed; and a sandbox without one could silently not be given one.
TEST_F(SandboxCases, ASandboxThatNeverExpires) {
  v1::CreateSandboxRequest request = CreateRequest();
  request.mutable_spec()->set_never(true);
  v1::Sandbox sandbox;
  ASSERT_THAT(Create(request, &sandbox), IsOk());
  EXPECT_EQ(local_->recorder().Matching("POST", "/v1/sandboxes")[0].body.find("timeout"),
            std::string::npos);
  EXPECT_FALSE(sandbox.has_expires_at());
  v1::SetExpirationResponse response;
  EXPECT_THAT(Renew(sandbox.sandbox_id(), 600, &response), HasReason("NO_EXPIRY"));
}

// The second pause and resume failed, or lost files.
TEST_F(SandboxCases, ThreeRoundsOfPauseAndResume) {
  const std::string id = MustCreate();
  v1::RunResponse run;
  ASSERT_THAT(Run(id, "nohup sleep 9123 >/dev/null 2>&1 &", &run), IsOk());
  for (int round = 1; round <= 3; ++round) {
    const std::string n = std::to_string(round);
    ASSERT_THAT(Run(id, "echo " + n + " > /tmp/r" + n + "; cat /tmp/r*", &run), IsOk());
    v1::PauseSandboxRequest pause;
    pause.set_sandbox_id(id);
    v1::PauseSandboxResponse paused;
    ASSERT_THAT(Call(*sandboxes_, &Sandboxes::PauseSandbox, pause, &paused), IsOk());
    EXPECT_TRUE(paused.settled());
    // Nobody waits for a frozen sandbox: its state is told.
    EXPECT_THAT(Run(id, "true", &run),
                AllOf(HasReason("SANDBOX_NOT_RUNNING"), HasDetail("state", "Paused")));
    v1::ResumeSandboxRequest resume;
    resume.set_sandbox_id(id);
    v1::ResumeSandboxResponse resumed;
    ASSERT_THAT(Call(*sandboxes_, &Sandboxes::ResumeSandbox, resume, &resumed), IsOk());
    EXPECT_TRUE(resumed.settled());
    ASSERT_THAT(Run(id, "cat /tmp/r*", &run), IsOk());
    EXPECT_EQ(std::count(run.stdout().begin(), run.stdout().end(), '\n'), round);
    ASSERT_THAT(Run(id, "pgrep -fc '^sleep 9123$'", &run), IsOk());
    EXPECT_EQ(run.stdout(), "1\n");  // what ran goes on
  }
}

// Resume returned too early, and the first call met a daemon that was not there yet.
TEST_F(SandboxCases, TheFirstCallRightAfterResume) {
  const std::string id = MustCreate();
  v1::PauseSandboxRequest pause;
  pause.set_sandbox_id(id);
  v1::PauseSandboxResponse paused;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::PauseSandbox, pause, &paused), IsOk());
  local_->recorder().Clear();
  Faults(R"(rule { half: EXECD times: 8 action { answer { status: 502 } } })");
  v1::ResumeSandboxRequest resume;
  resume.set_sandbox_id(id);
  v1::ResumeSandboxResponse resumed;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::ResumeSandbox, resume, &resumed), IsOk());
  EXPECT_TRUE(resumed.settled());
  v1::RunResponse run;
  ASSERT_THAT(Run(id, "echo hi", &run), IsOk());
  EXPECT_EQ(run.stdout(), "hi\n");
  EXPECT_EQ(CommandsWith("echo hi"), 1);
}

// Label rules and filters: errors without the key's name, filters that found nothing.
TEST_F(SandboxCases, MetadataFindsExactlyItsSandbox) {
  v1::CreateSandboxRequest request = CreateRequest();
  (*request.mutable_spec()->mutable_metadata())["example.com/team"] = "a.b_c-1";
  v1::Sandbox tagged;
  ASSERT_THAT(Create(request, &tagged), IsOk());
  MustCreate();
  v1::ListSandboxesRequest list;
  (*list.mutable_metadata())["example.com/team"] = "a.b_c-1";
  v1::ListSandboxesResponse listed;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::ListSandboxes, list, &listed), IsOk());
  ASSERT_EQ(listed.sandboxes_size(), 1);
  EXPECT_EQ(listed.sandboxes(0).sandbox_id(), tagged.sandbox_id());
  EXPECT_EQ(listed.sandboxes(0).metadata().size(), 1u);
  const auto gets = local_->recorder().Matching("GET", "/v1/sandboxes");
  EXPECT_THAT(gets.back().target, HasSubstr("metadata=example.com%2Fteam%3Da.b_c-1"));
}

TEST_F(SandboxCases, ListingInPages) {
  for (int i = 0; i < 5; ++i) MustCreate();
  v1::ListSandboxesRequest list;
  list.set_page_size(2);
  std::set<std::string> ids;
  for (int page = 0; page < 5; ++page) {
    v1::ListSandboxesResponse listed;
    ASSERT_THAT(Call(*sandboxes_, &Sandboxes::ListSandboxes, list, &listed), IsOk());
    for (const auto& sandbox : listed.sandboxes()) ids.insert(sandbox.sandbox_id());
    list.set_page_token(listed.next_page_token());
    if (listed.next_page_token().empty()) break;
  }
  EXPECT_EQ(ids.size(), 5u);
  EXPECT_EQ(Count("GET", "/v1/sandboxes"), 3u);
}

// An exhausted pool read like a network problem.
TEST_F(SandboxCases, NoCapacity) {
  for (const int status : {409, 429, 500, 503}) {
    Faults(
        R"(rule { half: LIFECYCLE method: "POST" action { answer { status: )" +
        std::to_string(status) +
        R"( body: '{"code":"KUBERNETES::POOL_EXHAUSTED","message":"pool is at poolMax"}' } } })");
    v1::Sandbox sandbox;
    const absl::Status result = Create(CreateRequest(), &sandbox);
    EXPECT_EQ(result.code(),
              status == 503 ? absl::StatusCode::kUnavailable : absl::StatusCode::kResourceExhausted)
        << status;
    EXPECT_THAT(result, HasMessage("pool is at poolMax"));
  }
}

// A missing sandbox looked like exit code 1.
TEST_F(SandboxCases, NothingFoundIsNotNoSandbox) {
  const std::string id = MustCreate();
  v1::RunResponse run;
  ASSERT_THAT(Run(id, "exit 1", &run), IsOk());
  EXPECT_EQ(run.outcome().exit_code(), 1);
  run.Clear();
  EXPECT_THAT(Run("00000000-0000-4000-8000-000000000000", "exit 1", &run),
              HasReason("SANDBOX_NOT_FOUND"));
  EXPECT_FALSE(run.has_outcome());
}

// Explicit nulls and odd times in answers.
TEST_F(SandboxCases, AnswersWithNullsAndOddTimes) {
  const std::string id = MustCreate();
  Faults(
      R"(rule { half: LIFECYCLE method: "GET" route: "/v1/sandboxes/{id}" action { answer {
            status: 200 header { name: "Content-Type" value: "application/json" } body:
            '{"id":")" +
      id + R"(","metadata":null,"expiresAt":"2026-09-01t08:00:00.000+08:00","platform":null,)" +
      R"("image":null,"status":{"state":"Running","reason":null},"createdAt":null,"new":[1]}' } } })");
  v1::Sandbox sandbox;
  ASSERT_THAT(Get(id, &sandbox), IsOk());
  EXPECT_EQ(sandbox.state(), v1::SANDBOX_STATE_RUNNING);
  EXPECT_EQ(sandbox.expires_at().seconds(), 1788220800);
  EXPECT_FALSE(sandbox.has_created_at());
}

TEST_F(SandboxCases, ADeadDaemonBehindARunningRecord) {
  const std::string id = MustCreate();
  Faults(R"(rule { half: EXECD action { reset: true } })");
  v1::ProbeSandboxRequest request;
  request.set_sandbox_id(id);
  request.set_check_daemon(true);
  v1::ProbeSandboxResponse response;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::ProbeSandbox, request, &response), IsOk());
  EXPECT_EQ(response.exists().sandbox().state(), v1::SANDBOX_STATE_RUNNING);
  EXPECT_EQ(response.exists().daemon(), v1::ProbeSandboxResponse::DAEMON_STATE_SILENT);
}

TEST_F(SandboxCases, UsageOnceAndAsAStream) {
  const std::string id = MustCreate();
  v1::GetResourceUsageRequest request;
  request.set_sandbox_id(id);
  v1::ResourceUsage usage;
  ASSERT_THAT(Call(*sandboxes_, &Sandboxes::GetResourceUsage, request, &usage), IsOk());
  EXPECT_GT(usage.cpu_count(), 0);
  EXPECT_GT(usage.memory_total_bytes(), usage.memory_used_bytes());
  grpc::ClientContext context;
  v1::WatchResourceUsageRequest watch;
  watch.set_sandbox_id(id);
  auto reader = sandboxes_->WatchResourceUsage(&context, watch);
  ASSERT_TRUE(reader->Read(&usage));
  EXPECT_GT(usage.at().seconds(), 0);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

// A watch ends with its caller's time: nobody failed to answer.
TEST_F(SandboxCases, TheDeadlineOfAWatchIsItsCallers) {
  const std::string id = MustCreate();
  const auto expect_deadline = [](auto read, auto finish) {
    while (read()) {
    }
    const absl::Status status = FromGrpcStatus(finish());
    EXPECT_THAT(status, HasReason("DEADLINE_EXCEEDED"));
    EXPECT_NE(MetadataOf(status)["waiting_for"], "");
  };
  {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(2)));
    v1::WatchResourceUsageRequest request;
    request.set_sandbox_id(id);
    auto reader = sandboxes_->WatchResourceUsage(&context, request);
    v1::ResourceUsage usage;
    expect_deadline([&] { return reader->Read(&usage); }, [&] { return reader->Finish(); });
  }
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(2)));
  v1::WatchDirectoryRequest request;
  request.set_sandbox_id(id);
  request.set_path("/tmp");
  const auto files = v1::FileService::NewStub(channel_);
  auto reader = files->WatchDirectory(&context, request);
  v1::WatchEventBatch batch;
  expect_deadline([&] { return reader->Read(&batch); }, [&] { return reader->Finish(); });
}

TEST_F(SandboxCases, DiagnosticsOfARunningSandbox) {
  v1::CreateSandboxRequest create = CreateRequest();
  create.mutable_spec()->add_env()->set_name("APP_TOKEN");
  create.mutable_spec()->mutable_env(0)->set_value("CANARYENV");
  v1::Sandbox sandbox;
  ASSERT_THAT(Create(create, &sandbox), IsOk());
  for (const auto kind :
       {v1::GetDiagnosticsRequest::KIND_SUMMARY, v1::GetDiagnosticsRequest::KIND_INSPECT,
        v1::GetDiagnosticsRequest::KIND_EVENTS, v1::GetDiagnosticsRequest::KIND_LOGS}) {
    v1::GetDiagnosticsRequest request;
    request.set_sandbox_id(sandbox.sandbox_id());
    request.set_kind(kind);
    v1::GetDiagnosticsResponse response;
    ASSERT_THAT(Call(*sandboxes_, &Sandboxes::GetDiagnostics, request, &response), IsOk()) << kind;
    EXPECT_THAT(response.text(), Not(HasSubstr("CANARY"))) << kind;
  }
}

}  // namespace
}  // namespace bridge
