// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/lifecycle_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bridge/opensandbox/timestamps.h"
#include "tests/fakes/fake_opensandbox.h"
#include "tests/fakes/fake_time.h"
#include "tests/fakes/status_matchers.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class LifecycleClientTest : public ::testing::Test {
 protected:
  static LifecycleClientOptions Options() {
    LifecycleClientOptions options;
    options.server = *ParseBaseUrl(FakeOpenSandbox::kUrl);
    options.random = [] { return 0.5; };
    return options;
  }
  CallContext Context(absl::Duration time = absl::InfiniteDuration()) {
    return {.api_key = "CANARYKEY", .deadline = loop_.Now() + time};
  }
  template <class Body>
  auto Run(Body body) {
    return RunInFakeTime(clock_, loop_, std::move(body));
  }
  auto Get(absl::Duration time = absl::InfiniteDuration()) {
    return Run([&] { return client_.Get(Context(time), "sb-1"); });
  }
  // When the requests came, counted from the first.
  std::vector<absl::Duration> Times() {
    std::vector<absl::Duration> result;
    for (const SeenRequest& seen : fake_.requests()) {
      result.push_back(seen.at - fake_.requests().front().at);
    }
    return result;
  }

  FakeClock clock_;
  EventLoop loop_{clock_};
  FakeOpenSandbox fake_{loop_};
  LifecycleClient client_{loop_, fake_, Options()};
};

