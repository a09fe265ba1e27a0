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
#include "tests/fakes/execd_process.h"
#include "tests/opensandbox/exec_fixture.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using R = ErrorReason;
namespace fs = std::filesystem;

struct Way {
  const char* name;
  std::vector<std::string> flags;
};

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

unsigned ModeOf(const std::string& path) {
  struct stat st;
  return lstat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0xffff;
}

class Files : public ::testing::TestWithParam<Way> {
 protected:
  Files() : execd(GetParam().flags), bench(execd.url()) {
    dir = execd.tmpdir() + "/d";
    fs::create_directory(dir);
  }
  std::string P(const std::string& name) const { return dir + "/" + name; }
  void Put(const std::string& name, const std::string& content) {
    std::ofstream(P(name), std::ios::binary) << content;
  }
  // Names in the directory, ours included.
  std::vector<std::string> Names() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir)) names.insert(entry.path().filename());
    return {names.begin(), names.end()};
  }

  absl::StatusOr<FileInfo> Stat(const std::string& path, bool follow = false) {
    return RunTask(bench.loop, [&] { return files.Stat({}, {"box", ""}, path, follow); });
  }
  absl::StatusOr<FileWritten> Write(FileWrite write, const std::string& content) {
    return RunTask(bench.loop, [&]() -> Task<absl::StatusOr<FileWritten>> {
      auto writer = co_await files.Write(bench.context, bench.box, std::move(write));
      if (!writer.ok()) co_return writer.status();
      for (size_t i = 0; i < content.size(); i += 100'000) {
        const absl::Status sent = co_await (*writer)->Send(content.substr(i, 100'000));
        if (!sent.ok()) co_return sent;
      }
      co_return co_await (*writer)->Finish();
    });
  }
  absl::StatusOr<std::string> Read(const std::string& path, int64_t offset = 0,
                                   std::optional<int64_t> length = std::nullopt) {
    return RunTask(bench.loop, [&]() -> Task<absl::StatusOr<std::string>> {
      auto reader = co_await files.Read(bench.context, bench.box, path, offset, length);
      if (!reader.ok()) co_return reader.status();
      std::string all, chunk;
      while (true) {
        absl::StatusOr<bool> more = co_await (*reader)->Next(&chunk);
        if (!more.ok()) co_return more.status();
        if (!*more) co_return all;
        EXPECT_LE(chunk.size(), FileReader::kChunkBytes);
        all += chunk;
      }
    });
  }
  absl::StatusOr<std::vector<FileInfo>> List(const std::string& path, int depth) {
    return RunTask(bench.loop, [&]() -> Task<absl::StatusOr<std::vector<FileInfo>>> {
      auto lister = co_await files.List(bench.context, bench.box, path, depth);
      if (!lister.ok()) co_return lister.status();
      std::vector<FileInfo> all;
      while (true) {
        auto batch = co_await (*lister)->Next(1000);
        if (!batch.ok()) co_return batch.status();
        if (batch->empty()) co_return all;
        for (FileInfo& info : *batch) all.push_back(std::move(info));
      }
    });
  }
  absl::Status Remove(const std::string& path, bool recursive = false) {
    return RunTask(bench.loop, [&] { return files.Remove({}, {"box", ""}, path, recursive); });
  }
  absl::StatusOr<bool> Move(const std::string& from, const std::string& to, bool overwrite = false,
                            bool parents = false) {
    return RunTask(bench.loop,
                   [&] { return files.Move({}, {"box", ""}, from, to, overwrite, parents); });
  }
  absl::StatusOr<bool> MakeDirectory(const std::string& path, DirectoryMake make = {}) {
    return RunTask(bench.loop, [&] { return files.MakeDirectory({}, {"box", ""}, path, make); });
  }

  ExecdProcess execd;
  ExecBench bench;
  FileClient files{bench.daemon, bench.background};
  std::string dir;
};

INSTANTIATE_TEST_SUITE_P(Daemons, Files,
                         ::testing::Values(Way{"stock110", {"--compat=1.1.0", "--extras=false"}},
                                           Way{"current", {"--compat=current", "--extras=false"}},
                                           Way{"own", {}}),
                         [](const auto& info) { return info.param.name; });

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

TEST_P(Files, WriteThenRead) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  std::string large;
  while (large.size() < 3'000'000) large += all;
  for (const std::string& content : {std::string(), all, large, std::string("--boundary\r\n--")}) {
    const auto written = Write({.path = P("f")}, content);
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_EQ(written->size, static_cast<int64_t>(content.size()));
    EXPECT_TRUE(written->atomic);
    Sha256 digest;
    digest.Update(content);
    EXPECT_EQ(written->sha256, digest.FinishHex());
    EXPECT_TRUE(*Read(P("f")) == content);
  }
  EXPECT_THAT(Names(), ElementsAre("f"));
}

