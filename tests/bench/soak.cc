// SPDX-License-Identifier: Apache-2.0
//
// soak — all kinds of work at once for a while, before one bridge; says whether its memory,
// descriptors and threads stay as they are:
//   bazel run --config=opt //tests/bench:soak -- --duration=10m
// Exits 1 when any of the work failed or something grew.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bridge/local/local_opensandbox.h"
#include "sandbox/bridge/v1/sandboxes.grpc.pb.h"
#include "tests/bench/soak_work.h"
#include "tests/integration/exec_storm.h"
#include "tests/server/bridge_process.h"

ABSL_FLAG(absl::Duration, duration, absl::Minutes(10), "How long.");

namespace bridge::bench {
namespace {

namespace v1 = sandbox::bridge::v1;

// What must not grow, and by how much the last quarter's median may be above the second quarter's:
// the first one fills caches.
struct Watched {
  const char* metric;
  double unit;
  double allowed;
};
constexpr Watched kWatched[] = {{"process_resident_memory_bytes", 1 << 20, 8},
                                {"process_open_fds", 1, 16},
                                {"process_threads", 1, 2}};

class Tally {
 public:
  void Add(const std::string& work, const std::string& failure) {
    const std::lock_guard lock(mutex_);
    ++rounds_[work];
    if (failure.empty()) return;
    ++failures_;
    std::fprintf(stderr, "soak: %s: %s\n", work.c_str(), failure.c_str());
  }
  int Print() {
    const std::lock_guard lock(mutex_);
    for (const auto& [work, rounds] : rounds_)
      std::printf("%-12s %6d rounds\n", work.c_str(), rounds);
    std::printf("%-12s %6d\n", "failures", failures_);
    return failures_;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> rounds_;
  int failures_ = 0;
};

double MedianOf(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Prints the story of one figure; false when it grew.
bool Flat(const Watched& watched, const std::vector<double>& samples) {
  const auto quarter = static_cast<ptrdiff_t>(samples.size() / 4);
  const double early = MedianOf({samples.begin() + quarter, samples.begin() + 2 * quarter});
  const double late = MedianOf({samples.end() - quarter, samples.end()});
  const bool flat = (late - early) / watched.unit <= watched.allowed;
  std::printf("%-30s second quarter %8.1f, last quarter %8.1f, most %8.1f: %s\n", watched.metric,
              early / watched.unit, late / watched.unit,
              *std::max_element(samples.begin(), samples.end()) / watched.unit,
              flat ? "flat" : "GREW");
  return flat;
}

std::string MustCreate(const std::shared_ptr<grpc::Channel>& channel) {
  v1::CreateSandboxRequest request;
  request.mutable_spec()->set_image("base");
  request.mutable_spec()->mutable_ttl()->set_seconds(24 * 3600);
  grpc::ClientContext context;
  v1::CreateSandboxResponse response;
  (void)v1::SandboxService::NewStub(channel)->CreateSandbox(&context, request, &response);
  return response.sandbox().sandbox_id();
}

int Soak() {
  // As `bazel run` starts it: in the folder of what it needs (see BridgeProcess, too).
  local::LocalOptions options;
  options.execd = std::filesystem::absolute("bridge/local/execd/execd");
  options.bootstrap = std::filesystem::absolute("bridge/local/runtime/bootstrap");
  auto local = local::LocalOpenSandbox::Start(std::move(options));
  if (!local.ok()) {
    std::fprintf(stderr, "soak: %s\n", std::string(local.status().message()).c_str());
    return 1;
  }
  testing::BridgeProcess bridge({.arguments = {"--listen=127.0.0.1:0", "--admin_listen=127.0.0.1:0",
                                               "--upstream=" + (*local)->url()},
                                 .environment = {"SANDBOX_BRIDGE_API_KEY=unused"}});
  const auto channel =
      grpc::CreateChannel(bridge.WaitForAddress(), grpc::InsecureChannelCredentials());
  const int admin = bridge.WaitForAdminPort();
  const std::string id = MustCreate(channel);
  if (id.empty()) {
    std::fprintf(stderr, "soak: no sandbox could be made\n%s\n", bridge.log().c_str());
    return 1;
  }
  Tally tally;
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (const Work& work : AllWork(channel, id)) {
    workers.emplace_back([&tally, &stop, work] {
      while (!stop) tally.Add(work.name, work.round());
    });
  }
  std::map<std::string, std::vector<double>> samples;
  const absl::Time end = absl::Now() + absl::GetFlag(FLAGS_duration);
  const absl::Duration pause = std::min(absl::GetFlag(FLAGS_duration) / 40, absl::Seconds(5));
  while (absl::Now() < end) {
    absl::SleepFor(pause);
    for (const auto& [metric, unit, allowed] : kWatched) {
      samples[metric].push_back(testing::Metric(admin, metric));
    }
  }
  stop = true;
  for (auto& worker : workers) worker.join();
  bool good = tally.Print() == 0;
  for (const Watched& watched : kWatched) good = Flat(watched, samples[watched.metric]) && good;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace bridge::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return bridge::bench::Soak();
}
