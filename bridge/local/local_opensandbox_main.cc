// SPDX-License-Identifier: Apache-2.0
//
// local_opensandbox: an OpenSandbox server without Docker. Prints its URL when it listens; ends on
// SIGTERM or SIGINT.
#include <signal.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/str_cat.h"
#include "bridge/base/descriptor_limit.h"
#include "bridge/base/read_file.h"
#include "bridge/base/standard_streams.h"
#include "bridge/base/version.h"
#include "bridge/local/http/socket.h"
#include "bridge/local/local_opensandbox.h"

ABSL_FLAG(std::string, listen, "127.0.0.1:8080", "HOST:PORT to listen on; port 0 is any free one");
ABSL_FLAG(std::string, api_key_file, "",
          "file with the key that clients must send; without one, LOCAL_OPENSANDBOX_API_KEY, and "
          "without that everything is open");
ABSL_FLAG(std::string, isolation, "",
          "overlay, bwrap or none; the default is the best of the first two that works here");
ABSL_FLAG(std::string, compat, "current", "version of execd to imitate: current or 1.1.0");
ABSL_FLAG(std::string, state_dir, "", "where sandboxes are recorded; a temporary one by default");
ABSL_FLAG(
    bool, keep_sandboxes, false,
    "sandboxes outlive this process, and its successor with the same --state_dir adopts them");
ABSL_FLAG(std::string, image_dir, "", "unpacked images, DIR/python:3.12 and so on");
ABSL_FLAG(bool, fail_on_missing_image, false,
          "fail a create whose image is not there, instead of using the host's root");
ABSL_FLAG(std::vector<std::string>, allowed_host_paths, {}, "host paths that may be mounted");
ABSL_FLAG(int64_t, sandbox_disk_mib, 4096, "size of a sandbox's writable root");
ABSL_FLAG(std::string, execd, "", "the execd program; beside this one by default");
ABSL_FLAG(std::string, bootstrap, "", "the bootstrap program; beside this one by default");
ABSL_FLAG(std::string, fault_plan_file, "", "misbehave by this plan (text form of faults.proto)");

namespace bridge::local {
namespace {

bool ReadFile(const std::string& path, std::string* text) {
  std::optional<std::string> content = bridge::ReadFile(path);
  if (!content) {
    fprintf(stderr, "local_opensandbox: cannot read %s: %s\n", path.c_str(), strerror(errno));
    return false;
  }
  *text = *std::move(content);
  return true;
}

bool ReadApiKey(LocalOptions* options) {
  const std::string path = absl::GetFlag(FLAGS_api_key_file);
  if (path.empty()) {
    const char* key = getenv("LOCAL_OPENSANDBOX_API_KEY");
    if (key != nullptr) options->api_key = key;
    return true;
  }
  if (!ReadFile(path, &options->api_key)) return false;
  while (!options->api_key.empty() && options->api_key.back() == '\n') options->api_key.pop_back();
  if (options->api_key.empty()) fprintf(stderr, "local_opensandbox: %s is empty\n", path.c_str());
  return !options->api_key.empty();
}

bool ReadFlags(LocalOptions* options) {
  const auto address = http::ParseHostPort(absl::GetFlag(FLAGS_listen));
  if (!address) {
    fprintf(stderr, "local_opensandbox: --listen wants HOST:PORT\n");
    return false;
  }
  options->host = address->host;
  options->port = address->port;
  const std::string isolation = absl::GetFlag(FLAGS_isolation);
  if (!isolation.empty()) {
    options->isolation = runtime::ParseIsolation(isolation);
    if (!options->isolation) {
      fprintf(stderr, "local_opensandbox: --isolation wants overlay, bwrap or none\n");
      return false;
    }
  }
  options->compat = absl::GetFlag(FLAGS_compat);
  options->state_dir = absl::GetFlag(FLAGS_state_dir);
  options->keep_sandboxes = absl::GetFlag(FLAGS_keep_sandboxes);
  options->image_dir = absl::GetFlag(FLAGS_image_dir);
  options->fail_on_missing_image = absl::GetFlag(FLAGS_fail_on_missing_image);
  options->allowed_host_paths = absl::GetFlag(FLAGS_allowed_host_paths);
  options->disk_bytes = absl::GetFlag(FLAGS_sandbox_disk_mib) << 20;
  options->execd = absl::GetFlag(FLAGS_execd);
  options->bootstrap = absl::GetFlag(FLAGS_bootstrap);
  options->intercept_execd = !absl::GetFlag(FLAGS_fault_plan_file).empty();
  options->log = [](std::string_view line) {
    fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  };
  return ReadApiKey(options);
}

int Run() {
  RaiseDescriptorLimit();
  LocalOptions options;
  if (!ReadFlags(&options)) return 2;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before any thread exists

  auto local = LocalOpenSandbox::Start(options);
  if (!local.ok()) {
    fprintf(stderr, "local_opensandbox: %s\n", std::string(local.status().message()).c_str());
    return 1;
  }
  const std::string plan_file = absl::GetFlag(FLAGS_fault_plan_file);
  if (!plan_file.empty()) {
    std::string plan;
    if (!ReadFile(plan_file, &plan)) return 2;
    if (const absl::Status set = (*local)->set_fault_plan(plan); !set.ok()) {
      fprintf(stderr, "local_opensandbox: %s\n", std::string(set.message()).c_str());
      return 2;
    }
  }
  printf("%s (isolation: %s)\n", (*local)->url().c_str(),
         std::string(runtime::IsolationName((*local)->isolation())).c_str());
  fflush(stdout);
  int signal_number = 0;
  sigwait(&ends, &signal_number);
  local->reset();
  return 0;
}

}  // namespace
}  // namespace bridge::local

RESERVE_STANDARD_STREAMS_BEFORE_MAIN;

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("An OpenSandbox server without Docker, for development and tests.");
  absl::FlagsUsageConfig usage;
  usage.version_string = [] { return absl::StrCat("local_opensandbox ", bridge::kVersion, "\n"); };
  absl::SetFlagsUsageConfig(std::move(usage));
  absl::ParseCommandLine(argc, argv);
  return bridge::local::Run();
}
