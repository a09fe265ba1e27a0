// SPDX-License-Identifier: Apache-2.0
//
// The end of a write with a condition, judged by what real shells do with its script: what changed
// during the upload is seen, and of two such scripts one waits for the other.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bridge/base/c_strings.h"
#include "bridge/base/error.h"
#include "bridge/base/sha256.h"
#include "bridge/opensandbox/file_script.h"

namespace bridge {
namespace {

namespace fs = std::filesystem;
using R = ErrorReason;

constexpr uid_t kNobody = 65534;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string Sha256Of(const std::string& content) {
  Sha256 digest;
  digest.Update(content);
  return digest.FinishHex();
}

struct Shell {
  const char* name;
  std::vector<std::string> command;
  bool busybox;  // the tools are its own
};

class FileCommit : public ::testing::TestWithParam<Shell> {
 protected:
  FileCommit() {
    std::string name = fs::temp_directory_path() / "file_commit_test.XXXXXX";
    root_ = mkdtemp(name.data());
    chmod(root_.c_str(), 0755);
    fs::create_directory(root_ + "/tools");
    fs::create_directory(root_ + "/d e");
    for (const std::string tool : {"chmod", "flock", "mv", "rm", "sha256sum", "sleep", "stat"}) {
      fs::path real = "/bin/busybox";
      // Debian's has no flock.
      if (!GetParam().busybox || tool == "flock")
        real = fs::path(fs::exists("/bin/" + tool) ? "/bin" : "/usr/bin") / tool;
      fs::create_symlink(real, Tool(tool));
    }
    write_.path = target_ = root_ + "/d e/it's $f";
    temporary_ = root_ + "/d e/.tmp";
    std::ofstream(target_) << "old";
    Upload();
  }
  ~FileCommit() override {
    chmod((root_ + "/d e").c_str(), 0700);
    fs::remove_all(root_);
  }

