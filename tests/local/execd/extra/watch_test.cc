// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/local/execd/daemon_fixture.h"
#include "tests/local/execd/folder_fixture.h"

namespace bridge::local::execd::extra {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using Kind = WatchEvent::Kind;

class WatchTest : public FolderTest {
 protected:
  // "created file a" for all events until `last` was seen (all that come within a moment without
  // it).
  std::vector<std::string> Events(Watch& watch, const std::string& last = "") {
    std::vector<std::string> out;
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (absl::Now() < end) {
      pollfd ready{watch.fd(), POLLIN, 0};
      if (poll(&ready, 1, last.empty() ? 50 : 1000) == 0 && last.empty()) break;
      std::vector<WatchEvent> events;
      const auto failure = watch.Read(&events);
      EXPECT_FALSE(failure.has_value());
      for (const WatchEvent& event : events) out.push_back(Show(event));
      if (!last.empty() && std::find(out.begin(), out.end(), last) != out.end()) break;
    }
    return out;
  }
  std::string Show(const WatchEvent& event) const {
    static constexpr const char* kNames[] = {"created", "modified", "attributes", "deleted",
                                             "moved",   "overflow", "gone"};
    const auto relative = [&](const std::string& path) {
      return path == root_ ? "." : path.empty() ? "" : path.substr(root_.size() + 1);
    };
    std::string out =
        std::string(kNames[static_cast<int>(event.kind)]) + " " + std::string(event.type) + " ";
    if (!event.old_path.empty()) out += relative(event.old_path) + ">";
    return out + relative(event.path);
  }
};

TEST_F(WatchTest, FilesOfOneDirectory) {
  Write("old", "x");
  Watch watch;
  ASSERT_FALSE(watch.Open(root_, false));
  EXPECT_THAT(Events(watch), IsEmpty());
  Write("f", "x");
  EXPECT_THAT(Events(watch), ElementsAre("created file f", "modified file f"));
  chmod(At("f").c_str(), 0600);
  EXPECT_THAT(Events(watch), ElementsAre("attributes file f"));
  symlink("f", At("l").c_str());
  mkdir(At("d").c_str(), 0755);
  EXPECT_THAT(Events(watch), ElementsAre("created symlink l", "created directory d"));
  Write("d/below", "x");
  EXPECT_THAT(Events(watch), Not(Contains(HasSubstr("below"))));
  rename(At("f").c_str(), At("g").c_str());
  EXPECT_THAT(Events(watch), ElementsAre("moved file f>g"));
  unlink(At("g").c_str());
  EXPECT_THAT(Events(watch), Contains("deleted unknown g"));
}

TEST_F(WatchTest, ManySmallWritesAreFewEvents) {
  Watch watch;
  ASSERT_FALSE(watch.Open(root_, false));
  {
    std::ofstream out(At("f"));
    for (int i = 0; i < 1000; ++i) out << "x" << std::flush;
  }
  EXPECT_LE(Events(watch).size(), 3u);
}

TEST_F(WatchTest, AllLevels) {
  fs::create_directories(At("a/b"));
  Watch watch;
  ASSERT_FALSE(watch.Open(root_, true));
  Write("a/b/f", "x");
  EXPECT_THAT(Events(watch), ElementsAre("created file a/b/f", "modified file a/b/f"));
  fs::create_directories(At("new/deep/er"));
  Write("new/deep/er/f", "x");
  EXPECT_THAT(Events(watch, "created file new/deep/er/f"),
              IsSupersetOf({"created directory new", "created directory new/deep",
                            "created directory new/deep/er"}));
  fs::rename(At("a"), At("c"));
  EXPECT_THAT(Events(watch, "moved directory a>c"), Contains("moved directory a>c"));
  Write("c/b/g", "x");
  EXPECT_THAT(Events(watch), ElementsAre("created file c/b/g", "modified file c/b/g"));
  fs::remove_all(At("c"));
  EXPECT_THAT(Events(watch, "deleted directory c"),
              IsSupersetOf({"deleted unknown c/b/g", "deleted directory c/b"}));
}

TEST_F(WatchTest, InAndOutOfSight) {
  const ::bridge::testing::TempFolder other;
  fs::create_directories(other.path("tree/sub"));
  std::ofstream(other.path("tree/sub/f")) << "x";
  Watch watch;
  ASSERT_FALSE(watch.Open(root_, true));
  fs::rename(other.path("tree"), At("in"));
  EXPECT_THAT(Events(watch, "created file in/sub/f"), Contains("created directory in/sub"));
  fs::rename(At("in"), other.path("out"));
  EXPECT_THAT(Events(watch, "deleted directory in"), Contains("deleted directory in"));
  std::ofstream(other.path("out/sub/g")) << "x";
  EXPECT_THAT(Events(watch), IsEmpty());
}

TEST_F(WatchTest, LinksAreNotFollowed) {
  fs::create_directories(At("d"));
  Watch watch;
  ASSERT_FALSE(watch.Open(root_, true));
  symlink("d", At("l").c_str());
  EXPECT_THAT(Events(watch), ElementsAre("created symlink l"));
  Write("l/f", "x");
  EXPECT_THAT(Events(watch), ElementsAre("created file d/f", "modified file d/f"));
}

TEST_F(WatchTest, NothingIsLeftOutOfNewDirectories) {
  Watch watch;
  ASSERT_FALSE(watch.Open(root_, true));
  for (int i = 0; i < 50; ++i) {
    const std::string directory = "d" + std::to_string(i) + "/x/y";
    fs::create_directories(At(directory));
    Write(directory + "/f", "x");
  }
  const auto events = Events(watch, "created file d49/x/y/f");
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(events, Contains("created file d" + std::to_string(i) + "/x/y/f"));
  }
}

