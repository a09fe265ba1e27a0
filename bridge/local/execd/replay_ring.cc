// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/replay_ring.h"

#include <algorithm>

namespace bridge::local::execd {

void ReplayRing::Append(std::string_view bytes) {
  end_ += static_cast<int64_t>(bytes.size());
  if (bytes.size() > capacity_) bytes.remove_prefix(bytes.size() - capacity_);
  const size_t room = std::min(capacity_ - buffer_.size(), bytes.size());
  buffer_.append(bytes.substr(0, room));
  bytes.remove_prefix(room);
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), capacity_ - next_);
    buffer_.replace(next_, n, bytes.substr(0, n));
    next_ = (next_ + n) % capacity_;
    bytes.remove_prefix(n);
  }
}

std::string ReplayRing::ReadFrom(int64_t since, int64_t* offset) const {
  since = std::max(since, begin());
  *offset = since;
  if (since >= end_) return "";
  const auto skip = static_cast<size_t>(since - begin());
  const size_t length = buffer_.size() - skip;
  std::string out;
  out.reserve(length);
  // The oldest byte is at next_, which is 0 until the ring is full.
  const size_t start = (next_ + skip) % buffer_.size();
  const size_t first = std::min(length, buffer_.size() - start);
  out.append(buffer_, start, first);
  out.append(buffer_, 0, length - first);
  return out;
}

}  // namespace bridge::local::execd
