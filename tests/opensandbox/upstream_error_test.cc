// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/upstream_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bridge/base/error.h"
#include "bridge/base/error_catalog.h"
#include "tests/opensandbox/recorded_answers.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

#define R(name) ErrorReason::ERROR_REASON_##name

absl::Status ErrorOf(Route route, const HttpResponse& response) {
  return UpstreamError({.route = route, .host = "srv:8080", .sandbox_id = "sb-1"}, response);
}

HttpResponse Answer(int status, std::string body, HttpHeaders headers = {}) {
  return {.status = status, .headers = std::move(headers), .body = std::move(body)};
}

TEST(UpstreamError, RecordedAnswersGetTheirReason) {
  const struct {
    const char* recording;
    Route route;
    ErrorReason reason;
  } kCases[] = {
      {"get-unknown-id", Route::kGet, R(SANDBOX_NOT_FOUND)},
      {"delete-again", Route::kDelete, R(SANDBOX_NOT_FOUND)},
      {"concurrent-delete-3", Route::kDelete, R(UPSTREAM_FAILED)},
      {"get-weird-id", Route::kGet, R(UPSTREAM_PROTOCOL)},
      {"list-metadata-bare-key", Route::kList, R(UPSTREAM_REJECTED)},
      {"list-page-zero", Route::kList, R(UPSTREAM_REJECTED)},
      {"patch-metadata-reserved", Route::kPatchMetadata, R(UPSTREAM_REJECTED)},
      {"renew-past", Route::kRenew, R(UPSTREAM_REJECTED)},
      {"renew-no-expiry", Route::kRenew, R(NO_EXPIRY)},
      {"renew-unknown-id", Route::kRenew, R(SANDBOX_NOT_FOUND)},
      {"pause-paused", Route::kPause, R(SANDBOX_NOT_RUNNING)},
      {"resume-running", Route::kResume, R(SANDBOX_NOT_RUNNING)},
      {"pause-unknown-id", Route::kPause, R(SANDBOX_NOT_FOUND)},
      {"snapshot-paused", Route::kCreateSnapshot, R(SANDBOX_NOT_RUNNING)},
      {"snapshot-delete-in-use", Route::kDeleteSnapshot, R(CONFLICT)},
      {"snapshot-delete-unknown", Route::kDeleteSnapshot, R(SNAPSHOT_NOT_FOUND)},
      {"create-unknown-snapshot", Route::kCreate, R(SNAPSHOT_NOT_FOUND)},
      {"endpoint-port-0", Route::kEndpoint, R(UPSTREAM_REJECTED)},
      {"endpoint-expires", Route::kSignedEndpoint, R(SIGNED_ENDPOINT_UNSUPPORTED)},
      {"endpoint-expires-server-proxy", Route::kSignedEndpoint, R(UPSTREAM_REJECTED)},
      {"diagnostics-events-scope-bogus", Route::kDiagnostics, R(UNSUPPORTED_FEATURE)},
      {"networkpolicy-unknown-id", Route::kNetworkPolicy, R(SANDBOX_NOT_FOUND)},
      {"networkpolicy-without-sidecar", Route::kNetworkPolicy, R(UPSTREAM_UNAVAILABLE)},
      {"auth-missing", Route::kList, R(UPSTREAM_UNAUTHENTICATED)},
      {"auth-wrong", Route::kCreate, R(UPSTREAM_UNAUTHENTICATED)},
      {"unknown-route", Route::kNetworkPolicy, R(UNSUPPORTED_FEATURE)},
      {"unknown-route", Route::kGet, R(UPSTREAM_PROTOCOL)},
      {"unknown-route", Route::kDelete, R(UPSTREAM_PROTOCOL)},
      {"wrong-method", Route::kCreate, R(UPSTREAM_PROTOCOL)},
      {"trailing-slash", Route::kList, R(UPSTREAM_PROTOCOL)},
      {"create-body-nan", Route::kCreate, R(UPSTREAM_FAILED)},
      {"create-timeout-59", Route::kCreate, R(UPSTREAM_REJECTED)},
      {"create-timeout-86401", Route::kCreate, R(UPSTREAM_REJECTED)},
      {"create-image-absent", Route::kCreate, R(SANDBOX_FAILED)},
      {"create-resource-cpu-64", Route::kCreate, R(SANDBOX_FAILED)},
      {"create-policy-bad-action", Route::kCreate, R(SANDBOX_FAILED)},
      {"create-pool-ref", Route::kCreate, R(UNSUPPORTED_FEATURE)},
      {"create-secure-access", Route::kCreate, R(UPSTREAM_REJECTED)},
      {"create-volume-host-not-allowed", Route::kCreate, R(UPSTREAM_REJECTED)},
      {"pools-list", Route::kList, R(UNSUPPORTED_FEATURE)},
  };
  for (const auto& c : kCases) {
    const HttpResponse& response = Recorded(c.recording);
    const absl::Status status = ErrorOf(c.route, response);
    EXPECT_EQ(ReasonName(ReasonOf(status)), ReasonName(c.reason)) << c.recording << ": " << status;
    const auto metadata = MetadataOf(status);
    EXPECT_EQ(metadata.at("upstream_status"), std::to_string(response.status));
    EXPECT_EQ(metadata.at("sandbox_id"), "sb-1");
    if (const auto id = response.headers.Get("x-request-id")) {
      EXPECT_EQ(metadata.at("upstream_request_id"), *id);
    }
    EXPECT_LE(status.message().size(), kMaxUpstreamWords + 200);
  }
}

