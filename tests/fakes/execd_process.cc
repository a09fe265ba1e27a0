// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/execd_process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "bridge/base/c_strings.h"

namespace bridge {
namespace {

namespace fs = std::filesystem;

constexpr char kBinary[] = "bridge/local/execd/execd";

int ReadPort(const std::string& path) {
  int port = 0;
  std::ifstream(path) >> port;
  return port;
}

}  // namespace

ExecdProcess::ExecdProcess(std::vector<std::string> args) {
  std::string name = fs::temp_directory_path() / "execd.XXXXXX";
  tmpdir_ = mkdtemp(name.data());
  const std::string port_file = tmpdir_ + "/port";
  args.insert(args.begin(), {kBinary, "--listen=127.0.0.1:0", "--port-file=" + port_file});
  const std::vector<char*> argv = CStrings(args);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TMPDIR", tmpdir_.c_str(), 1);
    execv(kBinary, argv.data());
    std::perror(kBinary);
    _exit(127);
  }
  // The file appears complete, by a rename. There is nothing to be notified by.
  for (int i = 0; i < 1000 && port_ == 0; ++i) {
    port_ = ReadPort(port_file);
    if (port_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (port_ == 0) {
    std::fprintf(stderr, "execd did not come up\n");
    std::abort();
  }
  fs::remove(port_file);
}

ExecdProcess::~ExecdProcess() {
  Kill(SIGCONT);
  Kill(SIGTERM);
  waitpid(pid_, nullptr, 0);
  std::error_code ignored;
  fs::remove_all(tmpdir_, ignored);
}

std::string ExecdProcess::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

void ExecdProcess::Kill(int signal) const { kill(pid_, signal); }

std::vector<pid_t> ProcessesWith(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = atoi(entry.path().filename().c_str());
    if (pid <= 0 || pid == getpid()) continue;
    std::ifstream in(entry.path() / "cmdline", std::ios::binary);
    // Read so that a process which ends meanwhile is an empty line and no exception.
    std::ostringstream content;
    content << in.rdbuf();
    const std::string line = content.str();
    if (line.find(text) != std::string::npos) found.push_back(pid);  // a zombie's is empty
  }
  return found;
}

std::vector<pid_t> SurvivorsWith(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::vector<pid_t> left = ProcessesWith(text);
  while (!left.empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    left = ProcessesWith(text);
  }
  return left;
}

}  // namespace bridge
