// SPDX-License-Identifier: Apache-2.0
//
// What cannot be delivered is said to be missing, on every daemon; and what was not there is not
// made up.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "absl/synchronization/notification.h"
#include "bridge/base/error.h"
#include "bridge/opensandbox/exec_frames.h"
#include "bridge/opensandbox/exec_own.h"
#include "tests/fakes/execd_process.h"
#include "tests/opensandbox/exec_fixture.h"
#include "tests/opensandbox/scripted_daemon.h"

namespace bridge {
namespace {

using R = ErrorReason;

class ExecLoss : public ::testing::TestWithParam<Way> {
 protected:
  ExecLoss() : execd(GetParam().flags), bench(execd.url()) {}
  bool own() const { return std::string(GetParam().name) == "own"; }

  ExecdProcess execd;
  ExecBench bench;
};

INSTANTIATE_TEST_SUITE_P(Daemons, ExecLoss, EveryDaemon(), WayName);

// A script that clears /tmp takes what it printed along; that it had printed nothing was the news.
TEST_P(ExecLoss, OutputThatTheCommandRemovedIsMissing) {
  const ExecResult result = bench.Run(
      {.shell = "echo hello; d=$(readlink /proc/$$/fd/1); [ ! -f \"$d\" ] || rm -r \"${d%/*}\""});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.outcome, Outcome(ExitCode{0}));
  // Nobody can tell afterwards whether what was fetched in time was all.
  EXPECT_EQ(result.last.lossy, !own());
  EXPECT_TRUE(result.out == "hello\n" || (result.out.empty() && !own())) << result.out;
}

// Of what was written both ways the one overwrote the other; and who was not root could not.
TEST_P(ExecLoss, OutputsMayBeOpenedByTheirNames) {
  std::filesystem::permissions(execd.tmpdir(), std::filesystem::perms::all);
  const std::string shell =
      "echo one >/dev/stderr; echo two >&2; echo a; echo b >>/dev/stdout; echo c";
  std::vector<UserSpec> users = {{}};
  if (geteuid() == 0) users.push_back({.name = "nobody"});
  for (const UserSpec& user : users) {
    const ExecResult result = bench.Run({.shell = shell, .user = user});
    EXPECT_EQ(result.out, "a\nb\nc\n") << user.name;
    EXPECT_EQ(result.err, "one\ntwo\n") << user.name;
    EXPECT_FALSE(result.last.lossy);
  }
}

TEST_P(ExecLoss, ATimeIsToldOfAnEndThatWasSeen) {
  const ExecResult result = bench.Run({.shell = "sleep 0.2"});
  ASSERT_TRUE(result.ran_for.has_value());
  EXPECT_GE(*result.ran_for, absl::Milliseconds(200));
}

TEST_P(ExecLoss, ACommandWithoutOutputHasLostNone) {
  EXPECT_FALSE(bench.Run({.argv = {"true"}}).last.lossy);
  EXPECT_FALSE(bench.Run({.shell = "kill -9 $$"}).last.lossy);
}

// Bytes that were never printed were counted as produced.
TEST_P(ExecLoss, AnAttachAheadOfTheOutputIsRefusedAndTouchesNothing) {
  const std::string id = bench.StartAndDrop(
      {.shell = "printf abc; exec sleep 600", .detach_on_disconnect = true}, "abc");
  ASSERT_NE(id, "");
  for (const auto& [out, err] : {std::pair<int64_t, int64_t>{4, 0}, {0, 1}}) {
    const absl::Status status = RunTask(bench.loop, [&]() -> Task<absl::Status> {
      auto exec = co_await bench.client.Attach(bench.context, bench.box, id, out, err,
                                               /*kill_on_drop=*/true, absl::Seconds(1));
      if (!exec.ok()) co_return exec.status();
      ExecBatch batch;
      absl::Status next = absl::OkStatus();
      while (next.ok() && !batch.drained) next = co_await (*exec)->Next(&batch, absl::Seconds(1));
      co_return next;
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    bench.Settle();
    const auto info = bench.Get(id);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_TRUE(info->running);
  }
  EXPECT_TRUE(bench.Signal(id, 9).ok());
}

// Was an UPSTREAM_REJECTED of our own daemon, and on a stock one said after the outcome.
TEST_P(ExecLoss, AnAttachAheadOfTheOutputIsRefusedBeforeItBegins) {
  for (const char* shell : {"printf abc", "printf abc; exec sleep 600"}) {
    const std::string id =
        bench.StartAndDrop({.shell = shell, .detach_on_disconnect = true}, "abc");
    const auto attach = [&](int64_t out, int64_t err) {
      return RunTask(bench.loop, [&]() -> Task<absl::Status> {
        auto exec = co_await bench.client.Attach(bench.context, bench.box, id, out, err,
                                                 /*kill_on_drop=*/false, absl::Seconds(1));
        co_return exec.status();
      });
    };
    EXPECT_TRUE(attach(3, 0).ok());
    for (const absl::Status& status : {attach(4, 0), attach(0, 1)}) {
      EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_INVALID_ARGUMENT) << status;
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("_offset")) << status;
    }
    (void)bench.Signal(id, 9);
  }
}

// A stock daemon has nothing of it any more; what the caller says to have had is no news.
TEST_P(ExecLoss, OutputThatWentWithItsExecIsMissing) {
  const std::string id = bench.StartAndDrop({.shell = "printf abc; exec sleep 600"}, "abc");
  bench.Settle();
  const ExecResult whole = bench.Attach(id);
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  EXPECT_EQ(whole.out, own() ? "abc" : "");
  EXPECT_EQ(whole.last.lossy, !own());
  if (own()) return;
  const ExecResult rest = bench.Attach(id, 3, 0);
  ASSERT_TRUE(rest.status.ok()) << rest.status;
  EXPECT_TRUE(rest.last.lossy);
  EXPECT_EQ(rest.last.stdout_bytes, 0);
}

std::string Part(int status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// A command on a stock daemon that tells of ten bytes on stdout, answers the first fetch of them
// so, has the command end, and answers every later fetch like that.
ExecResult RunSeen(const std::string& first, const std::string& later) {
  absl::Notification fetched;
  ScriptedDaemon daemon([&](RawConnection& peer) {
    peer.Write(kHead + Chunk(kInit));
    fetched.WaitForNotification();
    peer.Write(Chunk(kComplete) + "0\r\n\r\n");
  });
  daemon.files = [&](const std::string& head) {
    const size_t begin = head.find("path=") + 5;
    std::string path = head.substr(begin, head.find_first_of("& ", begin) - begin);
    for (size_t at = path.find("%2F"); at != std::string::npos; at = path.find("%2F")) {
      path.replace(at, 3, "/");
    }
    const std::string folder = path.substr(0, path.rfind('/'));
    if (head.rfind("GET /files/info", 0) == 0) {
      return Json(
          200, "{" + FileSizeJson(folder + "/o", 10) + "," + FileSizeJson(folder + "/e", 0) + "}");
    }
    if (path == folder + "/e") return Part(200, "", "");
    if (path != folder + "/o") return Json(404, R"({"code":"FILE_NOT_FOUND"})");
    if (fetched.HasBeenNotified()) return later;
    fetched.Notify();
    return first;
  };
  ExecBench bench(daemon.url());
  return bench.Run({.shell = "x", .detach_on_disconnect = true});
}

// It was seen, did not come, and its lack was not told; or the whole call failed.
TEST(StockExecLoss, OutputThatWasSeenAndDoesNotComeIsMissing) {
  const std::string gone = Json(404, R"({"code":"FILE_NOT_FOUND"})");
  const std::string part = Part(200, "", "0123");
  const std::string rest_of_4 = Part(416, "Content-Range: bytes */4\r\n", "");
  const std::string rest_of_0 = Part(416, "Content-Range: bytes */0\r\n", "");
  const std::string silent = Part(416, "", "");
  for (const auto& [first, later, out] :
       std::vector<std::tuple<std::string, std::string, std::string>>{{gone, gone, ""},
                                                                      {part, rest_of_4, "0123"},
                                                                      {part, gone, "0123"},
                                                                      {part, silent, "0123"},
                                                                      {rest_of_0, rest_of_0, ""},
                                                                      {gone, part, "0123"}}) {
    const ExecResult result = RunSeen(first, later);
    ASSERT_TRUE(result.status.ok()) << result.status << first << later;
    EXPECT_EQ(result.outcome, Outcome(ExitCode{0}));
    EXPECT_EQ(result.out, out);
    EXPECT_TRUE(result.last.lossy) << first << later;
    EXPECT_EQ(result.last.stdout_bytes, 10);
  }
}

TEST(StockExecLoss, OutputThatCameAsSeenIsWhole) {
  const std::string whole = Part(200, "", "0123456789");
  const std::string no_more = Part(416, "Content-Range: bytes */10\r\n", "");
  const std::string two_more = Part(206, "Content-Range: bytes 10-11/12\r\n", "ab");
  const ExecResult result = RunSeen(whole, no_more);
  EXPECT_EQ(result.out, "0123456789");
  EXPECT_FALSE(result.last.lossy);
  const ExecResult more = RunSeen(whole, two_more);
  EXPECT_EQ(more.out, "0123456789ab");
  EXPECT_FALSE(more.last.lossy);
  EXPECT_EQ(more.last.stdout_bytes, 12);
}

// Our own daemon's stream, frame by frame.
ExecResult RunFrames(const std::string& frames) {
  RawServer daemon([&frames](RawConnection& peer) {
    const std::string started = ReadExecRequest(peer);
    peer.Write(kFramesHead + Chunk(EncodeExecFrame(ExecFrame::kStarted, 0, started) + frames) +
               "0\r\n\r\n");
  });
  ExecBench bench(daemon.Url(""));
  bench.directory.daemon()->probed = std::make_shared<DaemonCapabilities>();
  bench.directory.daemon()->probed->exec = true;
  return bench.Run({.shell = "x", .detach_on_disconnect = true});
}

std::string Ended(const std::string& totals) {
  return EncodeExecFrame(ExecFrame::kExited, 0, R"({"kind":"exited","code":0})") +
         EncodeExecFrame(ExecFrame::kDrained, 0, totals);
}

TEST(OwnExecLoss, TotalsBeyondWhatCameAreALoss) {
  const std::string output = EncodeExecFrame(ExecFrame::kStdout, 0, "abc");
  EXPECT_FALSE(RunFrames(output + Ended(R"({"stdout_bytes":3,"stderr_bytes":0})")).last.lossy);
  for (const char* totals :
       {R"({"stdout_bytes":4,"stderr_bytes":0})", R"({"stdout_bytes":3,"stderr_bytes":1})", "{}"}) {
    const ExecResult result = RunFrames(output + Ended(totals));
    EXPECT_EQ(result.out, "abc");
    EXPECT_TRUE(result.last.lossy) << totals;
  }
}

// Was a call that went well, without an outcome; and one that was resumed for ever.
TEST(OwnExecLoss, AnExecWithoutAnOutcomeIsLost) {
  const std::string drained =
      EncodeExecFrame(ExecFrame::kDrained, 0, R"({"stdout_bytes":0,"stderr_bytes":0})");
  const std::string leap = EncodeExecFrame(ExecFrame::kStdout, 5, "abc");
  for (const std::string& frames : {drained, leap}) {
    const ExecResult result = RunFrames(frames);
    ASSERT_TRUE(result.outcome.has_value());
    EXPECT_TRUE(std::holds_alternative<Lost>(*result.outcome));
    EXPECT_FALSE(result.ran_for.has_value()) << "nobody saw its end";
    EXPECT_TRUE(result.last.lossy);
    EXPECT_EQ(result.out, "");
  }
}

}  // namespace
}  // namespace bridge
