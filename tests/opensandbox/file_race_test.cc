// SPDX-License-Identifier: Apache-2.0
//
// What somebody else does between a look and an act of the bridge's, forced: the daemon's tools are
// wrapped, so that something happens just before one of them is run; and without tools, by many
// moves at the same time as something else.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "bridge/base/error.h"
#include "tests/opensandbox/file_fixture.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using R = ErrorReason;
namespace fs = std::filesystem;

// Tools that do something else, once.
class RacingTools {
 public:
  // `busybox`: the tools are its own, else those of the machine.
  explicit RacingTools(bool busybox) {
    std::string name = fs::temp_directory_path() / "tools.XXXXXX";
    folder_ = mkdtemp(name.data());
    for (const std::string tool :
         {"ln", "mv", "mkdir", "cp", "rm", "rmdir", "chmod", "chown", "touch"}) {
      std::ofstream(folder_ + "/" + tool)
          << "#!/bin/sh\nif /bin/mv '" << folder_ << "/before." << tool << "' '" << folder_
          << "/now' 2>/dev/null; then PATH=/usr/bin:/bin sh '" << folder_ << "/now'; fi\n"
          << "if /bin/mv '" << folder_ << "/instead." << tool << "' '" << folder_
          << "/now' 2>/dev/null; then PATH=/usr/bin:/bin exec sh '" << folder_ << "/now'; fi\nexec "
          << (busybox ? "/bin/busybox " : "/bin/") << tool << " \"$@\"\n";
      chmod((folder_ + "/" + tool).c_str(), 0755);
    }
    const char* path = getenv("PATH");
    path_ = path == nullptr ? "/usr/bin:/bin" : path;
    setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
  }
  ~RacingTools() {
    setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }
  // Once, and before the tool is run or in its place.
  void Before(const std::string& tool, const std::string& script) const {
    std::ofstream(folder_ + "/before." + tool) << script;
  }
  void Instead(const std::string& tool, const std::string& script) const {
    std::ofstream(folder_ + "/instead." + tool) << script;
  }
  // It has happened: the tool was used.
  bool Happened() const { return fs::exists(folder_ + "/now"); }
  void Forget() const {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (name == "now" || name.starts_with("before.") || name.starts_with("instead."))
        fs::remove(entry.path());
    }
  }

 private:
  std::string folder_;
  std::string path_;
};

// Empty for what is no file.
std::string ContentOf(const std::string& path) {
  return fs::is_regular_file(path) ? ReadAll(path) : std::string();
}

struct Setting {
  Way daemon;
  bool busybox;
};

// The tools first: the daemon is started with them on its PATH.
class FileRaces : private RacingTools, public FilesOn, public ::testing::TestWithParam<Setting> {
 protected:
  FileRaces() : RacingTools(GetParam().busybox), FilesOn(GetParam().daemon.flags) {}
  using RacingTools::Before;
  using RacingTools::Forget;
  using RacingTools::Happened;
  using RacingTools::Instead;
  bool IsOwn() const { return GetParam().daemon.flags.empty(); }
};

std::string SettingName(const ::testing::TestParamInfo<Setting>& info) {
  return std::string(info.param.daemon.name) + (info.param.busybox ? "busybox" : "");
}
const auto kSettings =
    ::testing::Values(Setting{{"stock110", {"--compat=1.1.0", "--extras=false"}}, false},
                      Setting{{"current", {"--compat=current", "--extras=false"}}, false},
                      Setting{{"current", {"--compat=current", "--extras=false"}}, true},
                      Setting{{"own", {}}, false});
INSTANTIATE_TEST_SUITE_P(Daemons, FileRaces, kSettings, SettingName);

// Whatever tool moves the file: it finds something that was not there when the script looked.
TEST_P(FileRaces, WhatAppearsAtTheDestinationOfAMoveIsNotReplaced) {
  for (const std::string tool : {"ln", "mv", "cp"}) {
    for (const std::string& theirs :
         {"echo theirs > '" + P("b") + "'", "mkdir '" + P("b") + "'",
          "ln -s nowhere '" + P("b") + "'", "mkdir '" + P("e") + "'; ln -s e '" + P("b") + "'"}) {
      SCOPED_TRACE(tool + ": " + theirs);
      Put("a", "mine");
      Before(tool, theirs);
      const auto moved = Move(P("a"), P("b"));
      if (!Happened()) {
        ASSERT_TRUE(moved.ok()) << moved.status();
        EXPECT_EQ(ReadAll(P("b")), "mine");
      } else {
        EXPECT_EQ(ReasonOf(moved.status()), R::ERROR_REASON_PATH_EXISTS) << moved.status();
        EXPECT_EQ(ReadAll(P("a")), "mine");
        EXPECT_NE(ContentOf(P("b")), "mine");
        EXPECT_FALSE(fs::exists(P("b/a"))) << "nor is it moved into it";
      }
      Forget();
      fs::remove_all(P("b"));
      fs::remove_all(P("e"));
    }
  }
}

