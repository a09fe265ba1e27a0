// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/file_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "tests/server/temp_folder.h"

namespace bridge::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Collects what a watch does and lets a test wait for it.
class Events {
 public:
  void Add(std::string event) {
    std::lock_guard<std::mutex> lock(mu_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  std::vector<std::string> WaitFor(size_t n) {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return events_.size() >= n; });
    return events_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
};

FileWatch::Report ReportTo(Events& events) {
  return [&events](std::string_view flag, const absl::Status& status) {
    events.Add(std::string(flag) + (status.ok() ? " ok" : " " + std::string(status.message())));
  };
}

TEST(ReadSecretFile, ReadsOrSaysWhy) {
  TempFolder folder;
  EXPECT_EQ(*ReadSecretFile(folder.Write("f", std::string("a\0b\n", 4)), "f"),
            std::string("a\0b\n", 4));
  EXPECT_EQ(*ReadSecretFile(folder.Write("empty", ""), "f"), "");
  const auto missing = ReadSecretFile(folder.path("missing"), "api_key_file");
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("No such file"));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("api_key_file"));
  EXPECT_FALSE(ReadSecretFile(folder.path("."), "f").ok());
  EXPECT_FALSE(ReadSecretFile(folder.Write("big", std::string((1 << 20) + 1, 'x')), "f").ok());
  EXPECT_TRUE(ReadSecretFile(folder.Write("most", std::string(1 << 20, 'x')), "f").ok());
}

TEST(FileWatch, AppliesAChangeOnce) {
  TempFolder folder;
  Events applied, reported;
  FileWatch watch(absl::Hours(1), ReportTo(reported));
  const std::string file = folder.Write("f", "one");
  watch.Add("flag", file, "one", [&](const std::string& content) {
    applied.Add(content);
    return absl::OkStatus();
  });
  watch.Start();
  watch.Poke();  // nothing new
  folder.Write("f", "two");
  watch.Poke();
  EXPECT_THAT(applied.WaitFor(1), ElementsAre("two"));
  EXPECT_THAT(reported.WaitFor(1), ElementsAre("flag ok"));
  folder.Write("f", "three");
  watch.Poke();
  EXPECT_THAT(applied.WaitFor(2), ElementsAre("two", "three"));
}

TEST(FileWatch, ABadOrMissingFileIsReportedOnceAndRecoversByItself) {
  TempFolder folder;
  Events applied, reported;
  FileWatch watch(absl::Milliseconds(1), ReportTo(reported));
  const std::string file = folder.Write("f", "one");
  watch.Add("flag", file, "one", [&](const std::string& content) {
    if (content == "bad") return InvalidField("flag", "is bad");
    applied.Add(content);
    return absl::OkStatus();
  });
  watch.Start();
  folder.Write("f", "bad");
  reported.WaitFor(1);
  ::unlink(file.c_str());
  reported.WaitFor(2);
  folder.Write("f", "two");
  applied.WaitFor(1);
  const auto reports = reported.WaitFor(3);
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_THAT(reports[0], HasSubstr("is bad"));
  EXPECT_THAT(reports[1], HasSubstr("No such file"));
  EXPECT_EQ(reports[2], "flag ok");
}

// A file that goes away and comes back as it was changes nothing.
TEST(FileWatch, TheSameContentAgainIsNoChange) {
  TempFolder folder;
  Events applied, reported;
  FileWatch watch(absl::Milliseconds(1), ReportTo(reported));
  const std::string file = folder.Write("f", "one");
  watch.Add("flag", file, "one", [&](const std::string& content) {
    applied.Add(content);
    return absl::OkStatus();
  });
  watch.Start();
  ::unlink(file.c_str());
  reported.WaitFor(1);
  folder.Write("f", "one");
  folder.Write("f", "two");
  EXPECT_THAT(applied.WaitFor(1), ElementsAre("two"));
}

}  // namespace
}  // namespace bridge::testing
