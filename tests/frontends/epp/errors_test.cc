// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/errors.h"

#include <set>
#include <string>

#include "bridge/base/error.h"
#include "bridge/base/error_catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

using testing::HasSubstr;
using testing::Not;

// The codes to which the host gives a class of its own, and the sdk codes that it knows.
const std::set<int> kHostCodes = {-32000, -32001, -32002, -32003, -32004, -32005, -32006};
const std::set<std::string_view> kSdkCodes = {"",      "E1001", "E1002", "E1003", "E1004",
                                              "E2001", "E2002", "E2003", "E2009", "E3001",
                                              "E4001", "E4002", "E5000", "E5001"};

TEST(EppErrorTable, HasEveryReasonOnceInOrder) {
  const auto catalog = ErrorCatalog();
  const auto table = EppErrorTable();
  ASSERT_EQ(table.size(), catalog.size());
  for (size_t i = 0; i < catalog.size(); ++i) EXPECT_EQ(table[i].reason, catalog[i].reason) << i;
}

TEST(EppErrorTable, SpeaksTheHostsLanguage) {
  for (const EppErrorRow& row : EppErrorTable()) {
    EXPECT_TRUE(kHostCodes.contains(row.code)) << ReasonName(row.reason);
    EXPECT_TRUE(kSdkCodes.contains(row.sdk_code)) << ReasonName(row.reason);
  }
}

// The same class here as in gRPC, so that a caller of either learns the same.
TEST(EppErrorTable, KeepsTheClassOfTheGrpcCode) {
  for (const EppErrorRow& row : EppErrorTable()) {
    const absl::StatusCode code = CatalogEntryOf(row.reason).code;
    const bool timeout = code == absl::StatusCode::kDeadlineExceeded;
    EXPECT_EQ(row.code == kTimeout, timeout) << ReasonName(row.reason);
    EXPECT_EQ(row.code == kNotFound, code == absl::StatusCode::kNotFound) << ReasonName(row.reason);
    EXPECT_EQ(row.code == kUnsupported, code == absl::StatusCode::kUnimplemented)
        << ReasonName(row.reason);
    EXPECT_EQ(row.code == kQuota, code == absl::StatusCode::kResourceExhausted)
        << ReasonName(row.reason);
  }
}

EppError Rendered(ErrorReason reason, ErrorDetails details = {}) {
  return ToEppError(MakeError(reason, "what happened", std::move(details)));
}

TEST(ToEppError, FollowsTheHostsTable) {
  using R = ErrorReason;
  EXPECT_EQ(Rendered(R::ERROR_REASON_SANDBOX_NOT_FOUND).sdk_code, "E2009");
  EXPECT_EQ(Rendered(R::ERROR_REASON_PATH_NOT_FOUND).sdk_code, "E4001");
  EXPECT_EQ(Rendered(R::ERROR_REASON_PROCESS_NOT_FOUND).code, kNotFound);
  EXPECT_EQ(Rendered(R::ERROR_REASON_PROCESS_NOT_FOUND).sdk_code, "");
  EXPECT_EQ(Rendered(R::ERROR_REASON_PERMISSION_DENIED).sdk_code, "E4002");
  EXPECT_EQ(Rendered(R::ERROR_REASON_UPSTREAM_UNAVAILABLE).sdk_code, "E5001");
  EXPECT_EQ(Rendered(R::ERROR_REASON_READY_TIMEOUT).code, kTimeout);
  const EppError refused = Rendered(R::ERROR_REASON_UPSTREAM_UNAUTHENTICATED);
  EXPECT_EQ(refused.code, kAuthenticationError);
  EXPECT_EQ(refused.sdk_code, "E1001");
  EXPECT_THAT(refused.suggestion, HasSubstr("ABX_OPENSANDBOX_API_KEY"));
  EXPECT_THAT(refused.suggestion, HasSubstr("OPEN_SANDBOX_API_KEY"));
}

