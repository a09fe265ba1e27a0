// SPDX-License-Identifier: Apache-2.0
//
// The scripts are judged by what real shells do with them, not by their text.
#include "bridge/opensandbox/exec_script.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace bridge {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// Each test runs in bash and in dash: execd takes bash where the image has it, else sh.
class ExecScript : public ::testing::TestWithParam<const char*> {
 protected:
  ExecScript() {
    std::string name = fs::temp_directory_path() / "exec_script_test.XXXXXX";
    scratch_ = mkdtemp(name.data());
    folder_.emplace(scratch_, "0123456789abcdef0123456789abcdef");
  }
  ~ExecScript() override { fs::remove_all(scratch_); }

  // Runs a script as execd does: SHELL -c SCRIPT, stdin /dev/null. Returns the wait status.
  int Run(const std::string& script) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (freopen("/dev/null", "r", stdin) == nullptr || chdir(scratch_.c_str()) != 0) _exit(99);
      execlp(GetParam(), GetParam(), "-c", script.c_str(), nullptr);
      _exit(98);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }
  int RunRedirected(const ExecSpec& spec, ExecPrepared prepared = {}) {
    return Run(RedirectScript(spec, *folder_, prepared));
  }
  std::string Out() { return ReadFile(folder_->out()); }
  std::string Err() { return ReadFile(folder_->err()); }

  std::string scratch_;
  std::optional<ExecFolder> folder_;
};

INSTANTIATE_TEST_SUITE_P(Shells, ExecScript, ::testing::Values("bash", "dash"));

TEST_P(ExecScript, ExactBytesStreamsApartAndTheTrueStatus) {
  const int status = RunRedirected({.shell = "printf 'a\\r\\n\\377b'; echo err >&2; exit 3"});
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(Out(),
            "a\r\n\xff"
            "b");
  EXPECT_EQ(Err(), "err\n");
  EXPECT_FALSE(fs::exists(folder_->failed()));
}

TEST_P(ExecScript, ArgumentsArriveUnchanged) {
  const int status = RunRedirected(
      {.argv = {"printf", "[%s]", "", "a b", "*", "$(id)", "-n", "l1\nl2", "it's", "\"", "\\"}});
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(Out(), "[][a b][*][$(id)][-n][l1\nl2][it's][\"][\\]");
}

TEST_P(ExecScript, TheCommandIsTheShellsProcessAndItsSignalIsSeen) {
  const int status = RunRedirected({.shell = "echo $$; kill -SEGV $$"});
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  EXPECT_EQ(Out(), ReadFile(folder_->pid()));
}

TEST_P(ExecScript, NothingOfOursIsInTheEnvironment) {
  setenv("KEEP", "k", 1);
  RunRedirected({.argv = {"env"}, .cwd = "/"});
  const std::string env = Out();
  EXPECT_NE(env.find("KEEP=k\n"), std::string::npos);
  EXPECT_NE(env.find("PWD=/\n"), std::string::npos);
  for (const char* name : {"\nd=", "OLDPWD=", "CDPATH=", "BASHOPTS="}) {
    EXPECT_EQ(("\n" + env).find(name), std::string::npos) << name;
  }
}

// A variable of the script's that has the name of one of the command's was handed on in its place.
TEST_P(ExecScript, EveryNameInTheEnvironmentIsTheCommandsOwn) {
  for (char name = 'a'; name <= 'z'; ++name) setenv(std::string(1, name).c_str(), "mine", 1);
  RunRedirected({.argv = {"env"}, .cwd = "/", .stdin_bytes = "x"});
  const std::string env = "\n" + Out();
  for (char name = 'a'; name <= 'z'; ++name) {
    unsetenv(std::string(1, name).c_str());
    EXPECT_NE(env.find(std::string("\n") + name + "=mine\n"), std::string::npos) << name;
  }
}

TEST_P(ExecScript, StdinTravelsWithEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  all += "%s%%\\n%";
  RunRedirected({.argv = {"cat"}, .stdin_bytes = all});
  EXPECT_EQ(Out(), all);
  EXPECT_FALSE(fs::exists(folder_->inline_stdin()));
}

TEST_P(ExecScript, WithoutStdinThereIsEndOfFile) {
  EXPECT_EQ(WEXITSTATUS(RunRedirected({.argv = {"cat"}})), 0);
  EXPECT_EQ(Out(), "");
}

