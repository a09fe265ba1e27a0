// SPDX-License-Identifier: Apache-2.0
//
// bench_client — one measurement a run, through the bridge or around it, printed as a line of JSON.
// Run by tests/bench/run; see bench_client --help.
#include <curl/curl.h>

#include <atomic>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "tests/bench/client/at_once.h"
#include "tests/bench/client/direct.h"
#include "tests/bench/client/over_grpc.h"

ABSL_FLAG(std::string, bridge, "", "Address of the bridge.");
ABSL_FLAG(std::vector<std::string>, sandbox, {""},
          "Where to work: each thread in the next of them.");
ABSL_FLAG(std::string, image, "", "What to make a sandbox of.");
ABSL_FLAG(std::string, url, "", "What to ask without the bridge.");
ABSL_FLAG(std::vector<std::string>, headers, {}, "NAME:VALUE to send with it.");
ABSL_FLAG(std::string, command, "", "A line for the sandbox's shell.");
ABSL_FLAG(std::string, path, "", "A file of the sandbox.");
ABSL_FLAG(std::string, fidelity, "bytes", "bytes or lines.");
ABSL_FLAG(bool, stamped, false, "Each line of output is a time; measure how late it arrives.");
ABSL_FLAG(bool, gaps, false, "Let the server fall idle before each call.");
ABSL_FLAG(int, calls, 1000, "How many calls, or streams, a thread.");
ABSL_FLAG(int, execs, 1, "How many commands, files or sandboxes a thread, one after the other.");
ABSL_FLAG(int64_t, bytes, 1 << 20, "How large a file to write.");
ABSL_FLAG(int, threads, 1, "How many do it at once.");
ABSL_FLAG(int, in_flight, 64, "How many calls are on their way in unary-at-once.");

namespace bridge::bench {
namespace {

namespace v1 = sandbox::bridge::v1;

// All threads do the same; the time runs from the first one's start to the last one's end.
Sample AtOnce(int threads, const std::function<Sample()>& work) {
  if (threads == 1) return work();
  Sample all;
  std::mutex mutex;
  std::vector<std::thread> running;
  running.reserve(static_cast<size_t>(threads));
  const double start = Now();
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      const Sample one = work();
      const std::lock_guard lock(mutex);
      all.Add(one);
    });
  }
  for (auto& thread : running) thread.join();
  all.seconds = Now() - start;
  return all;
}

// One after the other; each one's time becomes a latency, unless the work has latencies of its own.
Sample InTurn(int times, const std::function<Sample()>& work) {
  Sample all;
  const double start = Now();
  for (int i = 0; i < times; ++i) {
    Sample one = work();
    if (one.latencies.empty()) one.latencies.push_back(one.seconds);
    all.Add(one);
  }
  all.seconds = Now() - start;
  return all;
}

Sample Measure(const std::string& what) {
  const DirectTarget direct{absl::GetFlag(FLAGS_url), absl::GetFlag(FLAGS_headers)};
  std::vector<std::string> sandboxes = absl::GetFlag(FLAGS_sandbox);
  if (sandboxes.empty()) sandboxes = {""};
  const std::string sandbox = sandboxes[0];
  const std::string command = absl::GetFlag(FLAGS_command);
  const std::string path = absl::GetFlag(FLAGS_path);
  const int64_t bytes = absl::GetFlag(FLAGS_bytes);
  const bool stamped = absl::GetFlag(FLAGS_stamped);
  const int calls = absl::GetFlag(FLAGS_calls);
  const int in_flight = absl::GetFlag(FLAGS_in_flight);
  const int times = absl::GetFlag(FLAGS_execs);
  const v1::Fidelity fidelity =
      absl::GetFlag(FLAGS_fidelity) == "lines" ? v1::FIDELITY_LINES : v1::FIDELITY_BYTES;
  const std::string address = absl::GetFlag(FLAGS_bridge);
  const auto channel = address.empty() ? nullptr : NewChannel(address);
  std::atomic<size_t> number = 0;  // of the thread
  const auto exec = [&] {
    const std::string& where = sandboxes[number++ % sandboxes.size()];
    return InTurn(times, [&] { return GrpcExec(channel, where, command, fidelity, stamped); });
  };
  const auto upload = [&] {
    const std::string own = path + std::to_string(number++);  // each thread has a file of its own
    return InTurn(times, [&] { return GrpcUpload(channel, sandbox, own, bytes); });
  };
  const auto in_turn = [times](auto work) { return [=] { return InTurn(times, work); }; };
  const std::map<std::string, std::function<Sample()>> measurements = {
      {"echo", [&] { return GrpcEcho(channel, calls); }},
      {"unary", [&] { return GrpcUnary(channel, sandbox, calls, absl::GetFlag(FLAGS_gaps)); }},
      {"unary-at-once", [&] { return GrpcAtOnce(channel, sandbox, calls, in_flight); }},
      {"exec", exec},
      {"create", [&] { return GrpcCreate(channel, absl::GetFlag(FLAGS_image), times); }},
      {"download", in_turn([&] { return GrpcDownload(channel, sandbox, path); })},
      {"upload", upload},
      {"idle", [&] { return GrpcIdle(channel, sandboxes, calls, fidelity); }},
      {"terminal-echo", [&] { return GrpcTerminalEcho(channel, sandbox, calls); }},
      {"idle-processes", [&] { return GrpcIdleProcesses(channel, sandboxes, calls); }},
      {"direct-unary", [&] { return DirectUnary(direct, calls); }},
      {"direct-at-once", [&] { return DirectAtOnce(direct, calls, in_flight); }},
      {"direct-exec", in_turn([&] { return DirectExec(direct, command, stamped); })},
      {"direct-download", in_turn([&] { return DirectDownload(direct); })},
      {"direct-upload", in_turn([&] { return DirectUpload(direct, path, bytes); })},
  };
  const auto found = measurements.find(what);
  if (found == measurements.end()) {
    Sample none;
    none.Fail("no measurement of this name");
    return none;
  }
  return AtOnce(absl::GetFlag(FLAGS_threads), found->second);
}

}  // namespace
}  // namespace bridge::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "bench_client (echo|unary|unary-at-once|exec|create|download|upload|idle|terminal-echo|"
      "idle-processes|direct-unary|direct-at-once|direct-exec|direct-download|direct-upload) "
      "[flags]");
  const std::vector<char*> words = absl::ParseCommandLine(argc, argv);
  if (words.size() != 2) {
    std::cerr << absl::ProgramUsageMessage() << "\n";
    return 2;
  }
  curl_global_init(CURL_GLOBAL_ALL);
  const bridge::bench::Sample sample = bridge::bench::Measure(words[1]);
  sample.Print();
  return sample.failures == 0 ? 0 : 1;
}
