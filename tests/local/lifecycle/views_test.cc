// SPDX-License-Identifier: Apache-2.0
//
// What the replay of the recordings does not show.
#include "bridge/local/lifecycle/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bridge::local::lifecycle {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

SandboxRecord Running() {
  SandboxRecord record;
  record.id = "x";
  record.image = "base";
  record.root = "/";
  record.entrypoint = {"true"};
  record.hostname = "0123456789ab";
  record.env = {{"A", "1"}};
  record.container_at = record.started_at = absl::FromUnixSeconds(1795970796);
  return record;
}

TEST(State, OfEveryKind) {
  SandboxRecord record = Running();
  EXPECT_EQ(StateOf(record), "Running");
  record.paused = true;
  EXPECT_EQ(StateOf(record), "Paused");
  record.ended = runtime::ExitStatus{0, 0};
  EXPECT_EQ(StateOf(record), "Terminated");
  record.ended->code = 137;
  EXPECT_EQ(StateOf(record), "Failed");
  EXPECT_EQ(SandboxView(record)["status"]["message"], "Sandbox container exited with code 137.");
  EXPECT_EQ(PendingView(Running())["status"]["state"], "Pending");
}

TEST(Page, CutsAndCounts) {
  const std::vector<Json> items = {1, 2, 3, 4, 5};
  EXPECT_EQ(PageView(items, 1, 2)["items"].dump(), "[1,2]");
  EXPECT_EQ(PageView(items, 3, 2)["items"].dump(), "[5]");
  EXPECT_EQ(PageView(items, 3, 2)["pagination"].dump(),
            R"({"page":3,"pageSize":2,"totalItems":5,"totalPages":3,"hasNextPage":false})");
  EXPECT_EQ(PageView(items, INT64_MAX, 200)["items"].dump(), "[]");
  EXPECT_EQ(PageView({}, 1, 20)["pagination"]["totalPages"], 0);
}

TEST(Logs, TailAndSince) {
  const std::string log =
      "2026-11-29T16:46:38.000000000Z one\n"
      "2026-11-29T16:46:39.000000000Z two\n"
      "2026-11-29T16:46:40.000000000Z three\n";
  EXPECT_EQ(LogTail(log, 2, std::nullopt), log.substr(log.find("2026-11-29T16:46:39")));
  EXPECT_EQ(LogTail(log, 10, std::nullopt), log);
  EXPECT_EQ(LogTail(log, 10, absl::FromUnixSeconds(1795970800)),
            "2026-11-29T16:46:40.000000000Z three\n");
  EXPECT_EQ(LogTail("", 10, std::nullopt), "");
  EXPECT_EQ(LogTail("no end", 10, std::nullopt), "no end");
}

TEST(Inspect, SaysWhatStandsInForTheImage) {
  SandboxRecord record = Running();
  record.process.isolation = runtime::Isolation::kBwrap;
  record.resource_limits = {{"cpu", "500m"}, {"memory", "256Mi"}};
  EXPECT_THAT(
      InspectText(record),
      AllOf(HasSubstr("  opensandbox.io/isolation=bwrap\n"),
            HasSubstr("  opensandbox.io/root=the host's, read as image base\n"),
            HasSubstr("  opensandbox.io/manual-cleanup=true\n"),
            HasSubstr("  CPU:          0.50 cores\n"), HasSubstr("  Memory:       256 MiB\n"),
            HasSubstr("Environment:\n  A=1"), Not(HasSubstr("OOM"))));
  record.root = "/images/base";
  record.expires_at = absl::FromUnixSeconds(1795970799);
  EXPECT_THAT(InspectText(record), AllOf(HasSubstr("opensandbox.io/root=/images/base\n"),
                                         HasSubstr("expires-at=2026-11-29T16:46:39Z\n")));
}

TEST(Events, OfAnEndedSandbox) {
  SandboxRecord record = Running();
  record.ended = runtime::ExitStatus{3, 1795970797000000000};
  EXPECT_THAT(EventsText(record),
              AllOf(HasSubstr("Status:     exited\n"),
                    HasSubstr("Finished:   2026-11-29T16:46:37Z\n"), HasSubstr("Exit Code:  3")));
}

TEST(Summary, HasItsSections) {
  EXPECT_THAT(SummaryText(Running(), "the log"),
              AllOf(HasSubstr("\nINSPECT\n"), HasSubstr("\nEVENTS\n"), HasSubstr("\nLOGS\n"),
                    HasSubstr("the log\n")));
}

}  // namespace
}  // namespace bridge::local::lifecycle
