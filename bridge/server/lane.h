// SPDX-License-Identifier: Apache-2.0
//
// server/lane.h — one event loop and everything upstream whose state belongs to it. A call runs on
// one lane from its start to its end and uses that lane's clients only, so no client has a lock.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "bridge/base/clock.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/http.h"
#include "bridge/net/task_scope.h"
#include "bridge/server/upstream.h"

namespace bridge {

struct Lane {
  Lane(Clock& clock, std::string_view name, HttpClientOptions http_options,
       DirectoryGroup& directories, const UpstreamClientsOptions& upstream)
      : loop(clock, name),
        http(loop, std::move(http_options)),
        clients(http, background, directories, upstream) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  EventLoop loop;
  HttpClient http;
  // Work that outlives the call that wanted it. Drained before the lane is destroyed.
  TaskScope background;
  UpstreamClients clients;
};

// Unary calls have a lane of their own, so that thousands of open streams never slow one down.
struct Lanes {
  Lanes(Clock& clock, const HttpClientOptions& http, const UpstreamClientsOptions& upstream)
      : control(clock, "control", http, directories, upstream),
        streams(clock, "streams", http, directories, upstream) {}

  std::array<Lane*, 2> all() { return {&control, &streams}; }

  // What one lane learns of a sandbox's whereabouts the other one knows.
  DirectoryGroup directories;
  Lane control;
  Lane streams;
};

}  // namespace bridge
