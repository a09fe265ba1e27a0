// SPDX-License-Identifier: Apache-2.0
//
// epp/output.h — the thread that writes lines to the host, whole and in the order of the calls.
//
// Write() never waits. Producers of much output ask pending_bytes() and wait with OnDrained()
// before they make more, so that a host which does not read holds up those producers and nobody
// else. A host that is gone (EPIPE) is the end of the conversation, not an error: what follows is
// dropped. Any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"

namespace bridge::epp {

class Output {
 public:
  // Producers stop above this.
  static constexpr size_t kHighWatermarkBytes = 2 * 1024 * 1024;

  // Writes to `fd`, which stays open. `on_broken` is called once, on the writing thread, when the
  // host does not take any more.
  Output(int fd, std::function<void()> on_broken);
  // Writes what is queued, as far as the host takes it within a moment.
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // `line` ends with "\n" and has at most kMaxLineBytes: longer ones end the process, because they
  // would make the host end it and leak the sandbox.
  void Write(std::string line);

  size_t pending_bytes() const;
  // Calls `ready` on the writing thread as soon as at most half of kHighWatermarkBytes is pending;
  // at once, on the calling thread, if that is so already.
  void OnDrained(std::function<void()> ready);

  // Waits until everything is written, at most until `bound` has passed. False: it was not.
  bool Flush(absl::Duration bound);

 private:
  void Run();
  bool WriteAll(const std::string& line);

  const int fd_;
  const std::function<void()> on_broken_;
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::deque<std::string> queue_;               // guarded by mu_; the front one is being written
  std::vector<std::function<void()>> waiting_;  // guarded by mu_
  size_t pending_ = 0;                          // guarded by mu_: bytes of queue_
  bool stop_ = false;                           // guarded by mu_
  bool broken_ = false;                         // guarded by mu_
  std::thread thread_;
};

}  // namespace bridge::epp