TEST_F(WatchTest, TheEnd) {
  mkdir(At("d").c_str(), 0755);
  Watch watch;
  ASSERT_FALSE(watch.Open(At("d"), false));
  rmdir(At("d").c_str());
  std::vector<WatchEvent> events;
  ASSERT_FALSE(watch.Read(&events));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().kind, Kind::kGone);
  EXPECT_EQ(events.back().path, At("d"));
  Watch moved;
  mkdir(At("e").c_str(), 0755);
  ASSERT_FALSE(moved.Open(At("e"), false));
  rename(At("e").c_str(), At("e2").c_str());
  events.clear();
  ASSERT_FALSE(moved.Read(&events));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().kind, Kind::kGone);
}

TEST_F(WatchTest, WhatCannotBeWatched) {
  Write("f", "x");
  EXPECT_EQ(Watch().Open(At("none"), false)->code, "NOT_FOUND");
  EXPECT_EQ(Watch().Open(At("f"), false)->code, "NOT_A_DIRECTORY");
}

TEST(WatchEvent, Lines) {
  EXPECT_EQ((WatchEvent{Kind::kCreated, "/a", "", "file"}).Line(),
            "{\"event\":\"created\",\"path\":\"/a\",\"type\":\"file\"}\n");
  EXPECT_EQ((WatchEvent{Kind::kMoved, "/b\xff", "/a", "directory"}).Line(),
            "{\"event\":\"moved\",\"path\":\"/b\\ufffd\",\"path_b64\":\"L2L/\",\"old_path\":\"/a\","
            "\"type\":\"directory\"}\n");
  EXPECT_EQ((WatchEvent{Kind::kOverflow, "", "", ""}).Line(), "{\"event\":\"overflow\"}\n");
}

// The route.
TEST_F(WatchTest, OverHttp) {
  const auto daemon = StartDaemon();
  const Caller caller(*daemon);
  EXPECT_EQ(caller.Get("/v1/watch?path=/nope").status, 404);
  EXPECT_EQ(caller.Get("/v1/watch?path=relative").status, 400);
  auto client = http::ClientExchange::Connect("127.0.0.1", caller.port(), kLong);
  (void)(*client)->SendHead("GET", "/v1/watch?recursive=1&heartbeat_ms=100&path=" + root_,
                            {{"Host", "x"}});
  const auto head = (*client)->ReadHead(kLong);
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->headers.Get("Content-Type"), "application/x-ndjson");
  std::string all;
  const auto read_until = [&](const std::string& text) {
    char buffer[4096];
    while (all.find(text) == std::string::npos) {
      const auto n = (*client)->ReadBody(buffer, sizeof(buffer), kLong);
      ASSERT_TRUE(n.ok() && *n > 0) << all;
      all.append(buffer, *n);
    }
  };
  read_until("{\"event\":\"ready\",\"path\":\"" + root_ + "\"}\n");
  Write("f", "x");
  read_until("{\"event\":\"created\",\"path\":\"" + root_ + "/f\",\"type\":\"file\"}\n");
  read_until("{\"event\":\"heartbeat\"}\n");
  fs::remove_all(root_);
  read_until("{\"event\":\"gone\",\"path\":\"" + root_ + "\"}\n");
  char byte;
  const auto end = (*client)->ReadBody(&byte, 1, kLong);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(*end, 0u);
}

}  // namespace
}  // namespace bridge::local::execd::extra
