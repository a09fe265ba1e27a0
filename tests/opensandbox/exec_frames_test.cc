// SPDX-License-Identifier: Apache-2.0
//
// The texts and bytes are those of docs/execd-extras.md.
#include "bridge/opensandbox/exec_frames.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/opensandbox/no_room.h"

namespace bridge {
namespace {

using R = ErrorReason;
using Seen = std::vector<std::tuple<int, uint64_t, std::string>>;

Seen FramesOf(const std::vector<std::string_view>& pieces, ExecFrameParser& parser) {
  Seen seen;
  for (const std::string_view piece : pieces) {
    parser.Feed(piece);
    ExecFrame frame;
    while (parser.Next(&frame)) seen.emplace_back(frame.type, frame.offset, frame.payload);
  }
  return seen;
}

ExecRefusal Refusal(int status, std::string body, HttpHeaders headers = {}) {
  return ParseExecRefusal({status, std::move(headers), std::move(body)});
}

TEST(ExecFrame, EncodesAsDocumented) {
  EXPECT_EQ(EncodeExecFrame(ExecFrame::kStdout, 0x0102030405060708, "hi"),
            std::string("\x01\0\0\0\0\0\0\x02\x01\x02\x03\x04\x05\x06\x07\x08hi", 18));
}

TEST(ExecFrameParser, SameFramesUnderAllSplits) {
  const std::string bytes = EncodeExecFrame(ExecFrame::kStarted, 0, "{}") +
                            EncodeExecFrame(ExecFrame::kStdout, 0, std::string("a\0\xff", 3)) +
                            EncodeExecFrame(ExecFrame::kHeartbeat, 0, "") +
                            EncodeExecFrame(ExecFrame::kStderr, 1ull << 40, "e");
  const Seen expected = {{ExecFrame::kStarted, 0, "{}"},
                         {ExecFrame::kStdout, 0, std::string("a\0\xff", 3)},
                         {ExecFrame::kHeartbeat, 0, ""},
                         {ExecFrame::kStderr, 1ull << 40, "e"}};
  const std::string_view all = bytes;
  for (size_t i = 0; i <= all.size(); ++i) {
    for (size_t j = i; j <= all.size(); ++j) {
      ExecFrameParser parser;
      EXPECT_EQ(FramesOf({all.substr(0, i), all.substr(i, j - i), all.substr(j)}, parser),
                expected);
      EXPECT_FALSE(parser.mid_frame());
    }
  }
}

TEST(ExecFrameParser, KnowsThatAFrameIsCut) {
  ExecFrameParser parser;
  const std::string bytes = EncodeExecFrame(ExecFrame::kStdout, 0, "abc");
  EXPECT_TRUE(FramesOf({std::string_view(bytes).substr(0, bytes.size() - 1)}, parser).empty());
  EXPECT_TRUE(parser.mid_frame());
  EXPECT_TRUE(parser.status().ok());
}

TEST(ExecFrameParser, TakesTheLargestFrameAndRefusesALargerOne) {
  ExecFrameParser parser;
  const std::string largest(kMaxExecFramePayload, 'x');
  const std::string bytes = EncodeExecFrame(ExecFrame::kStdout, 0, largest);
  EXPECT_EQ(FramesOf({bytes}, parser).size(), 1u);
  const std::string larger = EncodeExecFrame(ExecFrame::kStdout, 0, largest + "x");
  EXPECT_TRUE(FramesOf({larger, bytes}, parser).empty());
  EXPECT_EQ(ReasonOf(parser.status()), R::ERROR_REASON_UPSTREAM_PROTOCOL);
}

TEST(ExecJson, Started) {
  const auto started = ParseExecStarted(
      R"({"exec_id":"0a","pid":41,"pgid":41,"started_at":"2026-01-01T00:00:00Z","running":true})");
  ASSERT_TRUE(started.ok());
  EXPECT_EQ(started->exec_id, "0a");
  EXPECT_EQ(started->pid, 41);
  EXPECT_EQ(absl::ToUnixSeconds(started->started_at), 1767225600);
  for (const char* bad : {"", "{}", "[]", R"({"exec_id":7})"}) {
    EXPECT_EQ(ReasonOf(ParseExecStarted(bad).status()), R::ERROR_REASON_UPSTREAM_PROTOCOL) << bad;
  }
}

TEST(ExecJson, Exited) {
  auto exited = ParseExecExited(
      R"({"kind":"exited","code":3,"timed_out":false,"signalled_by_request":true,"ran_ms":12})");
  ASSERT_TRUE(exited.ok());
  EXPECT_EQ(exited->outcome, Outcome(ExitCode{3}));
  EXPECT_EQ(exited->ran_for, absl::Milliseconds(12));
  exited = ParseExecExited(
      R"({"kind":"signalled","signal":11,"signal_name":"SIGSEGV","core_dumped":true})");
  EXPECT_EQ(exited->outcome, Outcome(Signalled{11, true}));
  exited = ParseExecExited(R"({"kind":"signalled","signal":9,"signalled_by_request":true})");
  EXPECT_EQ(exited->outcome, Outcome(CancelledEnd{true, Signalled{9}}));
  exited = ParseExecExited(R"({"kind":"signalled","signal":9,"timed_out":true,"ran_ms":500})");
  EXPECT_EQ(exited->outcome, Outcome(TimedOut{absl::Milliseconds(500)}));
  // Nothing of these is an end; most of them were exit 0.
  for (const char* bad :
       {"", "{}", R"({"kind":"exited"})", R"({"kind":"vanished","code":1})",
        R"({"kind":"exited","code":null})", R"({"kind":"exited","code":"1"})",
        R"({"kind":"exited","code":1.0})", R"({"kind":"exited","code":256})",
        R"({"kind":"exited","code":-1})", R"({"kind":"exited","code":4294967296})",
        R"({"kind":"exited","code":18446744073709551615})", R"({"kind":"signalled"})",
        R"({"kind":"signalled","signal":0})", R"({"kind":"signalled","signal":65})"}) {
    EXPECT_EQ(ReasonOf(ParseExecExited(bad).status()), R::ERROR_REASON_UPSTREAM_PROTOCOL) << bad;
  }
}

TEST(ExecJson, RecordOfARunningAndAnEndedExec) {
  auto record = ParseExecRecord(R"({"running":true,"pid":7,"stdout_bytes":5})");
  ASSERT_TRUE(record.ok());
  EXPECT_TRUE(record->running);
  EXPECT_EQ(record->stdout_bytes, 5);
  record = ParseExecRecord(
      R"({"running":false,"outcome":{"kind":"exited","code":0,"finished_at":"2026-01-01T00:00:00Z"}})");
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->exited->outcome, Outcome(ExitCode{0}));
  EXPECT_EQ(absl::ToUnixSeconds(record->finished_at), 1767225600);
  EXPECT_FALSE(ParseExecRecord(R"({"running":false,"outcome":{}})").ok());
}

TEST(ExecJson, WhatTheDaemonDoesNotSayOfOpenOutputsIsUnknown) {
  using Told = std::optional<bool>;
  for (const auto& [json, told] :
       {std::pair<const char*, Told>{R"({"running":false})", {}},
        {R"({"running":false,"stdout_open":false})", {}},
        {R"({"running":false,"stdout_open":false,"stderr_open":"yes"})", {}},
        {R"({"running":false,"stdout_open":false,"stderr_open":false})", false},
        {R"({"running":false,"stdout_open":true,"stderr_open":false})", true},
        {R"({"running":false,"stdout_open":false,"stderr_open":true})", true}}) {
    EXPECT_EQ(ParseExecDrained(json)->still_open, told) << json;
    EXPECT_EQ(ParseExecRecord(json)->still_open, told) << json;
  }
}

TEST(ExecJson, RequestHasOnlyWhatIsSet) {
  EXPECT_EQ(ExecRequestJson({.shell = "true"}, absl::Seconds(15)),
            R"({"heartbeat_ms":15000,"on_disconnect":"kill","shell":"true"})");
  EXPECT_EQ(ExecRequestJson({.shell = "true"}, absl::Seconds(15), "0a"),
            R"({"exec_id":"0a","heartbeat_ms":15000,"on_disconnect":"kill","shell":"true"})");
  EXPECT_EQ(ExecRequestJson({.argv = {"a", ""},
                             .cwd = "/x",
                             .env = {{"A", "b"}},
                             .user = {.uid = 0, .gid = 5},
                             .timeout = absl::Milliseconds(50),
                             .stdin_bytes = std::string("\0\xff", 2),
                             .detach_on_disconnect = true},
                            absl::ZeroDuration()),
            R"({"argv":["a",""],"cwd":"/x","env":{"A":"b"},"gid":5,"heartbeat_ms":100,)"
            R"("on_disconnect":"detach","stdin_b64":"AP8=","timeout_ms":50,"uid":0})");
}

TEST(ExecRefusal, SpawnFailuresAreOutcomesButForUsers) {
  auto refusal = Refusal(422, R"({"code":"SPAWN_FAILED","kind":"NOT_FOUND","message":"x"})");
  ASSERT_TRUE(refusal.spawn_failed.has_value());
  EXPECT_EQ(refusal.spawn_failed->kind, SpawnFailed::Kind::kNotFound);
  refusal = Refusal(422, R"({"code":"SPAWN_FAILED","kind":"BAD_USER"})");
  EXPECT_EQ(ReasonOf(refusal.status), R::ERROR_REASON_UNKNOWN_USER);
}

TEST(ExecRefusal, ReplayGapNamesTheFirstBytesHeld) {
  const auto refusal = Refusal(410, R"({"code":"OUTPUT_GONE","first_stdout":70,"first_stderr":2})");
  EXPECT_EQ(ReasonOf(refusal.status), R::ERROR_REASON_REPLAY_GAP);
  EXPECT_EQ(MetadataOf(refusal.status)["first_available_stdout"], "70");
  EXPECT_EQ(MetadataOf(refusal.status)["first_available_stderr"], "2");
}

TEST(ExecRefusal, AFullDaemonAndAFullSandboxAreToldApart) {
  const absl::Status daemon =
      Refusal(429, R"({"code":"TOO_MANY","message":"m","limit":512})").status;
  EXPECT_EQ(ReasonOf(daemon), R::ERROR_REASON_QUOTA_EXCEEDED);
  EXPECT_EQ(MetadataOf(daemon)["limit"], "512");
  EXPECT_NE(daemon.message().find("commands"), absl::string_view::npos);
  const absl::Status sandbox =
      Refusal(429, R"({"code":"TOO_MANY","message":"m","errno":"EAGAIN"})").status;
  EXPECT_EQ(ReasonOf(sandbox), R::ERROR_REASON_QUOTA_EXCEEDED);
  EXPECT_FALSE(MetadataOf(sandbox).contains("limit"));
  EXPECT_EQ(sandbox.message(), NoRoomError().message());
}

TEST(ExecRefusal, AnswersOfOthersKeepTheMeaningOfTheirStatus) {
  const HttpHeaders html = {{"Content-Type", "text/html"}};
  const std::string page = "<html><title>SECRET</title></html>";
  EXPECT_EQ(ReasonOf(Refusal(502, page, html).status), R::ERROR_REASON_SANDBOX_UNREACHABLE);
  EXPECT_EQ(ReasonOf(Refusal(503, "").status), R::ERROR_REASON_SANDBOX_UNREACHABLE);
  EXPECT_EQ(ReasonOf(Refusal(404, page, html).status), R::ERROR_REASON_UPSTREAM_PROTOCOL);
  EXPECT_EQ(ReasonOf(Refusal(401, "{\"error\":\"Unauthorized\"}").status),
            R::ERROR_REASON_UPSTREAM_UNAUTHENTICATED);
  EXPECT_EQ(MetadataOf(Refusal(401, "{}").status)["hop"], "sandbox");
  const absl::Status slow = Refusal(429, "{}", {{"Retry-After", "7"}}).status;
  EXPECT_EQ(ReasonOf(slow), R::ERROR_REASON_QUOTA_EXCEEDED);
  EXPECT_EQ(RetryAfterOf(slow), absl::Seconds(7));
  for (const int status : {400, 404, 502}) {
    EXPECT_EQ(Refusal(status, page, html).status.ToString().find("SECRET"), std::string::npos);
  }
}

TEST(ExecRefusal, WordsOfTheDaemonAreNotPassedOn) {
  for (const char* body : {R"({"code":"INTERNAL","message":"SECRET"})", "SECRET", "",
                           R"({"code":"INVALID_ARGUMENT","message":"SECRET"})"}) {
    const auto refusal = Refusal(500, body);
    EXPECT_FALSE(refusal.status.ok());
    EXPECT_EQ(refusal.status.ToString().find("SECRET"), std::string::npos);
  }
}

}  // namespace
}  // namespace bridge
