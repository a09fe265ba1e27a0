// SPDX-License-Identifier: Apache-2.0
//
// local/faults/fault_hook.h — the actions of a plan on one exchange. See http::Hook for threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bridge/local/faults/faults.pb.h"
#include "bridge/local/http/exchange.h"

namespace bridge::local::faults {

class FaultHook final : public http::Hook {
 public:
  explicit FaultHook(Action action) : action_(std::move(action)) {}

  bool BeforeHandler(http::Exchange& exchange) override;
  void BeforeHead(http::Exchange& exchange, http::Response& head) override;
  After BeforeBody(http::Exchange& exchange, std::string& bytes) override;
  void BeforeEnd(http::Exchange& exchange, std::string& bytes) override;
  void AfterHandler(http::Exchange& exchange) override;

 private:
  bool WantsEvents() const;
  // Rewrites whole events; keeps an unfinished one back.
  After FilterEvents(std::string& bytes, bool message);
  After CountEvent(std::string event, std::string* out);
  // Cuts `bytes` where `limit` bytes of the body are through.
  bool Cut(int64_t limit, std::string& bytes) const;

  const Action action_;
  bool websocket_ = false;
  bool event_stream_ = false;
  int64_t bytes_sent_ = 0;
  int events_ = 0;
  std::string unfinished_;
};

}  // namespace bridge::local::faults
