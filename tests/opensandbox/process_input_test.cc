// SPDX-License-Identifier: Apache-2.0
//
// Processes on a real daemon: what is typed, what is signalled, and what comes of it.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "bridge/base/error.h"
#include "bridge/base/sha256.h"
#include "tests/opensandbox/process_fixture.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using R = ErrorReason;
namespace fs = std::filesystem;

INSTANTIATE_TEST_SUITE_P(Daemons, Processes, ::testing::Values("1.1.0", "current"),
                         [](const auto& info) {
                           return std::string(info.param) == "current" ? "current" : "v110";
                         });

TEST_P(Processes, InputIsTakenAndAcknowledged) {
  const std::string id = Start({.shell = "read a; read b; echo \"[$a][$b]\""});
  const Seen seen = Attach(id, {.offset = 0}, "one\ntwo\n");
  EXPECT_EQ(seen.out + seen.merged, "[one][two]\n[one][two]\n");
  EXPECT_EQ(seen.taken, 8);
  EXPECT_EQ(seen.outcome, Outcome(ExitCode{0}));
}

TEST_P(Processes, InputEndsOnPipes) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  std::string input;
  while (input.size() < 200'000) input += all;
  const std::string id = Start({.argv = {"sh", "-c", "sha256sum; cat; echo end"}});
  const Seen seen = RunTask(bench.loop, [&]() -> Task<Seen> {
    Seen got;
    const AttachOptions from_start{.offset = 0};
    auto attachment = co_await processes.Attach(bench.context, bench.box, id, from_start);
    got.status = attachment.status();
    if (!attachment.ok()) co_return got;
    for (size_t at = 0; at < input.size(); at += 70'000) {
      got.status =
          co_await (*attachment)->SendInput(static_cast<int64_t>(at), input.substr(at, 70'000));
      if (!got.status.ok()) co_return got;
    }
    got.status = co_await (*attachment)->SendEof();
    const absl::Status late =
        co_await (*attachment)->SendInput(static_cast<int64_t>(input.size()), "late");
    EXPECT_EQ(ReasonOf(late), R::ERROR_REASON_INVALID_ARGUMENT) << late;
    while (got.status.ok() && !got.drained) {
      absl::StatusOr<ProcessEvent> event = co_await (*attachment)->Next();
      got.status = event.status();
      if (event.ok()) Take(*event, &got);
    }
    co_return got;
  });
  ASSERT_TRUE(seen.status.ok()) << seen.status;
  Sha256 digest;
  digest.Update(input);
  EXPECT_EQ(seen.out, digest.FinishHex() + "  -\nend\n");
  EXPECT_EQ(seen.taken, static_cast<int64_t>(input.size()));
  EXPECT_EQ(seen.outcome, Outcome(ExitCode{0}));
}

// Pasted text was cut or reordered.
TEST_P(Processes, ManySmallInputsArriveInOrder) {
  const std::string id = Start({.argv = {"sha256sum"}});
  std::string input;
  const Seen seen = RunTask(bench.loop, [&]() -> Task<Seen> {
    Seen got;
    const AttachOptions from_start{.offset = 0};
    auto attachment = co_await processes.Attach(bench.context, bench.box, id, from_start);
    got.status = attachment.status();
    for (int i = 0; got.status.ok() && i < 500; ++i) {
      const std::string piece = std::to_string(i * i) + (i % 3 == 0 ? "\n" : "\xff ");
      got.status = co_await (*attachment)->SendInput(static_cast<int64_t>(input.size()), piece);
      input += piece;
    }
    if (got.status.ok()) got.status = co_await (*attachment)->SendEof();
    while (got.status.ok() && !got.drained) {
      absl::StatusOr<ProcessEvent> event = co_await (*attachment)->Next();
      got.status = event.status();
      if (event.ok()) Take(*event, &got);
    }
    co_return got;
  });
  ASSERT_TRUE(seen.status.ok()) << seen.status;
  Sha256 digest;
  digest.Update(input);
  EXPECT_EQ(seen.out, digest.FinishHex() + "  -\n");
  EXPECT_EQ(seen.taken, static_cast<int64_t>(input.size()));
}

TEST_P(Processes, SignalsOfTheGroupLeaveTheInputAlone) {
  const std::string id =
      Start({.shell = "trap 'echo got' TERM USR1 HUP; echo on; while :; do "
                      "if read -r a; then echo \"<$a>\"; else sleep 0.05; fi; done"});
  const Seen seen = Attach(id, {.offset = 0}, "", "on\n");
  ASSERT_TRUE(seen.status.ok()) << seen.status;
  for (const int signal : {SIGTERM, SIGUSR1, SIGHUP}) {
    const absl::Status sent = RunTask(bench.loop, [&] {
      return processes.Signal({}, {"box", ""}, id, {signal, /*group=*/true});
    });
    EXPECT_TRUE(sent.ok()) << sent;
  }
  EXPECT_THAT(Attach(id, {.offset = 0}, "after\n", "<after>").merged, HasSubstr("<after>"));
}

// A terminal died on output that is no text.
TEST_P(Processes, AnyBytesOnATerminal) {
  const std::string id = Start({.shell = "stty raw; head -c 100000 /dev/urandom | tee " +
                                         execd.tmpdir() + "/bytes; echo END",
                                .terminal = TerminalSize{}});
  const Seen seen = Attach(id, {.offset = 0});
  ASSERT_TRUE(seen.status.ok()) << seen.status;
  std::ifstream in(execd.tmpdir() + "/bytes", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(bytes.size(), 100'000u);
  EXPECT_TRUE(seen.merged == bytes + "END\n");
}

// The end was reported while the process was still writing.
TEST_P(Processes, TheEndIsToldWhenItIsTrue) {
  const std::string file = execd.tmpdir() + "/ticks";
  const std::string id =
      Start({.shell = "trap : TERM; echo on; while :; do echo x >>" + file + "; sleep 0.01; done"});
  ASSERT_EQ(Attach(id, {.offset = 0}, "", "on\n").merged, "on\n");
  for (const int signal : {SIGTERM, SIGKILL}) {
    const absl::Status sent = RunTask(bench.loop, [&] {
      return processes.Signal({}, {"box", ""}, id, {signal, /*group=*/true});
    });
    EXPECT_TRUE(sent.ok()) << sent;
  }
  const Seen seen = Attach(id, {.offset = 0});
  EXPECT_EQ(seen.outcome, Outcome(CancelledEnd{true, Signalled{SIGKILL}}));
  const auto size = fs::file_size(file);
  bench.Run({.argv = {"sleep", "0.1"}});
  EXPECT_EQ(fs::file_size(file), size);
}

}  // namespace
}  // namespace bridge
