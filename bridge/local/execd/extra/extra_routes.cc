// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/extra_routes.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "bridge/local/execd/extra/file_change.h"
#include "bridge/local/execd/extra/file_read.h"
#include "bridge/local/execd/extra/file_write.h"
#include "bridge/local/execd/extra/process_list.h"
#include "bridge/local/execd/extra/request.h"
#include "bridge/local/execd/extra/watch.h"

namespace bridge::local::execd::extra {
namespace {

using http::Exchange;

struct Feature {
  const char* name;
  int version;
};

constexpr std::array<Feature, 10> kFeatures = {{{"exec", 1},
                                                {"exec.id", 1},
                                                {"exec.ws", 1},
                                                {"signal", 1},
                                                {"processes", 1},
                                                {"file.read", 1},
                                                {"file.write", 1},
                                                {"file.attributes", 1},
                                                {"file.move", 1},
                                                {"watch", 1}}};

std::string CapabilitiesJson(const std::string& compat) {
  std::string json =
      "{\"server\":\"sandbox-bridge-execd\",\"compat\":\"" + compat + "\",\"features\":[";
  for (const Feature& feature : kFeatures) {
    if (json.back() != '[') json += ',';
    json += std::string("{\"name\":\"") + feature.name +
            "\",\"version\":" + std::to_string(feature.version) + "}";
  }
  return json + "]}";
}

// Lines until the client goes, the directory is gone or the watch fails.
void FollowWatch(Exchange& exchange, Watch& watch, absl::Duration heartbeat) {
  absl::Time last_sent = absl::Now();
  while (true) {
    const absl::Duration wait = std::max(last_sent + heartbeat - absl::Now(), absl::ZeroDuration());
    pollfd fds[2] = {{watch.fd(), POLLIN, 0}, {exchange.fd(), POLLRDHUP, 0}};
    poll(fds, 2, static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
    if (fds[1].revents != 0) return;
    std::string lines;
    bool last = false;
    if (fds[0].revents != 0) {
      std::vector<WatchEvent> events;
      const auto failure = watch.Read(&events);
      for (const WatchEvent& event : events) lines += event.Line();
      if (failure) lines += "{\"event\":\"error\",\"error\":" + failure->Json() + "}\n";
      last = failure || (!events.empty() && events.back().kind == WatchEvent::Kind::kGone);
    }
    if (lines.empty() && absl::Now() >= last_sent + heartbeat) {
      lines = "{\"event\":\"heartbeat\"}\n";
    }
    if (!lines.empty()) {
      if (!exchange.Write(lines).ok()) return;
      last_sent = absl::Now();
    }
    if (last) {
      (void)exchange.Finish();
      return;
    }
  }
}

void HandleWatch(Exchange& exchange) {
  StrictQuery query(exchange.request());
  std::string path;
  bool recursive = false;
  std::optional<int64_t> heartbeat;
  query.Path("path", &path);
  query.Flag("recursive", &recursive);
  query.Integer("heartbeat_ms", 100, 3'600'000, &heartbeat);
  if (const auto failure = query.Finish()) return Reply(exchange, *failure);
  Watch watch;
  if (const auto failure = watch.Open(path, recursive)) return Reply(exchange, *failure);
  std::string ready = "{\"event\":\"ready\",";
  AppendText(ready, "path", path);
  const http::Response head{
      200, {{"Content-Type", "application/x-ndjson"}, {"Cache-Control", "no-store"}}, ""};
  if (!exchange.Start(head).ok() || !exchange.Write(ready + "}\n").ok()) return;
  FollowWatch(exchange, watch, absl::Milliseconds(heartbeat.value_or(15'000)));
}

}  // namespace

void AddExtraRoutes(http::Router& router, Execs& execs, std::string compat) {
  router.Add("GET", "/v1/capabilities", [json = CapabilitiesJson(compat)](Exchange& x) {
    (void)x.Respond({200, {{"Content-Type", "application/json"}}, json});
  });
  execs.AddRoutes(router);
  AddProcessRoutes(router);
  AddFileReadRoutes(router);
  AddFileWriteRoute(router);
  AddFileChangeRoutes(router);
  router.Add("GET", "/v1/watch", HandleWatch);
}

}  // namespace bridge::local::execd::extra
