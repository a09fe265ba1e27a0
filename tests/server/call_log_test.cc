// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/call_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

namespace bridge {
namespace {

using R = ErrorReason;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr Method kMethod = UnaryMethod("s/M");

std::vector<std::string> Lines(LogCalls which, const std::vector<CallRecord>& records) {
  std::vector<std::string> lines;
  {
    Log log(LogLevel::kInfo, [&](std::string_view line) { lines.emplace_back(line); });
    CallLog calls(log, which);
    for (const CallRecord& record : records) {
      calls.OnStart(record.method);
      calls.OnEnd(record);
    }
  }
  return lines;
}

CallRecord Ok() { return {.method = kMethod, .duration = absl::Milliseconds(12)}; }

CallRecord Failed(absl::StatusCode code, R reason) {
  return {.method = kMethod,
          .code = code,
          .reason = reason,
          .message = "what happened",
          .duration = absl::Milliseconds(1500),
          .tenant = "red",
          .trace_id = "4bf92f3577b34da6a3ce929d0e0e4736",
          .waiting_for = "the answer"};
}

TEST(CallLog, AFailureIsOneLineWithAllThatIsKnown) {
  const auto lines =
      Lines(LogCalls::kFailed,
            {Failed(absl::StatusCode::kUnavailable, R::ERROR_REASON_UPSTREAM_UNAVAILABLE)});
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0],
              EndsWith("level=warning msg=call method=s/M code=UNAVAILABLE "
                       "reason=UPSTREAM_UNAVAILABLE ms=1500 waiting_for=\"the answer\" tenant=red "
                       "trace_id=4bf92f3577b34da6a3ce929d0e0e4736 error=\"what happened\"\n"));
}

TEST(CallLog, FailedMeansNotByTheCallersDoing) {
  const auto lines =
      Lines(LogCalls::kFailed,
            {Ok(), Failed(absl::StatusCode::kNotFound, R::ERROR_REASON_SANDBOX_NOT_FOUND),
             Failed(absl::StatusCode::kCancelled, R::ERROR_REASON_CANCELLED),
             Failed(absl::StatusCode::kUnauthenticated, R::ERROR_REASON_CALLER_UNAUTHENTICATED),
             Failed(absl::StatusCode::kInternal, R::ERROR_REASON_INTERNAL)});
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr("level=error"));
}

TEST(CallLog, AllMeansAllAndNoneNone) {
  const std::vector<CallRecord> records = {
      Ok(), Failed(absl::StatusCode::kNotFound, R::ERROR_REASON_SANDBOX_NOT_FOUND)};
  const auto lines = Lines(LogCalls::kAll, records);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[0], EndsWith("level=info msg=call method=s/M code=OK ms=12\n"));
  EXPECT_THAT(Lines(LogCalls::kNone, records), SizeIs(0));
}

TEST(ParseLogCalls, KnowsItsWords) {
  EXPECT_EQ(*ParseLogCalls("none"), LogCalls::kNone);
  EXPECT_EQ(*ParseLogCalls("failed"), LogCalls::kFailed);
  EXPECT_EQ(*ParseLogCalls("all"), LogCalls::kAll);
  EXPECT_FALSE(ParseLogCalls("some").ok());
}

}  // namespace
}  // namespace bridge
