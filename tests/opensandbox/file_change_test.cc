// SPDX-License-Identifier: Apache-2.0
//
// What changes files, through real daemon processes: writes, modes, owners, links, moves.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
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
  const auto refused = Write({.path = P("x/y/f")}, "c").status();
  EXPECT_EQ(ReasonOf(refused), R::ERROR_REASON_PATH_NOT_FOUND);
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("the directory"));
  EXPECT_FALSE(fs::exists(P("x")));
  ASSERT_TRUE(Write({.path = P("x/y/f"), .mode = 0600, .create_parents = true}, "c").ok());
  EXPECT_EQ(ReadAll(P("x/y/f")), "c");
}

TEST_P(Files, LinksAreWrittenThrough) {
  fs::create_directory(P("sub"));
  Put("sub/target", "old");
  fs::create_symlink("sub/target", P("link"));
  const auto written = Write({.path = P("link")}, "new");
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(fs::path(written->symlink_followed), P("sub/target")) << "and it is said";
  EXPECT_TRUE(fs::is_symlink(P("link")));
  EXPECT_EQ(ReadAll(P("sub/target")), "new");
  EXPECT_EQ(*Read(P("link")), "new");
  EXPECT_EQ(Write({.path = P("sub/target")}, "new")->symlink_followed, "");
  EXPECT_EQ(Write({.path = P("sub/target"), .atomic = false}, "new")->symlink_followed, "");
}

TEST_P(Files, LinksAreNotWrittenThroughWhenTheyAreNotToBeFollowed) {
  Put("target", "old");
  fs::create_symlink("target", P("link"));
  fs::create_symlink("nowhere", P("broken"));
  for (const bool atomic : {true, false}) {
    for (const char* name : {"link", "broken"}) {
      const auto refused = Write({.path = P(name), .atomic = atomic, .no_follow = true}, "new");
      EXPECT_EQ(ReasonOf(refused.status()), R::ERROR_REASON_PATH_REJECTED) << refused.status();
      EXPECT_THAT(std::string(refused.status().message()), ::testing::HasSubstr("symbolic link"));
    }
    EXPECT_TRUE(Write({.path = P("f"), .atomic = atomic, .no_follow = true}, "new").ok());
  }
  bench.Settle();
  EXPECT_EQ(ReadAll(P("target")), "old");
  EXPECT_THAT(Names(), ElementsAre("broken", "f", "link", "target"));
}

