// SPDX-License-Identifier: Apache-2.0
//
// The program local_opensandbox, from outside: how it starts, how it ends, and what it leaves
// behind when it is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "bridge/base/c_strings.h"
#include "bridge/base/version.h"
#include "bridge/local/http/client.h"
#include "bridge/local/runtime/process.h"

namespace bridge::local {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;

constexpr char kProgram[] = "bridge/local/local_opensandbox";

// A running local_opensandbox, and what it prints.
class Program {
 public:
  explicit Program(std::vector<std::string> args, std::vector<std::string> env = {}) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      for (const std::string& item : env) putenv(const_cast<char*>(item.c_str()));
      args.insert(args.begin(), kProgram);
      execv(kProgram, CStrings(args).data());
      _exit(127);
    }
    close(ends[1]);
    out_ = ends[0];
  }
  ~Program() {
    Kill(SIGKILL);
    close(out_);
  }

  // Reads until the line with the URL, and returns its port; 0 if the program ends before.
  int WaitForPort() {
    const std::string mark = "http://127.0.0.1:";
    std::array<char, 1000> bytes;
    while (output_.find(mark) == std::string::npos || output_.back() != '\n') {
      const ssize_t n = read(out_, bytes.data(), bytes.size());
      if (n <= 0) return 0;
      output_.append(bytes.data(), static_cast<size_t>(n));
    }
    return std::atoi(output_.c_str() + output_.find(mark) + mark.size());
  }

  std::string ReadToEnd() {
    std::array<char, 1000> bytes;
    ssize_t n = 0;
    while ((n = read(out_, bytes.data(), bytes.size())) > 0) {
      output_.append(bytes.data(), static_cast<size_t>(n));
    }
    return output_;
  }

  // Exit code, or 128 + signal.
  int Kill(int signal) {
    if (pid_ <= 0) return -1;
    if (signal != 0) kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  pid_t pid() const { return pid_; }
  const std::string& output() const { return output_; }

 private:
  pid_t pid_ = 0;
  int out_ = -1;
  std::string output_;
};

http::Response Call(int port, const std::string& method, const std::string& target,
                    const std::string& body = "", const http::Headers& headers = {}) {
  const auto response = http::Fetch("127.0.0.1", port, method, target, headers, body);
  return response.ok() ? *response
                       : http::Response{0, {}, std::string(response.status().message())};
}

std::string Create(int port,
                   const std::vector<std::string>& entrypoint = {"tail", "-f", "/dev/null"}) {
  const Json body = {{"image", {{"uri", "base"}}},
                     {"entrypoint", entrypoint},
                     {"resourceLimits", Json::object()},
                     {"timeout", 3600}};
  const http::Response response = Call(port, "POST", "/v1/sandboxes", body.dump());
  EXPECT_EQ(response.status, 202) << response.body;
  return response.status == 202 ? Json::parse(response.body)["id"].get<std::string>() : "";
}

Json Get(int port, const std::string& id) {
  const http::Response response = Call(port, "GET", "/v1/sandboxes/" + id);
  return response.status == 200 ? Json::parse(response.body) : Json();
}

template <class Condition>
bool Eventually(Condition condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    usleep(2000);
  }
  return true;
}

bool Lives(const runtime::ProcessStat& stat) {
  const auto now = runtime::ReadProcess(stat.pid);
  return now && now->start_ticks == stat.start_ticks && now->state != 'Z';
}