TEST_F(LifecycleClientTest, ReadsWithKeyAndTrace) {
  fake_.Add("sb-1").metadata = {{"team", "core"}};
  CallContext context = Context();
  context.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const auto reading = Run([&] { return client_.Get(context, "sb-1"); });
  ASSERT_THAT(reading, IsOk());
  EXPECT_EQ(reading->record.metadata.at("team"), "core");
  EXPECT_EQ(reading->server_time, absl::FromUnixSeconds(1'700'000'000));
  const SeenRequest seen = fake_.requests()[0];
  EXPECT_EQ(seen.method + " " + seen.host + seen.path, "GET srv:8080/v1/sandboxes/sb-1");
  EXPECT_EQ(seen.headers.Get("open-sandbox-api-key"), "CANARYKEY");
  EXPECT_EQ(seen.headers.Get("traceparent"), context.traceparent);
  EXPECT_EQ(seen.timeout, absl::Seconds(30));
}

TEST_F(LifecycleClientTest, NoKeyNoHeader) {
  fake_.Add("sb-1");
  (void)Run([&] { return client_.Get({}, "sb-1"); });
  EXPECT_FALSE(fake_.requests()[0].headers.Has("open-sandbox-api-key"));
  EXPECT_FALSE(fake_.requests()[0].headers.Has("traceparent"));
}

TEST_F(LifecycleClientTest, AnIdIsOneSegment) {
  for (const char* id : {"../sandboxes", "a/b", "a%2Fb", "a?x=1", "a#b", "..", "A B\n"}) {
    fake_.ForgetRequests();
    (void)Run([&] { return client_.Delete(Context(), id); });
    ASSERT_THAT(fake_.requests(), SizeIs(1)) << id;
    const SeenRequest seen = fake_.requests()[0];
    const std::string rest = seen.path.substr(std::string("/v1/sandboxes/").size());
    EXPECT_EQ(rest.find('/'), std::string::npos) << seen.path;
    EXPECT_NE(rest, "..") << seen.path;
    EXPECT_EQ(seen.query, "") << id;
    EXPECT_EQ(seen.path.find_first_of("#? \n"), std::string::npos) << seen.path;
  }
}

TEST_F(LifecycleClientTest, AnEmptyIdIsNeverAList) {
  const auto check = [&](auto body) {
    EXPECT_THAT(Run(std::move(body)), RejectsField("sandbox_id"));
  };
  check([&] { return client_.Get(Context(), ""); });
  check([&] { return client_.Delete(Context(), ""); });
  check([&] { return client_.Pause(Context(), ""); });
  check([&] { return client_.Resume(Context(), ""); });
  check([&] { return client_.Renew(Context(), "", absl::UnixEpoch()); });
  check([&] { return client_.GetEndpoint(Context(), "", 80, false); });
  check([&] { return client_.SignEndpoint(Context(), "", 80, 1); });
  check([&] { return client_.PatchMetadata(Context(), "", {}, {}); });
  check([&] { return client_.GetNetworkPolicy(Context(), ""); });
  check([&] { return client_.CreateSnapshot(Context(), "", ""); });
  EXPECT_THAT(Run([&] { return client_.DeleteSnapshot(Context(), ""); }),
              RejectsField("snapshot_id"));
  EXPECT_THAT(fake_.requests(), SizeIs(0));
}

TEST_F(LifecycleClientTest, ReadsAreTriedAgainWithJitter) {
  fake_.Add("sb-1");
  fake_.Script("GET /v1/sandboxes/sb-1", {.status = 502, .times = 2});
  fake_.Script("GET /v1/sandboxes/sb-1", {.refused = true});
  EXPECT_THAT(Get(), IsOk());
  // Half of 100, 200 and 400 ms.
  EXPECT_THAT(Times(), ElementsAre(absl::ZeroDuration(), absl::Milliseconds(50),
                                   absl::Milliseconds(150), absl::Milliseconds(350)));
}

TEST_F(LifecycleClientTest, FewTriesThenTheLastFailure) {
  fake_.Script("GET *", {.status = 503, .body = R"({"code":"X","message":"later"})", .times = -1});
  EXPECT_THAT(Get(), AllOf(HasReason("UPSTREAM_UNAVAILABLE"), HasMessage("later"),
                           HasDetail("upstream_status", "503"), HasDetail("host", "srv:8080")));
  EXPECT_THAT(fake_.requests(), SizeIs(4));
}

TEST_F(LifecycleClientTest, RetryAfterIsHonoured) {
  fake_.Add("sb-1");
  fake_.Script("GET *", {.status = 429, .headers = {{"Retry-After", "2"}}});
  EXPECT_THAT(Get(), IsOk());
  EXPECT_THAT(Times(), ElementsAre(absl::ZeroDuration(), absl::Seconds(2)));

  fake_.ForgetRequests();
  const absl::Time date = ParseHttpDate("Tue, 14 Nov 2023 22:13:20 GMT").value();
  fake_.Script("GET *", {.status = 503,
                         .headers = {{"Date", "Tue, 14 Nov 2023 22:13:20 GMT"},
                                     {"Retry-After", "Tue, 14 Nov 2023 22:13:23 GMT"}}});
  EXPECT_EQ(absl::ToUnixSeconds(date), 1'700'000'000);
  EXPECT_THAT(Get(), IsOk());
  EXPECT_THAT(Times(), ElementsAre(absl::ZeroDuration(), absl::Seconds(3)));

  fake_.ForgetRequests();
  fake_.Script("GET *", {.status = 429, .headers = {{"Retry-After", "soon"}}});
  EXPECT_THAT(Get(), IsOk());
  EXPECT_THAT(Times(), ElementsAre(absl::ZeroDuration(), absl::Milliseconds(50)));
}

TEST_F(LifecycleClientTest, ALongRetryAfterIsTheCallersDecision) {
  fake_.Script("GET *", {.status = 429, .headers = {{"Retry-After", "11"}}, .times = -1});
  const auto result = Get();
  EXPECT_THAT(result, HasReason("QUOTA_EXCEEDED"));
  EXPECT_EQ(RetryAfterOf(result.status()), absl::Seconds(11));
  EXPECT_THAT(fake_.requests(), SizeIs(1));
}

TEST_F(LifecycleClientTest, NoTryPastTheDeadline) {
  fake_.Script("GET *", {.status = 429, .headers = {{"Retry-After", "5"}}, .times = -1});
  EXPECT_THAT(Get(absl::Seconds(4)), HasReason("QUOTA_EXCEEDED"));
  EXPECT_THAT(fake_.requests(), SizeIs(1));
  EXPECT_THAT(Get(absl::ZeroDuration()),
              AllOf(HasReason("DEADLINE_EXCEEDED"), HasDetail("waiting_for", "get")));
  EXPECT_THAT(fake_.requests(), SizeIs(1));
}

TEST_F(LifecycleClientTest, TheDeadlineBoundsARequest) {
  fake_.Add("sb-1");
  fake_.Script("GET *", {.delay = absl::Hours(1)});
  EXPECT_THAT(Get(absl::Seconds(3)),
              AllOf(HasReason("UPSTREAM_TIMEOUT"), HasDetail("phase", "answer")));
  EXPECT_EQ(clock_.Monotonic(), absl::Seconds(3));
  EXPECT_THAT(fake_.requests(), SizeIs(1));  // a slow server is not asked again
}

TEST_F(LifecycleClientTest, OtherStatusesAreNotTriedAgain) {
  for (const int status : {400, 401, 403, 404, 409, 410, 422, 500, 501}) {
    fake_.ForgetRequests();
    fake_.Script("GET *", {.status = status});
    EXPECT_THAT(Get(), Not(IsOk())) << status;
    EXPECT_THAT(fake_.requests(), SizeIs(1)) << status;
  }
}

TEST_F(LifecycleClientTest, WritesAreSentOnce) {
  fake_.Add("sb-1");
  CreateSpec spec;
  spec.image = "img";
  const auto check = [&](auto body) {
    for (const FakeReply& reply :
         {FakeReply{.status = 503}, FakeReply{.status = 429}, FakeReply{.refused = true},
          FakeReply{.lost = true, .unprocessed = true}}) {
      fake_.ForgetRequests();
      fake_.Script("*", reply);
      EXPECT_THAT(Run(body), Not(IsOk()));
      EXPECT_THAT(fake_.requests(), SizeIs(1));
    }
  };
  check([&] { return client_.Create(Context(), spec); });
  check([&] { return client_.Delete(Context(), "sb-1"); });
  check([&] { return client_.Pause(Context(), "sb-1"); });
  check([&] { return client_.Resume(Context(), "sb-1"); });
  check([&] { return client_.Renew(Context(), "sb-1", absl::UnixEpoch()); });
  check([&] { return client_.PatchMetadata(Context(), "sb-1", {}, {}); });
  check([&] { return client_.AddNetworkRules(Context(), "sb-1", {}); });
  check([&] { return client_.CreateSnapshot(Context(), "sb-1", ""); });
}

TEST_F(LifecycleClientTest, CreateWaitsAsLongAsTheCall) {
  CreateSpec spec;
  spec.image = "img";
  fake_.Script("POST /v1/sandboxes", {.delay = absl::Minutes(4)});
  EXPECT_THAT(Run([&] { return client_.Create(Context(absl::Minutes(5)), spec); }), IsOk());
  EXPECT_EQ(fake_.requests()[0].timeout, absl::Minutes(5));
  EXPECT_EQ(fake_.requests()[0].headers.Get("content-type"), "application/json");
}

TEST_F(LifecycleClientTest, SecretsOfACreateNeverComeBack) {
  CreateSpec spec;
  spec.env = {{"T", "CANARYENV"}, {"MODE", "test"}};
  spec.image = "img";
  spec.image_user = "u";
  spec.image_password = "CANARYPASS";
  fake_.Script(
      "POST *",
      {.status = 500,
       .body = R"({"code":"X","message":"login u:CANARYPASS, CANARYKEY, CANARYENV test"})"});
  const auto result = Run([&] { return client_.Create(Context(), spec); });
  EXPECT_THAT(fake_.requests()[0].body, HasSubstr("CANARYPASS"));
  EXPECT_THAT(result.status().ToString(), Not(HasSubstr("CANARY")));
  EXPECT_THAT(result, HasMessage("test"));
}

TEST_F(LifecycleClientTest, OneSandboxIsNotTakenForAnother) {
  fake_.Script("GET *", {.status = 200, .body = R"({"id":"sb-2","status":{"state":"Running"}})"});
  EXPECT_THAT(Get(), AllOf(HasReason("UPSTREAM_PROTOCOL"), HasMessage("another sandbox")));
}

TEST_F(LifecycleClientTest, NonsenseIsNamedAsSuch) {
  for (const char* body : {"", "nope", "[]", "{}", R"({"items":[]})"}) {
    fake_.Script("GET *", {.status = 200, .body = body});
    EXPECT_THAT(Get(), AllOf(HasReason("UPSTREAM_PROTOCOL"), HasMessage("srv:8080"))) << body;
  }
}

TEST_F(LifecycleClientTest, ListFiltersTravelEncoded) {
  fake_.Add("sb-1").metadata = {{"example.org/run", "r-2"}, {"team", "core"}};
  fake_.Add("sb-2").metadata = {{"team", "core"}};
  const auto page = Run([&] {
    return client_.List(Context(), {.metadata = {{"example.org/run", "r-2"}, {"team", "core"}},
                                    .states = {"Running", "Paused"},
                                    .page = 1,
                                    .page_size = 7});
  });
  ASSERT_THAT(page, IsOk());
  ASSERT_THAT(page->items, SizeIs(1));
  EXPECT_EQ(page->items[0].id, "sb-1");
  // The recorded form, with the page and states before it.
  EXPECT_EQ(fake_.requests()[0].query,
            "page=1&pageSize=7&state=Running&state=Paused"
            "&metadata=example.org%2Frun%3Dr-2%26team%3Dcore");
}

TEST_F(LifecycleClientTest, AValueCannotSplitTheFilter) {
  (void)Run([&] { return client_.List(Context(), {.metadata = {{"k", "a&team=x"}}}); });
  EXPECT_THAT(fake_.requests()[0].query, HasSubstr("metadata=k%3Da%2526team%253Dx"));
}

TEST_F(LifecycleClientTest, DeleteAnswersTheStatus) {
  fake_.Add("sb-1");
  EXPECT_EQ(*Run([&] { return client_.Delete(Context(), "sb-1"); }), 204);
  EXPECT_THAT(Run([&] { return client_.Delete(Context(), "sb-1"); }),
              HasReason("SANDBOX_NOT_FOUND"));
}

TEST_F(LifecycleClientTest, EndpointsBecomeUrls) {
  fake_.Add("sb-1").address = "10.0.0.7:44064";
  fake_.endpoint_headers = {{"X-EXECD-ACCESS-TOKEN", "t"}};
  const auto direct = Run([&] { return client_.GetEndpoint(Context(), "sb-1", 44772, false); });
  EXPECT_EQ(direct->url, "http://10.0.0.7:44064/proxy/44772");
  EXPECT_EQ(direct->headers.Get("x-execd-access-token"), "t");
  EXPECT_FALSE(direct->through_server);
  EXPECT_EQ(fake_.requests()[0].query, "");
  const auto proxied = Run([&] { return client_.GetEndpoint(Context(), "sb-1", 8000, true); });
  EXPECT_EQ(proxied->url, "http://srv:8080/v1/sandboxes/sb-1/proxy/8000");
  EXPECT_TRUE(proxied->through_server);
  EXPECT_EQ(fake_.requests()[1].query, "use_server_proxy=true");
}

TEST_F(LifecycleClientTest, SigningNeverUsesTheProxy) {
  fake_.Add("sb-1");
  EXPECT_THAT(Run([&] { return client_.SignEndpoint(Context(), "sb-1", 80, 1900000000); }),
              HasReason("SIGNED_ENDPOINT_UNSUPPORTED"));
  EXPECT_EQ(fake_.requests()[0].query, "expires=1900000000");
}

TEST_F(LifecycleClientTest, DiagnosticsAsTextOrJson) {
  fake_.Script("GET *",
               {.status = 200, .body = "line\n", .headers = {{"content-type", "text/plain"}}});
  EXPECT_EQ(
      *Run([&] { return client_.Diagnostics(Context(), "sb-1", DiagnosticsKind::kLogs, 7, 100); }),
      "line\n");
  EXPECT_EQ(fake_.requests()[0].path, "/v1/sandboxes/sb-1/diagnostics/logs");
  EXPECT_EQ(fake_.requests()[0].query, "tail=7");
  fake_.Script("GET *", {.status = 200, .body = R"({"kind":"events","content":"e\n"})"});
  EXPECT_EQ(*Run([&] {
    return client_.Diagnostics(Context(), "sb-1", DiagnosticsKind::kEvents, 9999, 100);
  }),
            "e\n");
  EXPECT_EQ(fake_.requests()[1].query, "limit=500");
}

TEST_F(LifecycleClientTest, VersionOfAServerWithoutOne) {
  EXPECT_EQ(*Run([&] { return client_.Version(Context()); }), "1.1.1");
  EXPECT_EQ(fake_.requests()[0].path, "/version");
  fake_.Script("GET /version", {.status = 404, .body = R"({"detail":"Not Found"})"});
  EXPECT_EQ(*Run([&] { return client_.Version(Context()); }), "");
  EXPECT_THAT(Run([&] { return client_.Health(Context()); }), IsOk());
}

TEST_F(LifecycleClientTest, CancellationEndsAWait) {
  fake_.Script("GET *", {.delay = absl::Seconds(20)});
  FakeTimeTask<absl::StatusOr<Reading>> task(clock_, loop_,
                                             [&] { return client_.Get(Context(), "sb-1"); });
  task.Pass(absl::Seconds(1));
  EXPECT_FALSE(task.done());
  task.Cancel();
  ASSERT_TRUE(task.done());
  EXPECT_THAT(task.Finish(), HasReason("CANCELLED"));
}

TEST_F(LifecycleClientTest, CancellationEndsAPause) {
  fake_.Script("GET *", {.status = 429, .headers = {{"Retry-After", "9"}}, .times = -1});
  FakeTimeTask<absl::StatusOr<Reading>> task(clock_, loop_,
                                             [&] { return client_.Get(Context(), "sb-1"); });
  task.Pass(absl::Seconds(1));
  task.Cancel();
  ASSERT_TRUE(task.done());
  EXPECT_THAT(fake_.requests(), SizeIs(1));
}

}  // namespace
}  // namespace bridge