// A pipe would never end, and a device is not to be lost.
TEST_P(Files, WritesLeaveAloneWhatIsNoFile) {
  ASSERT_EQ(mkfifo(P("pipe").c_str(), 0644), 0);
  fs::create_symlink("pipe", P("link"));
  for (const bool atomic : {true, false}) {
    for (const char* name : {"pipe", "link"}) {
      const auto refused = Write({.path = P(name), .atomic = atomic}, "x");
      EXPECT_EQ(ReasonOf(refused.status()), R::ERROR_REASON_PATH_EXISTS) << refused.status();
    }
  }
  bench.Settle();
  EXPECT_TRUE(fs::is_fifo(P("pipe")));
  EXPECT_THAT(Names(), ElementsAre("link", "pipe"));
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
  const ExecSpec nap{.argv = {"sleep", "0.01"}};
  std::unique_ptr<FileWriter> writer;
  RunTask(bench.loop, [&]() -> Task<void> {
    FileWrite write{.path = P("f"), .mode = 0600};
    auto opened = co_await files.Write(bench.context, bench.box, std::move(write));
    writer = opened.ok() ? *std::move(opened) : nullptr;
    if (writer != nullptr) (void)co_await writer->Send(std::string(200'000, 'x'));
  });
  ASSERT_NE(writer, nullptr);
  // Our daemon writes what comes as it comes: what it leaves is looked for when it has begun.
  const bool own = GetParam().flags.empty();
  for (int i = 0; own && i < 500 && Names().size() < 2; ++i) bench.Run(nap);
  bench.loop.Post([&] { writer.reset(); });
  bench.Settle();
  // The daemon may need a moment to see that its client is gone.
  for (int i = 0; i < 500 && Names().size() > 1; ++i) bench.Run(nap);
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

// "Nothing was changed" is promised, and must be true, also where there is no second file.
TEST_P(Files, InPlaceChangesNothingWhenTheContentIsWrong) {
  Put("f", "old");
  fs::create_hard_link(P("f"), P("g"));
  FileWrite digest{.path = P("f"), .atomic = false, .expected_sha256 = std::string(64, 'a')};
  EXPECT_EQ(ReasonOf(Write(digest, "new and other").status()), R::ERROR_REASON_PRECONDITION_FAILED);
  for (const std::string content : {"short", "much longer than was said"}) {
    FileWrite size{.path = P("f"), .atomic = false, .size = 9};
    EXPECT_EQ(ReasonOf(Write(size, content).status()), R::ERROR_REASON_PRECONDITION_FAILED);
  }
  bench.Settle();
  EXPECT_EQ(ReadAll(P("f")), "old");
  const auto written = Write({.path = P("f"), .mode = 0640, .atomic = false, .size = 3}, "new");
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_FALSE(written->atomic);
  EXPECT_EQ(ReadAll(P("g")), "new");
  EXPECT_EQ(ModeOf(P("g")), 0640u);
  const FileWrite fresh{.path = P("h"), .atomic = false, .if_absent = true, .size = 3};
  ASSERT_TRUE(Write(fresh, "one").ok());
  EXPECT_EQ(ReasonOf(Write(fresh, "two").status()), R::ERROR_REASON_PRECONDITION_FAILED);
  EXPECT_EQ(ReadAll(P("h")), "one");
  EXPECT_THAT(Names(), ElementsAre("f", "g", "h"));
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

TEST_P(Files, MovesTakeLinksAndDoNotFollowThem) {
  fs::create_directory(P("dir"));
  fs::create_symlink("dir", P("todir"));
  fs::create_symlink("nowhere", P("broken"));
  Put("a", "a");
  for (const char* link : {"todir", "broken"}) {
    EXPECT_EQ(ReasonOf(Move(P("a"), P(link)).status()), R::ERROR_REASON_PATH_EXISTS) << link;
  }
  const auto replaced = Move(P("a"), P("todir"), /*overwrite=*/true);
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_TRUE(*replaced);
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(P("todir")))) << "the link, not its target";
  EXPECT_TRUE(fs::is_empty(P("dir")));
  EXPECT_EQ(*Move(P("broken"), P("moved")), false);
  EXPECT_EQ(fs::read_symlink(P("moved")), "nowhere");
  EXPECT_THAT(Names(), ElementsAre("dir", "moved", "todir"));
}

TEST_P(Files, MovesOfDirectories) {
  fs::create_directories(P("a/deep"));
  Put("a/deep/f", "x");
  Put("file", "x");
  fs::create_directory(P("empty"));
  for (const bool overwrite : {false, true}) {
    EXPECT_EQ(ReasonOf(Move(P("a"), P("empty"), overwrite).status()),
              overwrite ? R::ERROR_REASON_IS_A_DIRECTORY : R::ERROR_REASON_PATH_EXISTS);
    EXPECT_EQ(ReasonOf(Move(P("a"), P("file"), overwrite).status()),
              overwrite ? R::ERROR_REASON_NOT_A_DIRECTORY : R::ERROR_REASON_PATH_EXISTS);
  }
  // By way of a link, which the service cannot know of.
  fs::create_symlink("a/deep", P("in"));
  const auto into = Move(P("a"), P("in/b"));
  EXPECT_EQ(ReasonOf(into.status()), R::ERROR_REASON_PATH_REJECTED) << into.status();
  EXPECT_EQ(*Move(P("a"), P("b")), false);
  EXPECT_EQ(ReadAll(P("b/deep/f")), "x");
  EXPECT_THAT(Names(), ElementsAre("b", "empty", "file", "in"));
}

// Whatever the call: it is the path that the caller has to change.
TEST_P(Files, PathsThatNothingCanBeAt) {
  Put("f", "x");
  fs::create_symlink("loop", P("loop"));
  for (const std::string& path : {P(std::string(256, 'n')), P("loop/x")}) {
    const absl::Status answers[] = {
        Stat(path).status(),
        Stat(path, /*follow=*/true).status(),
        List(path, 1).status(),
        Read(path).status(),
        Write({.path = path}, "x").status(),
        Write({.path = path + "/y", .create_parents = true}, "x").status(),
        Move(P("f"), path).status(),
        Move(P("f"), path, /*overwrite=*/true).status(),
        Move(P("f"), path + "/y", /*overwrite=*/false, /*parents=*/true).status(),
        Move(path, P("g")).status(),
        SetAttributes(path, {.mode = 0600}).status(),
        MakeDirectory(path).status(),
        MakeDirectory(path + "/y", {.parents = true}).status(),
        Remove(path),
        Remove(path, /*recursive=*/true)};
    for (size_t i = 0; i < std::size(answers); ++i) {
      EXPECT_EQ(ReasonOf(answers[i]), R::ERROR_REASON_PATH_REJECTED) << i << ": " << answers[i];
    }
  }
  const absl::Status followed[] = {
      Stat(P("loop"), /*follow=*/true).status(), List(P("loop"), 1).status(),
      Read(P("loop")).status(), Write({.path = P("loop")}, "x").status(),
      SetAttributes(P("loop"), {.mode = 0600, .follow_symlink = true}).status()};
  for (size_t i = 0; i < std::size(followed); ++i) {
    EXPECT_EQ(ReasonOf(followed[i]), R::ERROR_REASON_PATH_REJECTED) << i << ": " << followed[i];
  }
  EXPECT_THAT(Names(), ElementsAre("f", "loop"));
  // Where something is mounted: in use.
  if (geteuid() == 0) {
    EXPECT_EQ(ReasonOf(Remove("/proc")), R::ERROR_REASON_PATH_REJECTED);
  }
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

TEST_P(Files, ADirectoryThatDoesNotBecomeAsAskedIsNotThere) {
  for (int i = 0; i < 2; ++i) {
    const auto made = MakeDirectory(P("d"), {.mode = 0700, .owner = "no-such-user"});
    EXPECT_EQ(ReasonOf(made.status()), R::ERROR_REASON_UNKNOWN_USER) << made.status();
    EXPECT_THAT(Names(), IsEmpty());
  }
  fs::create_directory(P("old"));
  EXPECT_EQ(*MakeDirectory(P("old"), {.owner = "no-such-user"}), false);
  EXPECT_THAT(Names(), ElementsAre("old"));
}

TEST_P(Files, SetAttributes) {
  Put("f", "x");
  const auto set = [&](AttributeChange change) { return SetAttributes(P("f"), std::move(change)); };
  EXPECT_EQ(set({.mode = 0755})->mode, 0755u);
  EXPECT_EQ(set({.mode = 01777})->mode, 01777u);
  EXPECT_EQ(set({.modified_at = absl::FromUnixSeconds(1'000'000'000)})->modified_at,
            absl::FromUnixSeconds(1'000'000'000));
  EXPECT_EQ(ReasonOf(set({.owner = "no-such-user"}).status()), R::ERROR_REASON_UNKNOWN_USER);
  EXPECT_EQ(ReasonOf(SetAttributes(P("nope"), {.mode = 0600}).status()),
            R::ERROR_REASON_PATH_NOT_FOUND);
}

TEST_P(Files, AttributesOfALinkAreSetOnlyWhenItIsToBeFollowed) {
  Put("f", "x");
  chmod(P("f").c_str(), 0640);
  fs::create_symlink("f", P("link"));
  fs::create_symlink("nowhere", P("broken"));
  const absl::Time old = absl::FromUnixSeconds(1'000'000'000);
  std::vector<AttributeChange> changes = {{.mode = 0777}, {.mode = 04777}, {.modified_at = old}};
  if (geteuid() == 0) changes.push_back({.owner = "4242", .group = "4242"});
  for (const AttributeChange& change : changes) {
    const auto refused = SetAttributes(P("link"), change);
    EXPECT_EQ(ReasonOf(refused.status()), R::ERROR_REASON_PATH_REJECTED) << refused.status();
    EXPECT_THAT(std::string(refused.status().message()), ::testing::HasSubstr("symbolic link"));
    EXPECT_EQ(ReasonOf(SetAttributes(P("broken"), change).status()), R::ERROR_REASON_PATH_REJECTED);
  }
  const auto untouched = Stat(P("f"));
  EXPECT_EQ(untouched->mode, 0640u);
  EXPECT_NE(untouched->modified_at, old);
  EXPECT_NE(untouched->owner, "4242");
  EXPECT_NE(Stat(P("link"))->owner, "4242");

  const auto followed =
      SetAttributes(P("link"), {.mode = 01777, .modified_at = old, .follow_symlink = true});
  ASSERT_TRUE(followed.ok()) << followed.status();
  EXPECT_EQ(followed->type, FileType::kFile);
  EXPECT_EQ(followed->mode, 01777u);
  EXPECT_EQ(followed->modified_at, old);
  EXPECT_EQ(followed->path, P("link")) << "as it was asked for";
  EXPECT_EQ(ModeOf(P("f")), 01777u);
  EXPECT_EQ(ReasonOf(SetAttributes(P("broken"), {.mode = 0600, .follow_symlink = true}).status()),
            R::ERROR_REASON_PATH_NOT_FOUND);
}

}  // namespace
}  // namespace bridge