TEST(UpstreamError, KeepsTheServersWords) {
  const absl::Status status = ErrorOf(Route::kRenew, Recorded("renew-past"));
  EXPECT_EQ(status.message(),
            "OpenSandbox at srv:8080 answered 400 to \"renew expiration\" "
            "(DOCKER::INVALID_EXPIRATION): New expiration time must be in the future.");
  EXPECT_EQ(MetadataOf(status).at("upstream_code"), "DOCKER::INVALID_EXPIRATION");
}

// The published table: every status that OpenSandbox, execd or something between may answer.
TEST(UpstreamError, EveryStatusHasItsReason) {
  const struct {
    int status;
    ErrorReason reason;
  } kCases[] = {
      {400, R(UPSTREAM_REJECTED)},
      {401, R(UPSTREAM_UNAUTHENTICATED)},
      {403, R(UPSTREAM_PERMISSION_DENIED)},
      {404, R(SANDBOX_NOT_FOUND)},
      {405, R(UPSTREAM_PROTOCOL)},
      {408, R(UPSTREAM_TIMEOUT)},
      {409, R(CONFLICT)},
      {410, R(SANDBOX_NOT_FOUND)},
      {413, R(UPSTREAM_REJECTED)},
      {416, R(UPSTREAM_REJECTED)},
      {422, R(UPSTREAM_REJECTED)},
      {429, R(QUOTA_EXCEEDED)},
      {500, R(UPSTREAM_FAILED)},
      {501, R(UNSUPPORTED_FEATURE)},
      {502, R(UPSTREAM_UNAVAILABLE)},
      {503, R(UPSTREAM_UNAVAILABLE)},
      {504, R(UPSTREAM_UNAVAILABLE)},
      {522, R(UPSTREAM_UNAVAILABLE)},
      {599, R(UPSTREAM_FAILED)},
      {302, R(UPSTREAM_PROTOCOL)},
  };
  for (const auto& c : kCases) {
    const absl::Status status =
        ErrorOf(Route::kGet, Answer(c.status, R"({"code":"X::Y","message":"m"})"));
    EXPECT_EQ(ReasonName(ReasonOf(status)), ReasonName(c.reason)) << c.status;
  }
}

TEST(UpstreamError, NoServerErrorIsTheCallersArgument) {
  for (int status = 500; status < 600; ++status) {
    for (uint32_t bit = 0; bit <= 16; ++bit) {
      const auto route = static_cast<Route>(1u << bit);
      for (const char* body : {"", "{}", R"({"code":"X","message":"m"})", "<html>login</html>"}) {
        const absl::Status error = ErrorOf(route, Answer(status, body));
        EXPECT_NE(error.code(), absl::StatusCode::kInvalidArgument) << status << body;
        EXPECT_NE(error.code(), absl::StatusCode::kNotFound) << status << body;
      }
    }
  }
}

TEST(UpstreamError, CapacityHasManyStatuses) {
  for (const int status : {400, 403, 409, 429, 500}) {
    const absl::Status error = ErrorOf(
        Route::kCreate,
        Answer(status, R"({"code":"KUBERNETES::POOL_EXHAUSTED","message":"pool is at poolMax"})"));
    EXPECT_EQ(ReasonOf(error), R(QUOTA_EXCEEDED)) << status;
    EXPECT_EQ(error.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(error.message()), HasSubstr("pool is at poolMax"));
  }
  EXPECT_EQ(
      ReasonOf(ErrorOf(Route::kCreate, Answer(503, R"({"code":"POOL_EXHAUSTED","message":"m"})"))),
      R(UPSTREAM_UNAVAILABLE));
  EXPECT_EQ(
      ReasonOf(ErrorOf(Route::kCreate, Answer(403, R"({"code":"KUBERNETES::QUOTA_EXCEEDED"})"))),
      R(QUOTA_EXCEEDED));
}

TEST(UpstreamError, AbsenceNeedsOpenSandboxsOwnWord) {
  for (const char* body : {"", "404 page not found", "<html><title>Not Found</title></html>",
                           R"({"detail":"Not Found"})", "null", "{}"}) {
    for (const Route route : {Route::kGet, Route::kDelete, Route::kRenew}) {
      const absl::Status error = ErrorOf(route, Answer(404, body));
      EXPECT_EQ(ReasonOf(error), R(UPSTREAM_PROTOCOL)) << body;
    }
  }
}