TEST_P(FileRaces, WhatAppearsAtTheDestinationOfADirectoryIsNotReplaced) {
  for (const std::string tool : {"mkdir", "mv"}) {
    for (const std::string& theirs :
         {"rmdir '" + P("b") + "' 2>/dev/null; echo theirs > '" + P("b") + "'",
          "mkdir -p '" + P("b") + "'; echo theirs > '" + P("b") + "/f'"}) {
      SCOPED_TRACE(tool + ": " + theirs);
      fs::create_directory(P("a"));
      Put("a/g", "mine");
      Before(tool, theirs);
      const auto moved = Move(P("a"), P("b"));
      EXPECT_NE(moved.ok(), Happened()) << moved.status();
      EXPECT_EQ(ReadAll(Happened() ? P("a/g") : P("b/g")), "mine");
      if (Happened()) {
        EXPECT_EQ(ReadAll(fs::is_directory(P("b")) ? P("b/f") : P("b")), "theirs\n");
        EXPECT_FALSE(fs::exists(P("b/a")));
      }
      Forget();
      fs::remove_all(P("a"));
      fs::remove_all(P("b"));
    }
  }
}

// The newer one has the source's name, and is not what was moved.
TEST_P(FileRaces, ANewFileInTheSourcesPlaceStays) {
  Put("a", "mine");
  // Instead of the hard link that was to be made: one, and then a new file.
  const std::string link = "/bin/ln '" + P("a") + "' '" + P("b") + "'; rm '" + P("a") +
                           "'; echo newer > '" + P("a") + "'";
  Instead("ln", link);
  const auto moved = Move(P("a"), P("b"));
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(ReadAll(P("b")), "mine");
  if (Happened()) {
    EXPECT_EQ(ReadAll(P("a")), "newer\n");
  }
}

// An owner is given to what the request names, also when a link takes its place.
TEST_P(FileRaces, ALinkThatAppearsIsNotFollowedToItsOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  Put("victim", "x");
  const std::string swap = "rm -rf '" + P("f") + "'; ln -s victim '" + P("f") + "'";
  const auto victim_is_untouched = [this] {
    struct stat info = {};
    stat(P("victim").c_str(), &info);
    return info.st_uid == 0 && (info.st_mode & 07777) == 0644;
  };
  Put("f", "x");
  Before("chown", swap);
  (void)SetAttributes(P("f"), {.owner = "4242"});
  EXPECT_TRUE(victim_is_untouched());
  Forget();
  fs::remove(P("f"));
  Before("chown", swap);
  (void)MakeDirectory(P("f"), {.mode = 0777, .owner = "4242"});
  EXPECT_TRUE(victim_is_untouched());
}

// No tool has a part in these.
TEST_P(FileRaces, OfTwoThatWantTheSameNameOneGetsIt) {
  constexpr int kRounds = 60;
  int moves = 0;
  std::atomic<bool> created = false;
  std::barrier<> both(2);
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      both.arrive_and_wait();
      const int fd = open(P("b").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      created = fd >= 0;
      if (fd >= 0) close(fd);
      both.arrive_and_wait();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    Put("a", "mine");
    both.arrive_and_wait();
    const auto moved = Move(P("a"), P("b"));
    both.arrive_and_wait();
    EXPECT_NE(moved.ok(), created) << moved.status();
    EXPECT_EQ(ReadAll(P("b")), created ? "" : "mine");
    if (!moved.ok()) {
      EXPECT_EQ(ReasonOf(moved.status()), R::ERROR_REASON_PATH_EXISTS);
    }
    moves += moved.ok();
    fs::remove(P("b"));
  }
  other.join();
  RecordProperty("moves", moves);
}

// With a directory of another file system.
class FileMovesAcross : public FileRaces {
 protected:
  void SetUp() override {
    std::string name = "/dev/shm/file-race.XXXXXX";
    if (mkdtemp(name.data()) != nullptr) there = name;
    struct stat here_info = {}, there_info = {};
    const bool two = stat(dir.c_str(), &here_info) == 0 && stat(there.c_str(), &there_info) == 0 &&
                     here_info.st_dev != there_info.st_dev;
    if (!two) GTEST_SKIP() << "/dev/shm is no file system of its own";
  }
  ~FileMovesAcross() override {
    if (!there.empty()) fs::remove_all(there);
  }
  std::vector<std::string> NamesThere() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(there))
      names.push_back(entry.path().filename());
    return names;
  }
  std::string there;
};

