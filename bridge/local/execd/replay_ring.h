// SPDX-License-Identifier: Apache-2.0
//
// local/execd/replay_ring.h — the newest bytes of a numbered output. Byte 0 is the first ever
// appended; numbering never restarts. Not thread safe: its owner locks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bridge::local::execd {

class ReplayRing {
 public:
  explicit ReplayRing(size_t capacity) : capacity_(capacity) {}

  void Append(std::string_view bytes);

  // Number of the next byte to be appended.
  int64_t end() const { return end_; }
  // Number of the oldest byte still held.
  int64_t begin() const { return end_ - static_cast<int64_t>(buffer_.size()); }

  // What is held of [since, end()). `*offset` is the number of its first byte, which is later than
  // `since` when older bytes are gone. Empty when `since` is at or beyond the end.
  std::string ReadFrom(int64_t since, int64_t* offset) const;

 private:
  const size_t capacity_;
  std::string buffer_;  // grows up to capacity_, then is used as a circle
  size_t next_ = 0;     // where the next byte goes once buffer_ is full
  int64_t end_ = 0;
};

}  // namespace bridge::local::execd