TEST_P(ExecScript, UploadedStdinIsReadAndRemoved) {
  std::ofstream(folder_->uploaded_stdin()) << "from a file";
  RunRedirected({.argv = {"cat"}}, {.stdin = true});
  EXPECT_EQ(Out(), "from a file");
  EXPECT_FALSE(fs::exists(folder_->uploaded_stdin()));
}

TEST_P(ExecScript, MissingProgramIsNoExitCode) {
  EXPECT_EQ(WEXITSTATUS(RunRedirected({.argv = {"no-such-program", "x"}})), 127);
  EXPECT_EQ(OutcomeOfFailedStart(ReadFile(folder_->failed())),
            Outcome(SpawnFailed{SpawnFailed::Kind::kNotFound, "no such program"}));
  EXPECT_EQ(Err(), "") << "the shell's words must not be in the command's output";
}

TEST_P(ExecScript, ProgramThatMayNotBeExecuted) {
  for (const char* program : {"/etc/passwd", "/tmp"}) {
    fs::remove_all(folder_->path());
    EXPECT_EQ(WEXITSTATUS(RunRedirected({.argv = {program}})), 126);
    const Outcome outcome = OutcomeOfFailedStart(ReadFile(folder_->failed()));
    EXPECT_EQ(std::get<SpawnFailed>(outcome).kind, SpawnFailed::Kind::kNotExecutable);
    EXPECT_EQ(Err(), "");
  }
}

TEST_P(ExecScript, ExitCodes126And127OfTheCommandItselfStayExitCodes) {
  for (const char* line : {"exit 127", "exit 126", "no-such-program"}) {
    fs::remove_all(folder_->path());
    RunRedirected({.shell = line});
    EXPECT_FALSE(fs::exists(folder_->failed())) << line;
  }
}

TEST_P(ExecScript, BadCwdIsNoExitCode) {
  EXPECT_EQ(WEXITSTATUS(RunRedirected({.shell = "pwd", .cwd = "/no/such"})), 126);
  const Outcome outcome = OutcomeOfFailedStart(ReadFile(folder_->failed()));
  EXPECT_EQ(std::get<SpawnFailed>(outcome).kind, SpawnFailed::Kind::kBadCwd);
}

TEST_P(ExecScript, CwdIsLiteral) {
  const std::string odd = scratch_ + "/-P $HOME 'x'";
  fs::create_directory(odd);
  setenv("CDPATH", "/", 1);
  RunRedirected({.shell = "pwd", .cwd = odd});
  unsetenv("CDPATH");
  EXPECT_EQ(Out(), odd + "\n");
}

TEST_P(ExecScript, SyntaxErrorsAreTheCommandsOwn) {
  const int status = RunRedirected({.shell = "echo 'unterminated"});
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_NE(Err(), "");
  EXPECT_FALSE(fs::exists(folder_->failed()));
}

TEST_P(ExecScript, FolderThatCannotBeMadeIs125WithoutOutput) {
  const ExecFolder nowhere("/proc/nowhere", "n");
  EXPECT_EQ(WEXITSTATUS(Run(RedirectScript({.shell = "echo hi"}, nowhere, {}))), 125);
}

TEST_P(ExecScript, AFolderThatWasMadeBeforehandIsTaken) {
  const ExecPrepared prepared{.folder = true};
  EXPECT_EQ(WEXITSTATUS(RunRedirected({.shell = "echo hi"}, prepared)), 125) << "it is not there";
  fs::create_directory(folder_->path());
  EXPECT_EQ(WEXITSTATUS(RunRedirected({.shell = "echo hi"}, prepared)), 0);
  EXPECT_EQ(Out(), "hi\n");
  EXPECT_EQ(WEXITSTATUS(RunRedirected({.shell = "echo hi"})), 125) << "it is another's";
}

TEST_P(ExecScript, PlainLineIsUntouched) {
  EXPECT_EQ(PlainScript({.shell = "echo 'hi'  "}), "echo 'hi'  ");
  EXPECT_EQ(WEXITSTATUS(Run(PlainScript({.argv = {"sh", "-c", "exit 7"}, .cwd = "/tmp"}))), 7);
}