INSTANTIATE_TEST_SUITE_P(Daemons, FileMovesAcross, kSettings, SettingName);

TEST_P(FileMovesAcross, AFileIsReplacedInOneStep) {
  const std::string large(8 << 20, 'x');
  std::ofstream(there + "/a") << large;
  Put("b", "old");
  std::atomic<bool> done = false;
  bool whole = true;
  std::thread reader([&] {
    while (!done) {
      struct stat info = {};
      const bool is = lstat(P("b").c_str(), &info) == 0;
      whole = whole && is && (info.st_size == 3 || info.st_size == (8 << 20));
    }
  });
  const auto moved = Move(there + "/a", P("b"), /*overwrite=*/true);
  done = true;
  reader.join();
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_TRUE(*moved);
  EXPECT_TRUE(whole) << "somebody saw no file, or half of one";
  EXPECT_TRUE(ReadAll(P("b")) == large);
  EXPECT_FALSE(fs::exists(there + "/a"));

  // And a directory, to a place that is free and to one that is not.
  fs::create_directory(there + "/d");
  std::ofstream(there + "/d/f") << "x";
  EXPECT_EQ(ReasonOf(Move(there + "/d", P("b")).status()), R::ERROR_REASON_PATH_EXISTS);
  EXPECT_TRUE(fs::exists(there + "/d/f"));
  const auto directory = Move(there + "/d", P("d"));
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(ReadAll(P("d/f")), "x");
  EXPECT_FALSE(fs::exists(there + "/d"));
  EXPECT_THAT(Names(), ElementsAre("b", "d")) << "no copy stays";
}

// Nothing can be removed from /proc.
TEST_P(FileMovesAcross, WhatCannotLeaveReplacesNothing) {
  Put("b", "old");
  for (const char* source : {"/proc/version", "/proc/sys/kernel/random", "/proc/1"}) {
    const bool file = !fs::is_directory(source);
    for (const bool overwrite : {false, true}) {
      SCOPED_TRACE(source);
      const absl::Status moved =
          Move(source, file && overwrite ? P("b") : P("new/c"), overwrite, /*parents=*/true)
              .status();
      EXPECT_EQ(ReasonOf(moved), R::ERROR_REASON_PERMISSION_DENIED) << moved;
      EXPECT_NE(moved.message().find("nothing was moved"), std::string::npos) << moved;
    }
  }
  EXPECT_EQ(ReadAll(P("b")), "old");
  EXPECT_THAT(Names(), ElementsAre("b"));
}

TEST_P(FileMovesAcross, ACopyWhoseSourceStaysIsSaid) {
  std::ofstream(there + "/f") << "f";
  fs::create_directory(there + "/d");
  std::ofstream(there + "/d/f") << "f";
  for (const std::string what : {"f", "d"}) {
    Instead("rm", "exit 1");
    const absl::Status moved = Move(there + "/" + what, P(what), /*overwrite=*/true).status();
    ASSERT_TRUE(Happened());
    EXPECT_EQ(ReasonOf(moved), R::ERROR_REASON_PERMISSION_DENIED) << moved;
    EXPECT_EQ(MetadataOf(moved)["copied"], "true");
    Forget();
  }
  EXPECT_THAT(Names(), ElementsAre("d", "f"));
  EXPECT_THAT(NamesThere(), UnorderedElementsAre("d", "f"));
}

// As the limit of a script does it, at the moment at which there is most to put right.
TEST_P(FileMovesAcross, AMoveThatIsKilledLeavesNothing) {
  std::ofstream(there + "/a") << "mine";
  Before("ln", "kill -9 0");
  const auto moved = Move(there + "/a", P("b"));
  ASSERT_TRUE(Happened());
  EXPECT_FALSE(moved.ok());
  bench.Settle();
  EXPECT_THAT(Names(), ElementsAre());
  EXPECT_THAT(NamesThere(), ElementsAre("a"));
  EXPECT_EQ(ReadAll(there + "/a"), "mine");
}

TEST_P(FileRaces, ParentsThatOthersMakeMeanwhileAreLeft) {
  Before("mkdir", "mkdir '" + P("a") + "'");
  const auto made = MakeDirectory(P("a/b/c"), {.owner = "no-such-user", .parents = true});
  EXPECT_EQ(ReasonOf(made.status()), R::ERROR_REASON_UNKNOWN_USER) << made.status();
  EXPECT_TRUE(Happened());
  ASSERT_THAT(Names(), ElementsAre("a"));
  EXPECT_TRUE(fs::is_empty(P("a")));
}

}  // namespace
}  // namespace bridge
