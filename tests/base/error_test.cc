// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "bridge/base/error_catalog.h"
#include "google/rpc/error_details.pb.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using R = ErrorReason;

TEST(ErrorCatalog, HasEveryReasonOnceInTheOrderOfTheProto) {
  const auto* descriptor = sandbox::bridge::v1::ErrorReason_descriptor();
  ASSERT_EQ(static_cast<int>(ErrorCatalog().size()) + 1, descriptor->value_count());
  for (int i = 1; i < descriptor->value_count(); ++i) {
    EXPECT_EQ(ErrorCatalog()[i - 1].reason, descriptor->value(i)->number())
        << descriptor->value(i)->name();
  }
}

TEST(ErrorCatalog, AdviceIsOneSentenceLine) {
  for (const CatalogEntry& entry : ErrorCatalog()) {
    EXPECT_FALSE(entry.advice.empty());
    EXPECT_EQ(entry.advice.find('\n'), std::string_view::npos);
    EXPECT_EQ(entry.advice.back(), '.') << entry.advice;
    EXPECT_NE(entry.code, absl::StatusCode::kOk);
    EXPECT_NE(entry.code, absl::StatusCode::kUnknown);
  }
}

TEST(Error, CarriesReasonDomainAndMetadata) {
  const absl::Status status = MakeError(R::ERROR_REASON_SANDBOX_NOT_FOUND, "sandbox x is gone",
                                        {.metadata = {{"sandbox_id", "x"}}});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_SANDBOX_NOT_FOUND);
  EXPECT_THAT(MetadataOf(status), ElementsAre(Pair("sandbox_id", "x")));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(info.ParseFromString(std::string(*status.GetPayload(DetailTypeUrls()[0]))));
  EXPECT_EQ(info.reason(), "SANDBOX_NOT_FOUND");
  EXPECT_EQ(info.domain(), "sandbox.bridge.v1");
}

TEST(Error, RetryAfterKeepsFractionsAndNeverGoesNegative) {
  const auto delay = [](absl::Duration d) {
    return *RetryAfterOf(MakeError(R::ERROR_REASON_QUOTA_EXCEEDED, "full", {.retry_after = d}));
  };
  EXPECT_EQ(delay(absl::Milliseconds(1500)), absl::Milliseconds(1500));
  EXPECT_EQ(delay(absl::Seconds(-3)), absl::ZeroDuration());
  EXPECT_FALSE(RetryAfterOf(MakeError(R::ERROR_REASON_QUOTA_EXCEEDED, "full")).has_value());
}

TEST(Error, InvalidFieldNamesTheField) {
  const absl::Status status = InvalidField("spec.env[2].name", "must not be empty");
  EXPECT_EQ(status.message(), "spec.env[2].name: must not be empty");
  google::rpc::BadRequest bad;
  ASSERT_TRUE(bad.ParseFromString(std::string(*status.GetPayload(DetailTypeUrls()[2]))));
  ASSERT_EQ(bad.field_violations_size(), 1);
  EXPECT_EQ(bad.field_violations(0).field(), "spec.env[2].name");
}

TEST(Error, WithMetadataAndContextKeepWhatWasThere) {
  absl::Status status = MakeError(R::ERROR_REASON_QUOTA_EXCEEDED, "full",
                                  {.metadata = {{"a", "1"}}, .retry_after = absl::Seconds(2)});
  status = WithContext(WithMetadata(status, "b", "2"), "create");
  EXPECT_EQ(status.message(), "create: full");
  EXPECT_THAT(MetadataOf(status), ElementsAre(Pair("a", "1"), Pair("b", "2")));
  EXPECT_EQ(*RetryAfterOf(status), absl::Seconds(2));
  EXPECT_TRUE(WithContext(absl::OkStatus(), "x").ok());
}

TEST(Error, ForeignStatusesGetAReasonByTheirCode) {
  EXPECT_EQ(ReasonOf(absl::OkStatus()), R::ERROR_REASON_UNSPECIFIED);
  EXPECT_EQ(ReasonOf(absl::CancelledError("x")), R::ERROR_REASON_CANCELLED);
  EXPECT_EQ(ReasonOf(absl::UnknownError("x")), R::ERROR_REASON_INTERNAL);
  EXPECT_EQ(ReasonOf(WithMetadata(absl::CancelledError("x"), "k", "v")), R::ERROR_REASON_CANCELLED);
}

}  // namespace
}  // namespace bridge