class MainTest : public ::testing::Test {
 protected:
  MainTest() {
    char name[] = "/tmp/main-test.XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~MainTest() override { fs::remove_all(dir_); }

  std::vector<std::string> Args(std::vector<std::string> more = {}) {
    more.insert(more.begin(), "--listen=127.0.0.1:0");
    return more;
  }

  std::string dir_;
};

TEST(LocalOpensandboxMain, TellsItsVersion) {
  Program program({"--version"});
  EXPECT_EQ(program.ReadToEnd(), std::string("local_opensandbox ") + kVersion + "\n");
  EXPECT_EQ(program.Kill(0), 0);
}

TEST_F(MainTest, TermEndsItAndItsSandboxes) {
  Program program(Args());
  const int port = program.WaitForPort();
  ASSERT_GT(port, 0) << program.output();
  const std::string id = Create(port);
  // The create answers before the last of its processes has been forked.
  auto inside = runtime::Descendants(program.pid());
  EXPECT_TRUE(Eventually([&] {
    inside = runtime::Descendants(program.pid());
    return inside.size() >= 3u;
  }));
  EXPECT_EQ(program.Kill(SIGTERM), 0);
  EXPECT_EQ(std::count_if(inside.begin(), inside.end(), Lives), 0) << "gone when it has ended";
}

TEST_F(MainTest, KilledItTakesItsSandboxesAlongAndTheNextOneCleansUp) {
  const std::vector<std::string> args = Args({"--state_dir=" + dir_ + "/state"});
  std::string id;
  {
    Program program(args);
    const int port = program.WaitForPort();
    ASSERT_GT(port, 0) << program.output();
    id = Create(port);
    const auto inside = runtime::Descendants(program.pid());
    program.Kill(SIGKILL);
    EXPECT_TRUE(Eventually([&] { return std::none_of(inside.begin(), inside.end(), Lives); }));
  }
  EXPECT_TRUE(fs::exists(dir_ + "/state/sandboxes/" + id));
  Program next(args);
  const int port = next.WaitForPort();
  ASSERT_GT(port, 0) << next.output();
  EXPECT_TRUE(Get(port, id).is_null());
  EXPECT_FALSE(fs::exists(dir_ + "/state/sandboxes/" + id));
  EXPECT_THAT(next.output(), HasSubstr("removing sandbox " + id));
}

TEST_F(MainTest, KeptSandboxesOutliveItsDeathAndAreAdopted) {
  const std::vector<std::string> args =
      Args({"--state_dir=" + dir_ + "/state", "--keep_sandboxes"});
  std::string living;
  std::string paused;
  std::string ending;
  std::string endpoint;
  {
    Program program(args);
    const int port = program.WaitForPort();
    ASSERT_GT(port, 0) << program.output();
    living = Create(port);
    paused = Create(port);
    ending = Create(port, {"sh", "-c", "while ! test -e /tmp/end; do sleep 0.01; done; exit 7"});
    EXPECT_EQ(Call(port, "POST", "/v1/sandboxes/" + paused + "/pause").status, 202);
    endpoint = Call(port, "GET", "/v1/sandboxes/" + living + "/endpoints/44772").body;
    const std::string ends = Json::parse(
        Call(port, "GET", "/v1/sandboxes/" + ending + "/endpoints/44772").body)["endpoint"];
    program.Kill(SIGKILL);
    // While nobody watches, one of them ends.
    const int execd = std::atoi(ends.c_str() + ends.find(':') + 1);
    // (The answer may be cut off by that.)
    Call(execd, "POST", "/command", R"({"command":"touch /tmp/end"})");
  }
  Program next(args);
  const int port = next.WaitForPort();
  ASSERT_GT(port, 0) << next.output();
  EXPECT_EQ(Get(port, living)["status"]["state"], "Running");
  EXPECT_EQ(Call(port, "GET", "/v1/sandboxes/" + living + "/endpoints/44772").body, endpoint);
  EXPECT_EQ(Call(port, "GET", "/v1/sandboxes/" + living + "/proxy/44772/ping").status, 200);
  EXPECT_EQ(Get(port, paused)["status"]["state"], "Paused");
  EXPECT_EQ(Call(port, "POST", "/v1/sandboxes/" + paused + "/resume").status, 202);
  EXPECT_EQ(Call(port, "GET", "/v1/sandboxes/" + paused + "/proxy/44772/ping").status, 200);
  EXPECT_TRUE(Eventually([&] { return Get(port, ending)["status"]["state"] == "Failed"; }));
  EXPECT_EQ(Get(port, ending)["status"]["message"], "Sandbox container exited with code 7.");
  for (const std::string& id : {living, paused, ending}) {
    EXPECT_EQ(Call(port, "DELETE", "/v1/sandboxes/" + id).status, 204) << id;
  }
  EXPECT_TRUE(fs::is_empty(dir_ + "/state/sandboxes"));
}

TEST_F(MainTest, KeepsThemAlsoOverAnOrderlyEnd) {
  const std::vector<std::string> args =
      Args({"--state_dir=" + dir_ + "/state", "--keep_sandboxes"});
  std::string id;
  {
    Program program(args);
    const int port = program.WaitForPort();
    ASSERT_GT(port, 0) << program.output();
    id = Create(port);
    EXPECT_EQ(program.Kill(SIGTERM), 0);
  }
  Program next(args);
  const int port = next.WaitForPort();
  EXPECT_EQ(Get(port, id)["status"]["state"], "Running");
  EXPECT_EQ(Call(port, "DELETE", "/v1/sandboxes/" + id).status, 204);
}

TEST_F(MainTest, OneStateDirectoryOneServer) {
  const std::vector<std::string> args = Args({"--state_dir=" + dir_ + "/state"});
  Program program(args);
  ASSERT_GT(program.WaitForPort(), 0);
  Program second(args);
  EXPECT_THAT(second.ReadToEnd(), HasSubstr("is in use by another process"));
  EXPECT_EQ(second.Kill(0), 1);
}

TEST_F(MainTest, ReadsTheKeyFromAFileAndAsksForIt) {
  std::ofstream(dir_ + "/key") << "s3cret\n";
  Program program(Args({"--api_key_file=" + dir_ + "/key"}));
  const int port = program.WaitForPort();
  EXPECT_EQ(Call(port, "GET", "/v1/sandboxes").status, 401);
  EXPECT_EQ(Call(port, "GET", "/v1/sandboxes", "", {{"OPEN-SANDBOX-API-KEY", "s3cret"}}).status,
            200);
}

TEST_F(MainTest, PlainProcessesOnlyWhenAskedForAndWithAWarning) {
  Program program(Args({"--isolation=none"}));
  const int port = program.WaitForPort();
  ASSERT_GT(port, 0) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("WARNING: --isolation=none"));
  const std::string id = Create(port);
  EXPECT_EQ(Call(port, "GET", "/v1/sandboxes/" + id + "/proxy/44772/ping").status, 200);
  EXPECT_EQ(Call(port, "GET", "/version").headers.Get("local-opensandbox-isolation"), "none");
}

