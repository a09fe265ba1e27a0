// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bridge/base/error_catalog.h"
#include "frontends/cli/json.h"
#include "tests/frontends/cli/fake_bridge.h"

namespace bridge::cli {
namespace {

using ::testing::HasSubstr;

TEST(Failure, EveryReasonOfTheCatalogueHasItsAdvice) {
  for (const CatalogEntry& entry : ErrorCatalog()) {
    const Failure failure = FailureOf(
        ErrorStatus(entry.reason, static_cast<grpc::StatusCode>(entry.code), "words"), "h:1");
    EXPECT_EQ(FailureText(failure),
              "sbx: " + failure.reason + ": words\n     " + std::string(entry.advice) + "\n");
    EXPECT_EQ(failure.retryable, entry.retryable);
    EXPECT_EQ("ERROR_REASON_" + failure.reason, pb::ErrorReason_Name(entry.reason));
  }
}

TEST(Failure, AReasonFromTheFutureKeepsItsName) {
  grpc::Status status = ErrorStatus(pb::ERROR_REASON_INTERNAL, grpc::StatusCode::INTERNAL, "m");
  std::string details = status.error_details();
  details.replace(details.find("INTERNAL"), 8, "NEW_WORD");
  const Failure failure = FailureOf(grpc::Status(grpc::StatusCode::INTERNAL, "m", details), "h:1");
  EXPECT_EQ(failure.reason, "NEW_WORD");
  EXPECT_FALSE(failure.advice.empty());
  EXPECT_FALSE(failure.retryable);
}

TEST(Failure, SaysWhenToTryAgainAndWhatWasLeftBehind) {
  const Failure failure =
      FailureOf(ErrorStatus(pb::ERROR_REASON_QUOTA_EXCEEDED, grpc::StatusCode::RESOURCE_EXHAUSTED,
                            "full", {{"leaked_sandbox_id", "sb-9"}}, 90),
                "h:1");
  EXPECT_THAT(failure.advice, HasSubstr(" Try again in 1m30s."));
  EXPECT_THAT(failure.advice, HasSubstr(" A sandbox was left behind: sbx rm sb-9"));
  EXPECT_EQ(failure.retry_after_seconds, 90);
}

TEST(Failure, AConnectErrorNamesTheAddressAndTheCause) {
  const Failure failure = FailureOf(
      grpc::Status(grpc::StatusCode::UNAVAILABLE,
                   "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: "
                   "Failed to connect to remote host: Connection refused"),
      "127.0.0.1:1");
  EXPECT_EQ(failure.reason, "BRIDGE_UNREACHABLE");
  EXPECT_EQ(failure.message, "no answer from a bridge at 127.0.0.1:1: Connection refused");
  EXPECT_THAT(failure.advice, HasSubstr("SANDBOX_BRIDGE_ADDRESS"));
}

// It advised to start the bridge that was there.
TEST(Failure, AConnectionThatIsBrokenOffMayLackTls) {
  for (const char* message :
       {"Socket closed", "recvmsg:Connection reset by peer",
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake "
        "failed: SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version number"}) {
    const Failure failure = FailureOf({grpc::StatusCode::UNAVAILABLE, message}, "h:1");
    EXPECT_EQ(failure.reason, "BRIDGE_UNREACHABLE");
    EXPECT_THAT(failure.advice, HasSubstr("https://")) << message;
  }
}

TEST(Failure, StatusesWithoutAReason) {
  EXPECT_EQ(FailureOf({grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"}, "h:1").reason,
            "DEADLINE_EXCEEDED");
  EXPECT_EQ(FailureOf({grpc::StatusCode::UNIMPLEMENTED, ""}, "h:1").message,
            "the bridge at h:1 does not know this call");
  EXPECT_EQ(FailureOf({grpc::StatusCode::INTERNAL, "m", "garbage"}, "h:1").reason, "GRPC_13");
  EXPECT_EQ(FailureOf({grpc::StatusCode::RESOURCE_EXHAUSTED, "m"}, "h:1").reason, "GRPC_8");
}

// What gRPC's server says for us where it lets us say nothing.
TEST(Failure, WordsOfGrpcsServer) {
  const Failure large = FailureOf(
      {grpc::StatusCode::RESOURCE_EXHAUSTED, "Received message larger than max (2 vs. 1)"}, "h:1");
  EXPECT_EQ(large.reason, "INVALID_ARGUMENT");
  EXPECT_THAT(large.advice, HasSubstr("sbx cp"));
  EXPECT_FALSE(large.retryable);
  const Failure ended = FailureOf({grpc::StatusCode::CANCELLED, "CANCELLED"}, "h:1");
  EXPECT_EQ(ended.reason, "BRIDGE_UNREACHABLE");
  EXPECT_THAT(ended.advice, HasSubstr("shutting down"));
  EXPECT_TRUE(ended.retryable);
}

TEST(Failure, TextFromAfarCannotMoveTheCursor) {
  const Failure failure = FailureOf(
      ErrorStatus(pb::ERROR_REASON_INTERNAL, grpc::StatusCode::INTERNAL, "a\x1b[2Jb\nc"), "h:1");
  EXPECT_THAT(FailureText(failure), HasSubstr("a\\x1b[2Jb\\nc\n"));
}

TEST(Failure, JsonIsOneLineWithEverything) {
  const Failure failure =
      FailureOf(ErrorStatus(pb::ERROR_REASON_SANDBOX_NOT_FOUND, grpc::StatusCode::NOT_FOUND,
                            "no sandbox x", {{"sandbox_id", "x"}}),
                "h:1");
  const std::string line = FailureJson(failure);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Json json = Json::parse(line)["error"];
  EXPECT_EQ(json["reason"], "SANDBOX_NOT_FOUND");
  EXPECT_EQ(json["message"], "no sandbox x");
  EXPECT_EQ(json["metadata"]["sandbox_id"], "x");
  EXPECT_EQ(json["retryable"], false);
  EXPECT_FALSE(json.contains("retry_after_seconds"));
}

TEST(Failure, OwnFailuresPointToTheHelp) {
  EXPECT_EQ(FailureText(UsageFailure("exec", "no command given")),
            "sbx: USAGE: no command given\n     See `sbx exec --help`.\n");
  EXPECT_EQ(UsageFailure("", "x").advice, "See `sbx --help`.");
}

}  // namespace
}  // namespace bridge::cli