TEST(UpstreamError, PagesAreNamedAsSuch) {
  const HttpHeaders html = {{"Content-Type", "text/html"}};
  const absl::Status gateway = ErrorOf(
      Route::kList, Answer(502, "<html><head><title>502 Bad Gateway</title></head></html>", html));
  EXPECT_EQ(ReasonOf(gateway), R(UPSTREAM_UNAVAILABLE));
  EXPECT_EQ(MetadataOf(gateway).at("host"), "srv:8080");
  EXPECT_EQ(gateway.message(),
            "OpenSandbox at srv:8080 answered 502 to \"list\" with a web page: 502 Bad Gateway");
  for (const int status : {200, 400, 403, 404}) {
    const absl::Status login =
        ErrorOf(Route::kList, Answer(status, "<html><title>Please log in</title></html>", html));
    EXPECT_EQ(ReasonOf(login), R(UPSTREAM_UNAUTHENTICATED)) << status;
    EXPECT_EQ(MetadataOf(login).at("hop"), "server");
  }
  EXPECT_EQ(ReasonOf(ErrorOf(Route::kList, Answer(400, "<html>x</html>", html))),
            R(UPSTREAM_PROTOCOL));
}

TEST(UpstreamError, CarriesRetryAfter) {
  const auto delay = [](HttpHeaders headers) {
    return RetryAfterOf(ErrorOf(Route::kGet, Answer(429, "{}", std::move(headers))));
  };
  EXPECT_EQ(delay({{"Retry-After", "2"}}), absl::Seconds(2));
  EXPECT_EQ(delay({{"Retry-After", "Sun, 29 Nov 2026 16:46:40 GMT"},
                   {"Date", "Sun, 29 Nov 2026 16:46:35 GMT"}}),
            absl::Seconds(5));
  EXPECT_EQ(delay({{"Retry-After", "garbage"}}), std::nullopt);
  EXPECT_EQ(delay({}), std::nullopt);
  EXPECT_EQ(delay({{"Retry-After", "99999999999999999999"}}), absl::Hours(24));
}

TEST(UpstreamError, SecretsInTheServersWordsAreTakenOut) {
  const absl::Status status = UpstreamError(
      {.route = Route::kCreate, .host = "srv", .secrets = {"CANARYKEY", "CANARYPASS"}},
      Answer(400, R"({"code":"CANARYKEY","message":"key CANARYKEY, password CANARYPASS"})",
             {{"x-request-id", "r1"}}));
  EXPECT_THAT(status.ToString(), Not(HasSubstr("CANARY")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("key [redacted], password [redacted]"));
}

TEST(UpstreamError, HostileHeadersStayOutOfTheMetadata) {
  const absl::Status status =
      ErrorOf(Route::kGet, Answer(500, "x", {{"x-request-id", std::string(5000, 'a') + "\xff"}}));
  EXPECT_LE(MetadataOf(status).at("upstream_request_id").size(), 100u);
}

TEST(UnreadableAnswer, NamesTheProblemOrThePage) {
  const UpstreamPlace place = {.route = Route::kGet, .host = "srv:8080"};
  const absl::Status status = UnreadableAnswer(place, Answer(200, "[]"), "is no JSON object");
  EXPECT_EQ(ReasonOf(status), R(UPSTREAM_PROTOCOL));
  EXPECT_EQ(status.message(),
            "OpenSandbox at srv:8080 answered 200 to \"get\" and is no JSON object");
  const absl::Status page = UnreadableAnswer(
      place, Answer(200, "<html><title>Sign in</title>", {{"content-type", "text/html"}}), "x");
  EXPECT_EQ(ReasonOf(page), R(UPSTREAM_UNAUTHENTICATED));
}

TEST(TransportError, KeepsTheReasonAndNamesTheRoute) {
  const absl::Status status =
      TransportError({.route = Route::kDelete, .sandbox_id = "sb-1"},
                     MakeError(R(UPSTREAM_TIMEOUT), "srv:8080 did not answer",
                               {.metadata = {{"phase", "answer"}}}));
  EXPECT_EQ(ReasonOf(status), R(UPSTREAM_TIMEOUT));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"delete\""));
  EXPECT_EQ(MetadataOf(status).at("phase"), "answer");
  EXPECT_EQ(MetadataOf(status).at("sandbox_id"), "sb-1");
}

TEST(UpstreamErrorRules, TheLastOneAppliesToEverything) {
  const UpstreamErrorRule& last = UpstreamErrorRules().back();
  EXPECT_EQ(last.routes, 0u);
  EXPECT_EQ(last.speaker, Speaker::kAnyone);
  EXPECT_TRUE(last.code_end.empty());
  for (const UpstreamErrorRule& rule : UpstreamErrorRules()) {
    EXPECT_LE(rule.status_from, rule.status_to);
    EXPECT_EQ(CatalogEntryOf(rule.reason).reason, rule.reason);
  }
}

}  // namespace
}  // namespace bridge
