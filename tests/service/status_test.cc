// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/status.h"

#include <gtest/gtest.h>

#include <string>

#include "bridge/base/error.h"
#include "bridge/base/error_catalog.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace bridge {
namespace {

using R = ErrorReason;

google::rpc::Status Details(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

TEST(ToGrpcStatus, OkHasNoDetails) {
  const grpc::Status status = ToGrpcStatus(absl::OkStatus());
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.error_details(), "");
  EXPECT_TRUE(FromGrpcStatus(status).ok());
}

// What a client in any language does: reads grpc-status-details-bin as google.rpc.Status.
TEST(ToGrpcStatus, DetailsAreAGoogleRpcStatus) {
  const grpc::Status status =
      ToGrpcStatus(MakeError(R::ERROR_REASON_TOO_MANY_STREAMS, "too many streams",
                             {.metadata = {{"limit", "streams"}},
                              .field = "spec",
                              .retry_after = absl::Milliseconds(1500)}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "too many streams");
  const google::rpc::Status details = Details(status);
  EXPECT_EQ(details.code(), 8);
  EXPECT_EQ(details.message(), "too many streams");
  ASSERT_EQ(details.details_size(), 3);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "TOO_MANY_STREAMS");
  EXPECT_EQ(info.domain(), "sandbox.bridge.v1");
  EXPECT_EQ(info.metadata().at("limit"), "streams");
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(1).UnpackTo(&retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 1);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
  google::rpc::BadRequest bad;
  ASSERT_TRUE(details.details(2).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).field(), "spec");
}

TEST(ToGrpcStatus, EveryReasonSurvivesTheRoundTrip) {
  for (const CatalogEntry& entry : ErrorCatalog()) {
    const absl::Status made = MakeError(
        entry.reason, "words", {.metadata = {{"k", "v"}}, .retry_after = absl::Seconds(2)});
    const grpc::Status travelled = ToGrpcStatus(made);
    EXPECT_EQ(static_cast<int>(travelled.error_code()), static_cast<int>(entry.code));
    const absl::Status back = FromGrpcStatus(travelled);
    EXPECT_EQ(back, made) << ReasonName(entry.reason);
    EXPECT_EQ(ReasonOf(back), entry.reason);
    EXPECT_EQ(RetryAfterOf(back), absl::Seconds(2));
  }
}

TEST(ToGrpcStatus, AForeignStatusGetsAReason) {
  const absl::Status back =
      FromGrpcStatus(ToGrpcStatus(absl::InternalError("somebody else's words")));
  EXPECT_EQ(back.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(back.message(), "somebody else's words");
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(Details(ToGrpcStatus(absl::NotFoundError("x"))).details(0).UnpackTo(&info));
  EXPECT_EQ(ToGrpcStatus(absl::NotFoundError("x")).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(info.domain(), "sandbox.bridge.v1");
  EXPECT_FALSE(info.reason().empty());
}

// HTTP/2 peers refuse trailers of more than 8 KiB; the failure must not get lost in them.
TEST(ToGrpcStatus, AHugeFailureIsCutToWhatTrailersHold) {
  const std::string words(100'000, 'x');
  const grpc::Status status = ToGrpcStatus(
      MakeError(R::ERROR_REASON_UPSTREAM_FAILED, words, {.field = std::string(50'000, 'f')}));
  EXPECT_LE(status.error_message().size(), 1024u);
  EXPECT_LE(status.error_details().size(), 5'000u);
  EXPECT_EQ(ReasonOf(FromGrpcStatus(status)), R::ERROR_REASON_UPSTREAM_FAILED);
  EXPECT_EQ(status.error_message().substr(1021), "...");
}

TEST(ToGrpcStatus, BytesThatAreNotTextDoNotBreakTheDetails) {
  const grpc::Status status =
      ToGrpcStatus(MakeError(R::ERROR_REASON_UPSTREAM_FAILED, "bad \xFF byte"));
  EXPECT_EQ(status.error_message(), "bad \xEF\xBF\xBD byte");
  EXPECT_EQ(Details(status).message(), "bad \xEF\xBF\xBD byte");
}

TEST(FromGrpcStatus, UnreadableDetailsLeaveCodeAndMessage) {
  const absl::Status status = FromGrpcStatus(
      grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone", std::string("\xFF\xFF", 2)));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "gone");
}

}  // namespace
}  // namespace bridge
