// SPDX-License-Identifier: Apache-2.0
//
// The daemon as it is shipped: one file that runs where nothing else is, as pid 1 too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "bridge/base/c_strings.h"
#include "bridge/local/http/client.h"
#include "tests/fakes/sanitized.h"

namespace bridge::local::execd {
namespace {

using ::testing::HasSubstr;

constexpr char kBinary[] = "bridge/local/execd/execd";
constexpr absl::Duration kLong = absl::Seconds(20);

// bwrap with a root that holds the daemon and a directory for its port file; more if asked for.
class Bare {
 public:
  explicit Bare(const std::vector<std::string>& arguments,
                const std::vector<std::string>& more = {}) {
    std::string name = std::string(getenv("TEST_TMPDIR")) + "/bare_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) abort();
    shared_ = name;
    std::vector<std::string> command = {"bwrap",
                                        "--die-with-parent",
                                        "--unshare-pid",
                                        "--as-pid-1",
                                        "--tmpfs",
                                        "/",
                                        "--proc",
                                        "/proc",
                                        "--dev",
                                        "/dev",
                                        "--bind",
                                        shared_,
                                        "/run",
                                        "--ro-bind",
                                        std::filesystem::absolute(kBinary),
                                        "/execd"};
    command.insert(command.end(), more.begin(), more.end());
    command.emplace_back("/execd");
    command.insert(command.end(), arguments.begin(), arguments.end());
    const std::vector<char*> argv = CStrings(command);
    pid_ = fork();
    if (pid_ == 0) {
      execvp(argv[0], argv.data());
      _exit(126);
    }
  }
  ~Bare() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  int WaitForPort() const {
    int port = 0;
    for (const absl::Time end = absl::Now() + kLong; port == 0 && absl::Now() < end;) {
      std::ifstream(shared_ + "/port") >> port;
      absl::SleepFor(absl::Milliseconds(2));
    }
    return port;
  }
  // The program's exit code.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // To the daemon itself, which is the only child of bwrap.
  void Signal(int number) const {
    std::ifstream children("/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) +
                           "/children");
    pid_t child = 0;
    children >> child;
    kill(child, number);
  }

 private:
  std::string shared_;
  pid_t pid_;
};

const std::vector<std::string> kListen = {"--listen=127.0.0.1:0", "--port-file=/run/port"};
const std::vector<std::string> kUsr = {
    "--ro-bind", "/usr", "/usr",      "--symlink", "usr/bin", "/bin",    "--symlink",
    "usr/lib",   "/lib", "--symlink", "usr/lib64", "/lib64",  "--tmpfs", "/tmp"};

std::string Call(int port, std::string_view method, std::string_view target,
                 std::string_view body = "") {
  const auto answer = http::Fetch("127.0.0.1", port, method, target, {}, body, kLong);
  return answer.ok() ? std::to_string(answer->status) + " " + answer->body
                     : std::string(answer.status().message());
}

class Static : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer cannot be linked statically";
  }
};

// How the OpenSandbox server runs the image to get at the file.
TEST_F(Static, PlainArgumentsEndItAtOnceAndWell) {
  EXPECT_EQ(Bare({"tail", "-f", "/dev/null"}).Wait(), 0);
  EXPECT_EQ(Bare({"--nonsense"}).Wait(), 2);
}

TEST_F(Static, RunsWithNothingBesideIt) {
  const Bare bare(kListen);
  const int port = bare.WaitForPort();
  EXPECT_EQ(Call(port, "GET", "/ping"), "200 ");
  EXPECT_THAT(Call(port, "GET", "/directories/list?path=/run"), HasSubstr("\"/run/port\""));
  EXPECT_EQ(Call(port, "PUT", "/v1/file?path=/x", "hello").substr(0, 3), "200");
  EXPECT_EQ(Call(port, "GET", "/files/download?path=/x"), "200 hello");
  // There is no shell and no /tmp.
  EXPECT_EQ(Call(port, "POST", "/command", R"({"command":"true"})").substr(0, 3), "500");
  EXPECT_THAT(Call(port, "POST", "/v1/exec", R"({"shell":"true"})"), HasSubstr("NOT_FOUND"));
  // But programs that need nothing run: this one.
  EXPECT_THAT(Call(port, "POST", "/v1/exec", R"({"argv":["/execd","--nonsense"]})"),
              HasSubstr("execd: unknown flag --nonsense\n"));
}

TEST_F(Static, EndsWellOnSigtermAndTakesEverythingAlong) {
  Bare bare(kListen, kUsr);
  const int port = bare.WaitForPort();
  EXPECT_THAT(Call(port, "POST", "/command",
                   R"({"command":"(setsid sleep 1000 &) ; sleep 1000 &","background":true})"),
              HasSubstr("execution_complete"));
  bare.Signal(SIGTERM);
  EXPECT_EQ(bare.Wait(), 0);
}

TEST_F(Static, AsPid1ItReapsOrphans) {
  const Bare bare(kListen, kUsr);
  const int port = bare.WaitForPort();
  Call(port, "POST", "/command", R"({"command":"for i in 1 2 3 4 5; do (sleep 0.05 &) ; done"})");
  std::string processes;
  for (const absl::Time end = absl::Now() + kLong; absl::Now() < end;) {
    processes = Call(port, "GET", "/v1/processes");
    if (processes.find("\"sleep\"") == std::string::npos &&
        processes.find("\"state\":\"Z\"") == std::string::npos) {
      break;
    }
  }
  EXPECT_THAT(processes, Not(HasSubstr("\"state\":\"Z\"")));
  EXPECT_THAT(processes, HasSubstr("\"pid\":1,"));
}

}  // namespace
}  // namespace bridge::local::execd
