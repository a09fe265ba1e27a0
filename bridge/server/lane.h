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

namespace bridge {

struct Lane {
  Lane(Clock& clock, std::string_view name, HttpClientOptions http_options)
      : loop(clock, name), http(loop, std::move(http_options)) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  EventLoop loop;
  HttpClient http;
  // Work that outlives the call that wanted it. Drained before the lane is destroyed.
  TaskScope background;
};

// Unary calls have a lane of their own, so that thousands of open streams never slow one down.
struct Lanes {
  Lanes(Clock& clock, const HttpClientOptions& http)
      : control(clock, "control", http), streams(clock, "streams", http) {}

  std::array<Lane*, 2> all() { return {&control, &streams}; }

  Lane control;
  Lane streams;
};

}  // namespace bridge
