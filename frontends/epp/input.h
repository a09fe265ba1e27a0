// SPDX-License-Identifier: Apache-2.0
//
// epp/input.h — the thread that reads the host's lines, and does nothing else.
//
// A plugin that stops reading blocks its host for ever: the host's writes have no timeout. So this
// thread never waits for anybody: it parses and hands over. The memory of what was handed over and
// not yet answered is bounded; a request beyond the bound is refused at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

#include "frontends/epp/line_splitter.h"
#include "frontends/epp/message.h"

namespace bridge::epp {

class InputReceiver {
 public:
  // Called on the reading thread; must not wait.
  virtual void OnMessage(Message message) = 0;
  // The host closed its end or cannot be read any more. Once, last.
  virtual void OnEndOfInput() = 0;

 protected:
  ~InputReceiver() = default;
};

// Bytes of requests that wait for their answers. Any thread.
class PendingBytes {
 public:
  explicit PendingBytes(size_t limit) : limit_(limit) {}
  // False: there is no room, nothing was taken.
  bool Take(size_t bytes);
  void Give(size_t bytes) { held_.fetch_sub(bytes); }
  size_t held() const { return held_.load(); }

 private:
  const size_t limit_;
  std::atomic<size_t> held_{0};
};

class Input final : private LineSink {
 public:
  // Reads `fd` until its end, or until Stop(). `receiver` and `pending` must outlive this object;
  // the receiver gives back `message.bytes` when it has answered.
  Input(int fd, PendingBytes& pending, InputReceiver& receiver);
  // Stops.
  ~Input();

  // Ends the thread, within a moment, also while the host keeps its end open. Any thread but ours.
  void Stop();

 private:
  void Run();
  void OnLine(std::string line) override;
  void OnOverlong(std::string_view beginning, uint64_t line_bytes) override;

  const int fd_;
  int wake_[2] = {-1, -1};  // a pipe: closing its write end wakes the thread
  PendingBytes& pending_;
  InputReceiver& receiver_;
  std::thread thread_;
};

}  // namespace bridge::epp
