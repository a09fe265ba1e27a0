// SPDX-License-Identifier: Apache-2.0
//
// service/method.h — what the machinery of calls needs to know of an RPC.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace bridge {

// The largest request, which may hold 8 MiB of stdin. gRPC takes somewhat more, so that a larger
// one is refused in our words: gRPC's own refusal has none of the catalogue's.
inline constexpr int64_t kMaxRequestBytes = int64_t{16} << 20;
inline constexpr int64_t kMaxReceivedBytes = int64_t{64} << 20;

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
