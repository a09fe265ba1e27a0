// SPDX-License-Identifier: Apache-2.0
//
// service/method.h — what the machinery of calls needs to know of an RPC.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace bridge {

struct Method {
  // "sandbox.bridge.v1.ExecService/Run". A literal: it is kept by reference.
  const char* name;
  bool streaming = false;
  // How long a call runs when its caller set no deadline.
  absl::Duration default_deadline = absl::InfiniteDuration();
  // Memory that the request holds until the call ends; counted against the limits.
  int64_t request_bytes = 0;

  constexpr Method WithDefaultDeadline(absl::Duration d) const {
    Method copy = *this;
    copy.default_deadline = d;
    return copy;
  }
  // For methods whose requests may be large: kRun.Charging(*request).
  template <class Message>
  Method Charging(const Message& request) const {
    Method copy = *this;
    copy.request_bytes = static_cast<int64_t>(request.ByteSizeLong());
    return copy;
  }
};

constexpr Method UnaryMethod(const char* name) { return {name, false, absl::Seconds(30)}; }
constexpr Method StreamingMethod(const char* name) { return {name, true}; }

}  // namespace bridge