TEST(ToEppError, AlwaysHasAMessageAndASuggestion) {
  for (const EppErrorRow& row : EppErrorTable()) {
    const EppError error = Rendered(row.reason);
    EXPECT_EQ(error.message, "what happened");
    EXPECT_FALSE(error.suggestion.empty()) << ReasonName(row.reason);
  }
}

// A bridge elsewhere has an upstream, a key and a way to sandboxes of its own.
TEST(ToEppError, NamesNoSettingThatARemoteBridgeDoesNotHave) {
  for (const EppErrorRow& row : EppErrorTable()) {
    const EppError error = ToEppError(ByRemoteBridge(MakeError(row.reason, "what happened")));
    for (const char* setting : {"base_url", "api_key", "API_KEY", "use_server_proxy"}) {
      const bool bridges = row.reason == ErrorReason::ERROR_REASON_UPSTREAM_UNAUTHENTICATED;
      if (bridges && setting == std::string("api_key")) continue;  // its flag --api_key_file
      EXPECT_THAT(error.suggestion, Not(HasSubstr(setting))) << ReasonName(row.reason);
    }
    EXPECT_FALSE(error.suggestion.empty());
  }
  EXPECT_TRUE(ByRemoteBridge(absl::OkStatus()).ok());
}

TEST(ToEppError, CallsAMissingImageAMissingTemplate) {
  const EppError error =
      Rendered(ErrorReason::ERROR_REASON_UPSTREAM_FAILED,
               {.metadata = {{"upstream_code", "DOCKER::SANDBOX_IMAGE_PULL_FAILED"}}});
  EXPECT_EQ(error.code, kNotFound);
  EXPECT_EQ(error.sdk_code, "E2001");
}

TEST(ToEppError, NamesWhatMayHaveLeaked) {
  const EppError error = Rendered(ErrorReason::ERROR_REASON_READY_TIMEOUT,
                                  {.metadata = {{"leaked_sandbox_id", "sb-77"}}});
  EXPECT_THAT(error.message, HasSubstr("sb-77"));
}

TEST(ToEppError, PassesTheDelayOn) {
  const EppError error =
      Rendered(ErrorReason::ERROR_REASON_QUOTA_EXCEEDED, {.retry_after = absl::Seconds(2)});
  EXPECT_THAT(error.message, HasSubstr("retry after 2 s"));
}

TEST(ToEppError, NamesTheFeature) {
  EXPECT_EQ(ToEppError(Unsupported("pty", "no")).feature, "pty");
  EXPECT_FALSE(Rendered(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE).feature.empty());
}

TEST(ToEppError, TakesAForeignStatus) {
  EXPECT_EQ(ToEppError(absl::InternalError("x")).code, kProviderError);
  EXPECT_EQ(ToEppError(absl::DeadlineExceededError("x")).code, kTimeout);
  EXPECT_EQ(ToEppError(absl::UnavailableError("x")).sdk_code, "E5001");
}

TEST(ProtocolError, KeepsItsCode) {
  for (const int code : {kParseError, kInvalidRequest, kMethodNotFound, kInvalidParams}) {
    const EppError error = ToEppError(ProtocolError(code, "m"));
    EXPECT_EQ(error.code, code);
    EXPECT_EQ(error.message, "m");
  }
}

TEST(TooLarge, SaysSizeLimitAndWayOut) {
  const EppError error = ToEppError(TooLarge("the file", 9, 5, "cut it"));
  EXPECT_EQ(error.code, kProviderError);
  EXPECT_EQ(error.message, "the file has 9 bytes, the most is 5; cut it");
}

TEST(IsUnknownSandbox, CountsIdsThatNoSandboxHas) {
  EXPECT_TRUE(IsUnknownSandbox(UnknownSandbox("x")));
  EXPECT_TRUE(IsUnknownSandbox(InvalidField("sandbox_id", "holds a slash")));
  EXPECT_FALSE(IsUnknownSandbox(InvalidField("sandbox_ids", "x")));
  EXPECT_FALSE(IsUnknownSandbox(InvalidField("port", "x")));
}

}  // namespace
}  // namespace bridge::epp
