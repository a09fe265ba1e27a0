// SPDX-License-Identifier: Apache-2.0
//
// Files through real daemon processes: the same promises on a stock daemon and on our own.
#include "bridge/opensandbox/file_client.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "bridge/base/error.h"
#include "tests/opensandbox/file_fixture.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using R = ErrorReason;
namespace fs = std::filesystem;

INSTANTIATE_TEST_SUITE_P(Daemons, Files, EveryDaemon(), WayName);

TEST_P(Files, StatTellsWhatIsThere) {
  Put("f", "12345");
  chmod(P("f").c_str(), 0640);
  fs::create_directory(P("dir"));
  fs::create_symlink("f", P("link"));
  mkfifo(P("pipe").c_str(), 0600);
  auto info = Stat(P("f"));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->type, FileType::kFile);
  EXPECT_EQ(info->size, 5);
  EXPECT_EQ(info->mode, 0640u);
  EXPECT_GT(info->modified_at, absl::Now() - absl::Minutes(1));
  EXPECT_EQ(Stat(P("dir"))->type, FileType::kDirectory);
  EXPECT_EQ(Stat(P("pipe"))->type, FileType::kOther);
  info = Stat(P("link"));
  EXPECT_EQ(info->type, FileType::kSymlink);
  EXPECT_EQ(info->symlink_target, "f");
  info = Stat(P("link"), /*follow=*/true);
  EXPECT_EQ(info->type, FileType::kFile);
  EXPECT_EQ(info->path, P("link"));
  EXPECT_EQ(ReasonOf(Stat(P("nope")).status()), R::ERROR_REASON_PATH_NOT_FOUND);
}

// A tool that took one for an option would do something else, or nothing, and succeed.
TEST_P(Files, OwnersAreNoOptions) {
  ASSERT_TRUE(Write({.path = P("f")}, "old").ok());
  for (const char* owner : {"--help", "--version", "-R", "-1"}) {
    for (const absl::Status& status :
         {Write({.path = P("f"), .owner = owner}, "new").status(),
          SetAttributes(P("f"), {.owner = owner}).status(),
          SetAttributes(P("f"), {.owner = owner, .follow_symlink = true}).status(),
          MakeDirectory(P("d"), {.owner = owner}).status()}) {
      EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_UNKNOWN_USER) << owner << ": " << status;
    }
  }
  EXPECT_EQ(*Read(P("f")), "old");
  EXPECT_FALSE(fs::exists(P("d")));
}

TEST_P(Files, OddNamesAreLiteral) {
  for (const std::string name : {"a b",
                                 "a+b",
                                 "100%",
                                 "a%20b",
                                 "q?x=1&y",
                                 "h#1",
                                 "\xe6\x97\xa5\xe6\x9c\xac.txt",
                                 "\xf0\x9f\x98\x80",
                                 "re\"port",
                                 "end\\",
                                 ";name=x",
                                 "$(touch pwned)",
                                 "`id`",
                                 "-rf",
                                 "it's",
                                 "price_$5",
                                 "$HOME",
                                 "${PATH}x",
                                 "~",
                                 "l1\nl2"}) {
    const auto written = Write({.path = P(name)}, "content of " + name);
    ASSERT_TRUE(written.ok()) << name << ": " << written.status();
    EXPECT_EQ(ReadAll(P(name)), "content of " + name) << name;
    EXPECT_EQ(Stat(P(name))->path, P(name));
    EXPECT_EQ(*Read(P(name)), "content of " + name) << name;
    EXPECT_EQ(*Read(P(name), 3, 4), "tent") << name;
    const auto list = List(dir, 1);
    ASSERT_TRUE(list.ok()) << list.status();
    ASSERT_EQ(list->size(), 1u) << name;
    EXPECT_EQ((*list)[0].path, P(name));
    EXPECT_TRUE(Move(P(name), P(name + ".moved")).ok()) << name;
    EXPECT_TRUE(Remove(P(name + ".moved")).ok()) << name;
    EXPECT_THAT(Names(), IsEmpty()) << name;
  }
}