TEST_F(MainTest, MisbehavesByAPlan) {
  std::ofstream(dir_ + "/plan") << R"(rule { route: "/health" action { answer { status: 503 } } })";
  Program program(Args({"--fault_plan_file=" + dir_ + "/plan"}));
  EXPECT_EQ(Call(program.WaitForPort(), "GET", "/health").status, 503);
}

TEST_F(MainTest, SaysWhatIsWrongWithItsFlags) {
  const auto complaint = [](std::vector<std::string> args) {
    Program program(args);
    const std::string output = program.ReadToEnd();
    EXPECT_NE(program.Kill(0), 0);
    return output;
  };
  EXPECT_THAT(complaint({"--listen=nowhere"}), HasSubstr("--listen wants HOST:PORT"));
  EXPECT_THAT(complaint(Args({"--isolation=docker"})),
              HasSubstr("--isolation wants overlay, bwrap or none"));
  EXPECT_THAT(complaint(Args({"--api_key_file=/nonexistent"})), HasSubstr("cannot read"));
  EXPECT_THAT(complaint(Args({"--execd=/nonexistent"})), HasSubstr("needs its program 'execd'"));
  EXPECT_THAT(complaint(Args({"--keep_sandboxes"})), HasSubstr("name one with --state_dir"));
}

}  // namespace
}  // namespace bridge::local