TEST_P(ExecScript, SignalReachesTheGroup) {
  // The group's id is the leader's pid, as execd arranges it.
  const pid_t leader = fork();
  if (leader == 0) {
    setpgid(0, 0);
    pause();
    _exit(0);
  }
  setpgid(leader, leader);
  fs::create_directory(folder_->path());
  std::ofstream(folder_->pid()) << leader << "\n";
  EXPECT_EQ(WEXITSTATUS(Run(SignalScript(*folder_, SIGUSR1))), 0);
  int status = 0;
  waitpid(leader, &status, 0);
  EXPECT_EQ(WTERMSIG(status), SIGUSR1);
  EXPECT_TRUE(fs::is_directory(folder_->sent(SIGUSR1)));
  EXPECT_FALSE(fs::exists(folder_->sent(SIGTERM)));
  EXPECT_EQ(WEXITSTATUS(Run(SignalScript(*folder_, SIGUSR1))), 3) << "it is gone";
  for (const char* bad : {"", "1", "-1", "12; id", "x"}) {
    std::ofstream(folder_->pid(), std::ios::trunc) << bad << "\n";
    EXPECT_EQ(WEXITSTATUS(Run(SignalScript(*folder_, SIGUSR1))), 4) << bad;
  }
  fs::remove(folder_->pid());
  EXPECT_EQ(WEXITSTATUS(Run(SignalScript(*folder_, SIGUSR1))), 4);
}

// What stays of commands that were cut or could not be started.
class ExecTraces : public ExecScript {
 protected:
  // Makes traces, the first one the oldest.
  void Make(int count) {
    for (int i = 0; i < count; ++i) {
      const ExecFolder folder(scratch_, std::to_string(1000 + made_));
      const bool cut = made_ % 2 == 0;
      const std::string trace = cut ? folder.cut() : folder.path();
      fs::create_directory(trace);
      if (!cut) std::ofstream(folder.failed()) << "127\n";
      fs::last_write_time(trace, fs::file_time_type::clock::now() - std::chrono::hours(9) +
                                     std::chrono::seconds(made_++));
      traces_.push_back(trace);
    }
  }
  // How many of them are there; those that are not are the oldest.
  int Left() {
    int left = 0;
    for (const std::string& trace : traces_) {
      if (fs::exists(trace)) ++left;
      EXPECT_TRUE(left == 0 || fs::exists(trace)) << trace;
    }
    return left;
  }
  // Signals a command that is gone.
  void SignalOne() {
    const pid_t gone = fork();
    if (gone == 0) _exit(0);
    waitpid(gone, nullptr, 0);
    fs::create_directory(folder_->path());
    std::ofstream(folder_->pid()) << gone << "\n";
    EXPECT_EQ(WEXITSTATUS(Run(SignalScript(*folder_, SIGKILL))), kSignalNoGroup);
  }
  std::vector<std::string> traces_;
  int made_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Shells, ExecTraces, ::testing::Values("bash", "dash"));

TEST_P(ExecTraces, TheNewestStay) {
  const std::vector<std::string> others = {"/.sandbox-bridge-0123",
                                           "/.sandbox-bridge-0123.in",
                                           "/.sandbox-bridge-0123.tmp",
                                           "/.sandbox-bridge-p-01234",
                                           "/theirs.cut",
                                           "/theirs"};
  for (const std::string& name : others) {
    fs::create_directory(scratch_ + name);
    std::ofstream(scratch_ + name + "/o") << "x";
    fs::last_write_time(scratch_ + name, fs::file_time_type::clock::now() - std::chrono::hours(99));
  }
  std::ofstream(scratch_ + "/theirs/x") << "x";
  Make(kKeptTraces);
  SignalOne();
  EXPECT_EQ(Left(), kKeptTraces);
  Make(kTracesPerSweep + 2);
  SignalOne();
  EXPECT_EQ(Left(), kKeptTraces + 2) << "as many as one script may remove";
  EXPECT_EQ(WEXITSTATUS(RunRedirected({.argv = {"true"}}, {.folder = true})), 0);
  EXPECT_EQ(Left(), kKeptTraces + 2) << "a command that runs does not pay for it";
  EXPECT_EQ(WEXITSTATUS(RunRedirected({.argv = {"no-such-program"}}, {.folder = true})), 127);
  EXPECT_EQ(Left(), kKeptTraces - 1) << "its own trace is the newest";
  EXPECT_EQ(ReadFile(folder_->failed()), "127\n");
  EXPECT_EQ(Out() + Err(), "");
  EXPECT_EQ(WEXITSTATUS(RunRedirected({.shell = "x", .cwd = "/no/such"}, {.folder = true})), 126);
  EXPECT_EQ(ReadFile(folder_->failed()), "cwd\n");
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(scratch_ + name + "/o")) << name;
}

}  // namespace
}  // namespace bridge