TEST_P(Files, DirectoriesOfOddNamesAreLiteral) {
  for (const std::string name : {"$HOME", "a $b\nc", "${PATH}"}) {
    const std::string in = name + "/sub";
    ASSERT_TRUE(Write({.path = P(in + "/f"), .mode = 0600, .create_parents = true}, "12").ok())
        << name;
    ASSERT_TRUE(Write({.path = P(in + "/x$y"), .atomic = false}, "in place").ok()) << name;
    EXPECT_EQ(ReadAll(P(in + "/x$y")), "in place");
    EXPECT_EQ(ModeOf(P(in + "/f")), 0600u);
    Put(in + "/l1\nl2", "");
    Put(in + "/odd\xff", "");
    fs::create_symlink("f", P(in + "/link"));
    const auto list = List(P(name), kAllLevels);
    ASSERT_TRUE(list.ok()) << list.status();
    std::vector<std::string> paths;
    for (const FileInfo& info : *list) {
      paths.push_back(info.path_bytes.empty() ? info.path : info.path_bytes);
    }
    EXPECT_THAT(paths, ElementsAre(P(in), P(in + "/f"), P(in + "/l1\nl2"), P(in + "/link"),
                                   P(in + "/odd\xff"), P(in + "/x$y")));
    EXPECT_EQ((*list)[0].type, FileType::kDirectory);
    EXPECT_EQ((*list)[1].size, 2);
    EXPECT_EQ((*list)[1].mode, 0600u);
    EXPECT_EQ((*list)[3].type, FileType::kSymlink);
    EXPECT_THAT(*List(P(in), 1), ::testing::SizeIs(5));
    EXPECT_EQ(*Read(P(in + "/link")), "12");
    EXPECT_TRUE(Remove(P(name), /*recursive=*/true).ok());
    EXPECT_THAT(Names(), IsEmpty()) << name;
  }
  bench.Settle();
  for (const auto& entry : fs::directory_iterator(execd.tmpdir())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".sandbox-bridge")) << entry;
  }
}

TEST_P(Files, WhatDoesNotKnowItsSizeIsReadToItsEnd) {
  const std::string version = ReadAll("/proc/version");
  ASSERT_FALSE(version.empty());
  auto read = Read("/proc/version");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, version);
  EXPECT_EQ(*Read("/proc/version", 6, 4), version.substr(6, 4));
  EXPECT_EQ(*Read("/proc/version", 100'000), "");
  // Claims 4096 bytes and has a few; not every kernel has it.
  const std::string flag = "/sys/kernel/mm/transparent_hugepage/use_zero_page";
  if (fs::exists(flag)) {
    read = Read(flag);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, ReadAll(flag));
  }
  EXPECT_EQ(ReasonOf(Read("/dev/zero").status()), R::ERROR_REASON_PATH_REJECTED);
}