  std::string Tool(const std::string& name) const { return root_ + "/tools/" + name; }
  // Puts another one in a tool's place.
  void Replace(const std::string& tool, const std::string& script) const {
    fs::remove(Tool(tool));
    std::ofstream(Tool(tool)) << "#!/bin/sh\n" << script;
    chmod(Tool(tool).c_str(), 0755);
  }
  void Upload() const { std::ofstream(temporary_) << "new"; }
  void SetModified(time_t seconds, long nanoseconds) const {
    const timespec times[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
    ASSERT_EQ(utimensat(AT_FDCWD, target_.c_str(), times, 0), 0);
  }

  // Runs it in a process group of its own and waits for its end.
  int Run(const std::string& script, uid_t user = geteuid()) const {
    std::vector<std::string> words = GetParam().command;
    words.insert(words.end(), {"-c", script});
    const std::vector<char*> argv = CStrings(words);
    std::string path = "PATH=" + root_ + "/tools";
    char* env[] = {path.data(), nullptr};
    const pid_t pid = fork();
    if (pid == 0) {
      setpgid(0, 0);
      if (user != geteuid() && setuid(user) != 0) _exit(99);
      execve(argv[0], argv.data(), env);
      _exit(98);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string Script() const { return CommitScript(write_, temporary_, target_, std::nullopt); }
  ErrorReason Commit() const { return ReasonOf(FileScriptError(Run(Script()), "write a file")); }

  // It failed with this, the target is as it was, and nothing else is there.
  void ExpectRefused(ErrorReason reason, const std::string& content) const {
    EXPECT_EQ(Commit(), reason);
    EXPECT_EQ(ReadFile(target_), content);
    EXPECT_FALSE(fs::exists(temporary_));
  }
  void ExpectReplaced() const {
    EXPECT_EQ(Run(Script()), 0);
    EXPECT_EQ(ReadFile(target_), "new");
    EXPECT_FALSE(fs::exists(temporary_));
  }
  int OpenDirectory() const {
    return open((root_ + "/d e").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }

  std::string root_;
  std::string target_;
  std::string temporary_;
  FileWrite write_;
};

INSTANTIATE_TEST_SUITE_P(Shells, FileCommit,
                         ::testing::Values(Shell{"bash", {"/bin/bash"}, false},
                                           Shell{"posixbash", {"/bin/bash", "--posix"}, false},
                                           Shell{"dash", {"/bin/dash"}, false},
                                           Shell{"busybox", {"/bin/busybox", "sh"}, true}),
                         [](const ::testing::TestParamInfo<Shell>& info) {
                           return info.param.name;
                         });

TEST_P(FileCommit, AContentThatChangedMeanwhileStays) {
  write_.if_sha256 = Sha256Of("old");
  ExpectReplaced();
  Upload();
  ExpectRefused(R::ERROR_REASON_PRECONDITION_FAILED, "new");
}

TEST_P(FileCommit, ATimeIsComparedExactly) {
  SetModified(981173106, 789012345);
  write_.if_modified_at = absl::FromUnixNanos(981173106'789012345);
  ExpectReplaced();
  for (const long other : {789012344L, 789012346L, 1L}) {
    Upload();
    SetModified(981173106, other);
    ExpectRefused(R::ERROR_REASON_PRECONDITION_FAILED, "new");
  }
}

// Where one of the two cannot tell parts of a second.
TEST_P(FileCommit, ATimeInWholeSecondsIsComparedByThem) {
  SetModified(981173106, 789012345);
  write_.if_modified_at = absl::FromUnixSeconds(981173106);
  ExpectReplaced();
  Upload();
  SetModified(981173107, 0);
  ExpectRefused(R::ERROR_REASON_PRECONDITION_FAILED, "new");

  write_.if_modified_at = absl::FromUnixNanos(981173106'789012345);
  for (const char* said : {"2001-02-03 04:05:06.000000000 +0000", "2001-02-03 04:05:06 +0000",
                           "2001-02-03 04:05:06"}) {
    SCOPED_TRACE(said);
    Upload();
    Replace("stat", "echo '" + std::string(said) + "'\n");
    ExpectReplaced();
  }
  Upload();
  Replace("stat", "echo '2001-02-03 04:05:07.000000000 +0000'\n");
  ExpectRefused(R::ERROR_REASON_PRECONDITION_FAILED, "new");
}

TEST_P(FileCommit, WhatIsNoFileAnyMoreIsNotReplaced) {
  for (const bool by_time : {false, true}) {
    write_.if_sha256 = by_time ? "" : Sha256Of("old");
    write_.if_modified_at = by_time ? absl::FromUnixSeconds(5) : absl::InfinitePast();
    Upload();
    fs::remove(target_);
    ExpectRefused(R::ERROR_REASON_PRECONDITION_FAILED, "");
    EXPECT_FALSE(fs::exists(target_));

    Upload();
    fs::create_directory(target_);
    ExpectRefused(R::ERROR_REASON_PRECONDITION_FAILED, "");
    EXPECT_TRUE(fs::is_empty(target_));
    fs::remove(target_);

    // A link to what is expected is another thing all the same.
    std::ofstream(root_ + "/other") << "old";
    fs::create_symlink(root_ + "/other", target_);
    Upload();
    ExpectRefused(R::ERROR_REASON_PRECONDITION_FAILED, "old");
    EXPECT_TRUE(fs::is_symlink(target_));
    fs::remove(target_);
  }
}

TEST_P(FileCommit, ALockThatStaysIsAConflict) {
  write_.if_sha256 = Sha256Of("old");
  const int lock = OpenDirectory();
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  // One that knows whole seconds only, and then one that does not exist.
  Replace("sleep", "[ $# = 1 ] && [ $1 = 1 ] && echo >>'" + root_ + "/naps'\n");
  ExpectRefused(R::ERROR_REASON_CONFLICT, "old");
  EXPECT_EQ(ReadFile(root_ + "/naps"), "\n\n\n\n\n");
  fs::remove(Tool("sleep"));
  Upload();
  ExpectRefused(R::ERROR_REASON_CONFLICT, "old");
  close(lock);
  Upload();
  ExpectReplaced();
}

TEST_P(FileCommit, ALockIsWaitedFor) {
  write_.if_sha256 = Sha256Of("old");
  const std::string asks = root_ + "/asks", answers = root_ + "/answers";
  ASSERT_EQ(mkfifo(asks.c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(answers.c_str(), 0600), 0);
  // Open for both: neither side waits for the other to open it.
  const int asked = open(asks.c_str(), O_RDWR | O_CLOEXEC);
  const int answer = open(answers.c_str(), O_RDWR | O_CLOEXEC);
  Replace("sleep", "echo >'" + asks + "'; read x <'" + answers + "'\n");
  const int lock = OpenDirectory();
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  std::thread holder([&] {
    char byte;
    EXPECT_EQ(read(asked, &byte, 1), 1);
    close(lock);
    EXPECT_EQ(write(answer, "\n", 1), 1);
  });
  ExpectReplaced();
  holder.join();
  close(asked);
  close(answer);
}

// Another one that comes between the look and the rename of the first.
TEST_P(FileCommit, OnlyOneAtATimeLooksAndReplaces) {
  write_.if_sha256 = Sha256Of("old");
  std::ofstream(root_ + "/second") << CommitScript(write_, root_ + "/d e/.tmp2", target_, {});
  std::ofstream(root_ + "/d e/.tmp2") << "newer";
  fs::remove(Tool("sleep"));
  std::string shell;
  for (const std::string& word : GetParam().command) shell += word + " ";
  Replace("mv", shell + "'" + root_ + "/second'; echo $? >'" + root_ + "/result'\n" +
                    (GetParam().busybox ? "/bin/busybox mv" : "/bin/mv") + " \"$@\"\n");
  ExpectReplaced();
  EXPECT_EQ(ReadFile(root_ + "/result"), "27\n");
  EXPECT_FALSE(fs::exists(root_ + "/d e/.tmp2"));
}

TEST_P(FileCommit, AScriptThatIsKilledHoldsNoLock) {
  write_.if_sha256 = Sha256Of("old");
  Replace("mv", "kill -9 0\n");
  EXPECT_EQ(Run(Script()), -SIGKILL);
  const int lock = OpenDirectory();
  EXPECT_EQ(flock(lock, LOCK_EX), 0) << "or it waits here for ever";
  close(lock);
}

TEST_P(FileCommit, WithoutFlockThereAreNoTurns) {
  fs::remove(Tool("flock"));
  const int lock = OpenDirectory();
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  write_.if_sha256 = Sha256Of("old");
  ExpectReplaced();
  Upload();
  ExpectRefused(R::ERROR_REASON_PRECONDITION_FAILED, "new");
  close(lock);
}

TEST_P(FileCommit, AFileSystemWithoutLocksIsNoConflict) {
  Replace("flock", "echo 'flock: 9: No locks available' >&2; exit 1\n");
  write_.if_sha256 = Sha256Of("old");
  ExpectReplaced();
}

TEST_P(FileCommit, ADirectoryThatCannotBeRead) {
  const std::string directory = root_ + "/d e";
  const bool root = geteuid() == 0;
  for (const std::string& path : {directory, target_, temporary_}) {
    ASSERT_TRUE(!root || chown(path.c_str(), kNobody, kNobody) == 0);
  }
  chmod(directory.c_str(), 0300);
  write_.if_sha256 = Sha256Of("old");
  EXPECT_EQ(Run(Script(), root ? kNobody : geteuid()), 0);
  chmod(directory.c_str(), 0700);
  EXPECT_EQ(ReadFile(target_), "new");
}

TEST_P(FileCommit, AToolThatIsMissingIsSaid) {
  for (const char* tool : {"sha256sum", "stat"}) {
    fs::remove(Tool(tool));
    write_.if_sha256 = tool == std::string("stat") ? "" : Sha256Of("old");
    write_.if_modified_at = absl::FromUnixSeconds(5);
    Upload();
    ExpectRefused(R::ERROR_REASON_UNSUPPORTED_FEATURE, "old");
  }
}

// Of a write without a condition nothing is asked.
TEST_P(FileCommit, OthersNeedNothingOfThis) {
  for (const char* tool : {"flock", "sha256sum", "stat", "sleep"}) fs::remove(Tool(tool));
  const int lock = OpenDirectory();
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  ExpectReplaced();
  close(lock);
}

}  // namespace
}  // namespace bridge