TEST_P(Files, ModesOfNewAndExistingFiles) {
  ASSERT_TRUE(Write({.path = P("new")}, "x").ok());
  EXPECT_EQ(ModeOf(P("new")), 0644u);
  ASSERT_TRUE(Write({.path = P("given"), .mode = 0640}, "x").ok());
  EXPECT_EQ(ModeOf(P("given")), 0640u);
  Put("old", "x");
  chmod(P("old").c_str(), 0750);
  ASSERT_TRUE(Write({.path = P("old")}, "y").ok());
  EXPECT_EQ(ModeOf(P("old")), 0750u);
  ASSERT_TRUE(Write({.path = P("old"), .mode = 0600}, "y").ok());
  EXPECT_EQ(ModeOf(P("old")), 0600u);
  ASSERT_TRUE(Write({.path = P("sticky"), .mode = 04755}, "y").ok());
  EXPECT_EQ(ModeOf(P("sticky")), 04755u);
}

TEST_P(Files, OwnersByNameAndNumber) {
  if (geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  const auto owner = [this](const char* name) {
    struct stat st;
    lstat(P(name).c_str(), &st);
    return std::to_string(st.st_uid) + ":" + std::to_string(st.st_gid);
  };
  ASSERT_TRUE(
      Write({.path = P("a"), .mode = 0600, .owner = "nobody", .group = "nogroup"}, "s").ok());
  EXPECT_EQ(owner("a"), "65534:65534");
  ASSERT_TRUE(Write({.path = P("a")}, "kept").ok());
  EXPECT_EQ(owner("a"), "65534:65534");
  EXPECT_EQ(ModeOf(P("a")), 0600u);
  ASSERT_TRUE(Write({.path = P("b"), .owner = "4242", .group = "4243"}, "s").ok());
  EXPECT_EQ(owner("b"), "4242:4243");
  EXPECT_EQ(Stat(P("b"))->owner, "4242") << "not a word for an account without a name";
  fs::create_directory(P("$d"));
  ASSERT_TRUE(Write({.path = P("$d/b"), .owner = "4242"}, "s").ok());
  EXPECT_EQ(Stat(P("$d/b"))->owner, "4242");
  EXPECT_EQ((*List(P("$d"), 1))[0].owner, "4242");
  fs::remove_all(P("$d"));
  const auto refused = Write({.path = P("c"), .mode = 0600, .owner = "no-such-user"}, "secret");
  EXPECT_EQ(ReasonOf(refused.status()), R::ERROR_REASON_UNKNOWN_USER) << refused.status();
  bench.Settle();
  EXPECT_THAT(Names(), ElementsAre("a", "b")) << "no readable trace of the secret";
}

TEST_P(Files, ParentsAreMadeOnlyWhenAskedFor) {
  EXPECT_EQ(ReasonOf(Write({.path = P("x/y/f")}, "c").status()), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_FALSE(fs::exists(P("x")));
  ASSERT_TRUE(Write({.path = P("x/y/f"), .mode = 0600, .create_parents = true}, "c").ok());
  EXPECT_EQ(ReadAll(P("x/y/f")), "c");
}

TEST_P(Files, LinksAreWrittenThrough) {
  fs::create_directory(P("sub"));
  Put("sub/target", "old");
  fs::create_symlink("sub/target", P("link"));
  ASSERT_TRUE(Write({.path = P("link")}, "new").ok());
  EXPECT_TRUE(fs::is_symlink(P("link")));
  EXPECT_EQ(ReadAll(P("sub/target")), "new");
  EXPECT_EQ(*Read(P("link")), "new");
}

TEST_P(Files, PreconditionsHoldOrNothingChanges) {
  constexpr char kDigestOfOld[] =  // sha256 of "old"
      "6a45c2b32ed9e0b14fb1d24a3c0f2d44b6d4ca0ea6f8dca5b1b41c2f44e7e1a0";
  Put("f", "old");
  EXPECT_EQ(ReasonOf(Write({.path = P("f"), .if_absent = true}, "new").status()),
            R::ERROR_REASON_PRECONDITION_FAILED);
  EXPECT_EQ(ReasonOf(Write({.path = P("f"), .if_sha256 = kDigestOfOld}, "new").status()),
            R::ERROR_REASON_PRECONDITION_FAILED);
  Sha256 digest;
  digest.Update("old");
  const std::string right = digest.FinishHex();
  EXPECT_EQ(ReasonOf(Write({.path = P("g"), .if_sha256 = right}, "new").status()),
            R::ERROR_REASON_PRECONDITION_FAILED);
  EXPECT_EQ(ReasonOf(Write({.path = P("f"), .expected_sha256 = right}, "new").status()),
            R::ERROR_REASON_PRECONDITION_FAILED);
  EXPECT_EQ(ReasonOf(Write({.path = P("f"), .size = 5}, "new").status()),
            R::ERROR_REASON_PRECONDITION_FAILED);
  bench.Settle();
  EXPECT_EQ(ReadAll(P("f")), "old");
  EXPECT_THAT(Names(), ElementsAre("f"));
  EXPECT_TRUE(Write({.path = P("f"), .if_sha256 = right}, "new").ok());
  EXPECT_TRUE(Write({.path = P("h"), .if_absent = true}, "new").ok());
  const auto info = Stat(P("f"));
  EXPECT_TRUE(Write({.path = P("f"), .if_modified_at = info->modified_at}, "newer").ok());
  EXPECT_EQ(ReadAll(P("f")), "newer");
}

TEST_P(Files, DroppedWriteLeavesTheOldFileAndNothingElse) {
  Put("f", "old");
  RunTask(bench.loop, [&]() -> Task<void> {
    FileWrite write{.path = P("f"), .mode = 0600};
    auto writer = co_await files.Write(bench.context, bench.box, std::move(write));
    EXPECT_TRUE(writer.ok());
    if (writer.ok()) (void)co_await (*writer)->Send(std::string(200'000, 'x'));
  });
  bench.Settle();
  // The daemon may need a moment to see that its client is gone.
  for (int i = 0; i < 500 && Names().size() > 1; ++i) {
    bench.Run({.argv = {"sleep", "0.01"}});
  }
  EXPECT_EQ(ReadAll(P("f")), "old");
  EXPECT_THAT(Names(), ElementsAre("f"));
}

TEST_P(Files, InPlaceKeepsHardLinks) {
  Put("f", "old");
  fs::create_hard_link(P("f"), P("g"));
  const auto written = Write({.path = P("f"), .atomic = false}, "new");
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_FALSE(written->atomic);
  EXPECT_EQ(ReadAll(P("g")), "new");
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
        if (change.kind == Kind::kReady) EXPECT_EQ(change.path, dir);
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

TEST_P(Files, RemoveTakesTheLinkAndNotItsTarget) {
  fs::create_directory(P("dir"));
  Put("dir/f", "x");
  fs::create_directory_symlink("dir", P("link"));
  fs::create_symlink("nowhere", P("broken"));
  EXPECT_TRUE(Remove(P("link"), /*recursive=*/true).ok());
  EXPECT_TRUE(Remove(P("broken")).ok());
  EXPECT_THAT(Names(), ElementsAre("dir"));
  EXPECT_TRUE(fs::exists(P("dir/f")));
  EXPECT_EQ(ReasonOf(Remove(P("dir"))), R::ERROR_REASON_DIRECTORY_NOT_EMPTY);
  EXPECT_EQ(ReasonOf(Remove(P("nope"))), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_TRUE(Remove(P("dir"), true).ok());
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_P(Files, MoveOverwritesOnlyWhenAsked) {
  Put("a", "a");
  Put("b", "b");
  fs::create_directory(P("dir"));
  EXPECT_EQ(ReasonOf(Move(P("a"), P("b")).status()), R::ERROR_REASON_PATH_EXISTS);
  EXPECT_EQ(ReasonOf(Move(P("a"), P("dir"), true).status()), R::ERROR_REASON_IS_A_DIRECTORY);
  EXPECT_EQ(ReasonOf(Move(P("nope"), P("c")).status()), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_EQ(ReasonOf(Move(P("a"), P("x/y")).status()), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_FALSE(Move(P("dir"), P("dir/sub")).ok());
  EXPECT_EQ(ReadAll(P("a")) + ReadAll(P("b")), "ab");
  EXPECT_EQ(*Move(P("a"), P("b"), true), true);
  EXPECT_EQ(ReadAll(P("b")), "a");
  EXPECT_EQ(*Move(P("b"), P("x/y/z"), false, true), false);
  EXPECT_EQ(ReadAll(P("x/y/z")), "a");
}

TEST_P(Files, MakeDirectoryIsIdempotent) {
  EXPECT_EQ(ReasonOf(MakeDirectory(P("a/b")).status()), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_EQ(*MakeDirectory(P("a/b"), {.mode = 0700, .parents = true}), true);
  EXPECT_EQ(ModeOf(P("a/b")), 0700u);
  EXPECT_EQ(ModeOf(P("a")), 0755u);
  EXPECT_EQ(*MakeDirectory(P("a/b"), {.mode = 0777}), false);
  EXPECT_EQ(ModeOf(P("a/b")), 0700u) << "an existing directory stays as it is";
  Put("f", "x");
  EXPECT_EQ(ReasonOf(MakeDirectory(P("f")).status()), R::ERROR_REASON_PATH_EXISTS);
  chmod(P("a/b").c_str(), 02755);
  EXPECT_EQ(*MakeDirectory(P("a/b/c"), {.mode = 0755}), true);
  EXPECT_EQ(ModeOf(P("a/b/c")), 0755u) << "as asked, whatever its parent passes on";
}

TEST_P(Files, SetAttributes) {
  Put("f", "x");
  const auto set = [&](AttributeChange change) {
    return RunTask(bench.loop,
                   [&] { return files.SetAttributes({}, {"box", ""}, P("f"), change); });
  };
  EXPECT_EQ(set({.mode = 0755})->mode, 0755u);
  EXPECT_EQ(set({.mode = 01777})->mode, 01777u);
  EXPECT_EQ(set({.modified_at = absl::FromUnixSeconds(1'000'000'000)})->modified_at,
            absl::FromUnixSeconds(1'000'000'000));
  EXPECT_EQ(ReasonOf(set({.owner = "no-such-user"}).status()), R::ERROR_REASON_UNKNOWN_USER);
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
