// SPDX-License-Identifier: Apache-2.0
//
// Input of a process that changes hands, or ends, before it has taken all of it.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/opensandbox/process_fixture.h"

namespace bridge {
namespace {

namespace fs = std::filesystem;

class ProcessHandover : public Processes {
 protected:
  using Attachment = std::unique_ptr<ProcessAttachment>;

  std::string Path(const std::string& name) const { return execd.tmpdir() + "/" + name; }
  static std::string Content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  Task<void> AwaitFile(std::string path) {
    const absl::Time until = absl::Now() + absl::Seconds(30);
    while (!fs::exists(path) && absl::Now() < until) {
      (void)co_await bench.loop.Sleep(absl::Milliseconds(5));
    }
    EXPECT_TRUE(fs::exists(path)) << path;
  }
  static Task<void> ReadToEnd(ProcessAttachment* attachment, Seen* seen) {
    while (seen->status.ok() && !seen->drained && !seen->displaced) {
      absl::StatusOr<ProcessEvent> event = co_await attachment->Next();
      seen->status = event.status();
      if (event.ok()) Take(*event, seen);
    }
  }
  // Types these, one after the other, for as long as `meanwhile` runs.
  template <class Body>
  Task<void> Typing(ProcessAttachment* attachment, std::vector<std::string> texts, Body meanwhile) {
    auto type = [&]() -> Task<void> {
      int64_t at = 0;
      for (const std::string& text : texts) {
        const absl::Status sent = co_await attachment->SendInput(at, text);
        const bool cancelled = co_await Cancelled();
        if (cancelled) co_return;
        EXPECT_TRUE(sent.ok()) << sent;
        at += static_cast<int64_t>(text.size());
      }
      Waiter forever;
      (void)co_await forever.Wait();
    };
    co_await RunBoth(type, meanwhile);
  }
};

INSTANTIATE_TEST_SUITE_P(Daemons, ProcessHandover, ::testing::Values("1.1.0", "current"),
                         [](const auto& info) {
                           return std::string(info.param) == "current" ? "current" : "v110";
                         });

// A new holder's frames became data in the midst of the former one's, and its end of input was
// swallowed.
TEST_P(ProcessHandover, InputThatWasBrokenOffLeavesTheNextOnesWhole) {
  const std::string id = Start({.shell = "dd bs=1 count=1 of=" + Path("first") + "; touch " +
                                         Path("got") + "; while [ ! -e " + Path("go") +
                                         " ]; do sleep 0.01; done; cat >" + Path("in")});
  Seen former;
  Seen seen;
  RunTask(bench.loop, [&]() -> Task<void> {
    const AttachOptions from_start{.offset = 0};
    auto old = co_await processes.Attach(bench.context, bench.box, id, from_start);
    former.status = old.status();
    if (!old.ok()) co_return;
    auto meanwhile = [&]() -> Task<void> {
      co_await AwaitFile(Path("got"));
      const AttachOptions takeover{.offset = 0, .takeover = true};
      auto next = co_await processes.Attach(bench.context, bench.box, id, takeover);
      seen.status = next.status();
      if (!next.ok()) co_return;
      co_await ReadToEnd(old->get(), &former);
      std::ofstream(Path("go")) << "go";
      absl::Status sent = co_await (*next)->SendInput(0, "HELLO\n");
      if (sent.ok()) sent = co_await (*next)->SendInput(6, "WORLD\n");
      if (sent.ok()) sent = co_await (*next)->SendEof();
      EXPECT_TRUE(sent.ok()) << sent;
      co_await ReadToEnd(next->get(), &seen);
    };
    const std::vector<std::string> texts(2, std::string(200'000, 'z'));
    co_await Typing(old->get(), texts, meanwhile);
  });
  EXPECT_TRUE(former.displaced) << former.status;
  EXPECT_EQ(former.taken, 0);
  ASSERT_TRUE(seen.status.ok()) << seen.status;
  EXPECT_EQ(seen.outcome, Outcome(ExitCode{0}));
  EXPECT_EQ(seen.taken, 12);
  const std::string content = Content(Path("in"));
  const size_t taken = std::min(content.find_first_not_of('z'), content.size());
  EXPECT_EQ(content.substr(taken), "HELLO\nWORLD\n");
  EXPECT_LT(taken, 400'000u);
}

// Every byte there is, for a shell that would rather not see some of them.
TEST_P(ProcessHandover, AnyBytesArriveHoweverTheyAreCut) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  std::string input = std::string(10'000, '\0') + std::string(10'000, '\n') + "\n=\\c\\0101\\n=";
  for (int i = 0; i < 100; ++i) input += all + std::string(static_cast<size_t>(i), all[i]);
  const std::string id = Start({.shell = "cat >" + Path("in")});
  Seen seen;
  RunTask(bench.loop, [&]() -> Task<void> {
    const AttachOptions from_start{.offset = 0};
    auto attachment = co_await processes.Attach(bench.context, bench.box, id, from_start);
    seen.status = attachment.status();
    if (!attachment.ok()) co_return;
    absl::Status sent;
    for (size_t at = 0, size = 1; at < input.size(); at += size, size = size * 3 + 1) {
      sent = co_await (*attachment)->SendInput(static_cast<int64_t>(at), input.substr(at, size));
      EXPECT_TRUE(sent.ok()) << sent;
    }
    sent = co_await (*attachment)->SendEof();
    EXPECT_TRUE(sent.ok()) << sent;
    co_await ReadToEnd(attachment->get(), &seen);
  });
  ASSERT_TRUE(seen.status.ok()) << seen.status;
  EXPECT_EQ(seen.taken, static_cast<int64_t>(input.size()));
  EXPECT_TRUE(Content(Path("in")) == input);
}

}  // namespace
}  // namespace bridge