TEST_P(Files, WrongKindsOfThings) {
  fs::create_directory(P("dir"));
  Put("file", "x");
  mkfifo(P("pipe").c_str(), 0600);
  EXPECT_EQ(ReasonOf(Read(P("dir")).status()), R::ERROR_REASON_IS_A_DIRECTORY);
  EXPECT_EQ(ReasonOf(Write({.path = P("dir")}, "x").status()), R::ERROR_REASON_IS_A_DIRECTORY);
  EXPECT_EQ(ReasonOf(List(P("file"), 1).status()), R::ERROR_REASON_NOT_A_DIRECTORY);
  EXPECT_EQ(ReasonOf(Read(P("pipe")).status()), R::ERROR_REASON_PATH_REJECTED);
  EXPECT_EQ(ReasonOf(Read(P("nope")).status()), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_EQ(ReasonOf(List(P("nope"), 1).status()), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_EQ(ReasonOf(Stat(P("file/x")).status()), R::ERROR_REASON_NOT_A_DIRECTORY);
}

TEST_P(Files, ReadsWindows) {
  std::string content;
  for (int i = 0; i < 700'003; ++i) content += static_cast<char>(i * 31);
  Put("f", content);
  for (const auto& [offset, length] : {std::pair<int64_t, int64_t>{0, 1},
                                       {1, 0},
                                       {262'143, 2},
                                       {700'002, 1},
                                       {700'002, 100},
                                       {700'003, 1},
                                       {900'000, 5},
                                       {0, 700'003},
                                       {5, 600'000}}) {
    const auto read = Read(P("f"), offset, length);
    ASSERT_TRUE(read.ok()) << read.status();
    const size_t from = std::min<size_t>(static_cast<size_t>(offset), content.size());
    EXPECT_TRUE(*read == content.substr(from, static_cast<size_t>(length))) << offset;
  }
  Put("empty", "");
  EXPECT_EQ(*Read(P("empty")), "");
  EXPECT_EQ(*Read(P("empty"), 0, 10), "");
  EXPECT_EQ(*Read(P("empty"), 1), "");
}

TEST_P(Files, ReadsFarIntoASparseFile) {
  Put("big", "");
  fs::resize_file(P("big"), int64_t{5} << 30);
  std::fstream(P("big"), std::ios::in | std::ios::out).seekp(4294967299).write("X", 1);
  EXPECT_EQ(*Read(P("big"), 4294967299, 1), "X");
  EXPECT_EQ(Stat(P("big"))->size, int64_t{5} << 30);
}

TEST_P(Files, ListsLevels) {
  fs::create_directories(P("a/b/c"));
  Put("a/f", "x");
  Put("z", "x");
  fs::create_directory_symlink("a", P("link"));
  const auto paths = [](const absl::StatusOr<std::vector<FileInfo>>& list) {
    std::vector<std::string> names;
    if (list.ok()) {
      for (const FileInfo& info : *list) names.push_back(info.path);
    }
    return names;
  };
  EXPECT_THAT(paths(List(dir, 1)), ElementsAre(P("a"), P("link"), P("z")));
  EXPECT_THAT(paths(List(dir, 2)), ElementsAre(P("a"), P("a/b"), P("a/f"), P("link"), P("z")));
  EXPECT_THAT(paths(List(dir, kAllLevels)),
              ElementsAre(P("a"), P("a/b"), P("a/b/c"), P("a/f"), P("link"), P("z")));
  EXPECT_THAT(paths(List(P("link"), 1)), ElementsAre(P("link/b"), P("link/f")));
  EXPECT_THAT(paths(List(P("a/b/c"), 1)), IsEmpty());
}

TEST_P(Files, ListsManyEntriesAndNamesThatAreNotText) {
  for (int i = 0; i < 5000; ++i) Put("n" + std::to_string(i), "");
  Put("\xff\xfe", "");
  const auto list = List(dir, 1);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->size(), 5001u);
  int inexact = 0, exact = 0;
  for (const FileInfo& info : *list) {
    inexact += info.path_inexact ? 1 : 0;
    exact += info.path_bytes == P("\xff\xfe") && info.path == P("\\xff\\xfe") ? 1 : 0;
  }
  EXPECT_EQ(inexact, GetParam().flags.empty() ? 0 : 1);
  EXPECT_EQ(exact, GetParam().flags.empty() ? 1 : 0);
}

TEST_P(Files, WatchesWhereTheDaemonCan) {
  const bool own = GetParam().flags.empty();
  fs::create_directory(P("sub"));
  std::vector<std::string> seen;
  const absl::Status end = RunTask(bench.loop, [&]() -> Task<absl::Status> {
    auto watcher = co_await files.Watch(bench.context, bench.box, dir, true, absl::Seconds(1));
    if (!watcher.ok()) co_return watcher.status();
    bool acted = false;
    while (true) {
      auto changes = co_await (*watcher)->Next();
      if (!changes.ok()) co_return changes.status();
      for (const FileChange& change : *changes) {
        using Kind = FileChange::Kind;
        if (change.kind == Kind::kReady) {
          EXPECT_EQ(change.path, dir);
        }
        if (change.kind == Kind::kCreated) seen.push_back("+" + change.path);
        if (change.kind == Kind::kMoved) seen.push_back(change.old_path + ">" + change.path);
        if (change.kind == Kind::kDeleted) seen.push_back("-" + change.path_bytes);
      }
      if (std::exchange(acted, true)) continue;
      Put("sub/$new", "x");
      fs::rename(P("sub/$new"), P("moved"));
      Put("odd\xff", "");
      fs::remove(P("odd\xff"));
      fs::remove_all(dir);
    }
  });
  if (!own) {
    EXPECT_EQ(ReasonOf(end), R::ERROR_REASON_UNSUPPORTED_FEATURE);
    EXPECT_EQ(MetadataOf(end).at("feature"), "files.watch");
    return;
  }
  EXPECT_EQ(ReasonOf(end), R::ERROR_REASON_PATH_NOT_FOUND) << end;
  EXPECT_THAT(seen, ::testing::IsSupersetOf({"+" + P("sub/$new"), P("sub/$new") + ">" + P("moved"),
                                             "+" + P("odd\\xff"), "-" + P("odd\xff")}));
}

TEST_P(Files, WatchRefusesWhatIsNoDirectory) {
  if (!GetParam().flags.empty()) GTEST_SKIP() << "a stock daemon refuses every watch";
  Put("f", "");
  const auto watch = [&](const std::string& path) {
    return RunTask(bench.loop, [&]() -> Task<absl::Status> {
      auto watcher = co_await files.Watch(bench.context, bench.box, path, false, absl::Hours(1));
      co_return watcher.status();
    });
  };
  EXPECT_EQ(ReasonOf(watch(P("none"))), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_EQ(ReasonOf(watch(P("f"))), R::ERROR_REASON_NOT_A_DIRECTORY);
}

TEST(FileChange, LinesOfTheDaemon) {
  // Those of docs/execd-extras.md.
  auto change = ParseFileChange(R"({"event":"created","path":"/a/b","type":"symlink"})");
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->kind, FileChange::Kind::kCreated);
  EXPECT_EQ(change->path, "/a/b");
  EXPECT_EQ(change->type, FileType::kSymlink);
  change = ParseFileChange(R"({"event":"deleted","path":"/a","type":"unknown","later":{}})");
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_FALSE(change->type.has_value());
  EXPECT_EQ(ParseFileChange(R"({"event":"heartbeat"})")->kind, FileChange::Kind::kKeepalive);
  EXPECT_EQ(ParseFileChange(R"({"event":"overflow"})")->kind, FileChange::Kind::kOverflow);
  EXPECT_EQ(ReasonOf(ParseFileChange(R"({"event":"gone","path":"/a"})").status()),
            R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_EQ(ReasonOf(ParseFileChange(R"({"event":"error","error":{"code":"TOO_MANY"}})").status()),
            R::ERROR_REASON_QUOTA_EXCEEDED);
  for (const char* line : {"", "[]", "{", R"({"event":"new"})", R"({"event":7})"}) {
    EXPECT_EQ(ReasonOf(ParseFileChange(line).status()), R::ERROR_REASON_UPSTREAM_PROTOCOL) << line;
  }
}

TEST(NormalPath, IsTheTextsOwnMeaning) {
  for (const auto& [path, normal] : {std::pair{"/", "/"},
                                     {"/a", "/a"},
                                     {"/a/", "/a"},
                                     {"//a///b", "/a/b"},
                                     {"/a/./b", "/a/b"},
                                     {"/a/../b", "/b"},
                                     {"/../../a", "/a"},
                                     {"/a/b/../..", "/"},
                                     {"/...", "/..."},
                                     {"/a/.b/..c", "/a/.b/..c"}}) {
    EXPECT_EQ(NormalPath(path), normal) << path;
  }
}

}  // namespace
}  // namespace bridge
