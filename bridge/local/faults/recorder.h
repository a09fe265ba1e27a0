// SPDX-License-Identifier: Apache-2.0
//
// local/faults/recorder.h — remembers the requests that a server received, for tests to look at.
// Any thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "bridge/local/faults/faults.pb.h"
#include "bridge/local/http/exchange.h"

namespace bridge::local::faults {

struct RecordedRequest {
  Half half = ANY;
  std::string method;
  std::string target;  // as received
  std::string path;    // decoded
  http::Headers headers;
  std::string body;      // at most the recorder's limit of it, as far as a handler read it
  size_t body_size = 0;  // as far as a handler read it
  int status = 0;        // 0: not answered (yet)
  std::string peer;
};

class Recorder {
 public:
  explicit Recorder(size_t max_body_bytes = 1 << 20) : max_body_bytes_(max_body_bytes) {}

  // In the order of their heads' arrival.
  std::vector<RecordedRequest> requests() const;
  // Those of a method (empty: any) and a route ("/command/{id}/logs"; empty: any).
  std::vector<RecordedRequest> Matching(std::string_view method, std::string_view route) const;
  // Waits until there are at least `count` of them that were answered. False after `timeout`.
  bool WaitFor(std::string_view method, std::string_view route, size_t count,
               absl::Duration timeout) const;
  void Clear();

  // For http::ServerOptions::hooks. This object must outlive the server.
  http::HookFactory Hooks(Half half);

 private:
  class RecordingHook;

  const size_t max_body_bytes_;
  mutable std::mutex mu_;
  mutable std::condition_variable changed_;
  std::vector<std::shared_ptr<RecordedRequest>> requests_;
};

}  // namespace bridge::local::faults
