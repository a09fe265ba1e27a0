// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/output_ring.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "bridge/local/execd/spool.h"

namespace bridge::local::execd::extra {
namespace {

constexpr int64_t kMemoryBytes = 64 * 1024;

}  // namespace

OutputRing::~OutputRing() {
  if (fd_ >= 0) close(fd_);
}

bool OutputRing::WriteFile(int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const int64_t at = offset % capacity_;
    const size_t run = static_cast<size_t>(std::min<int64_t>(capacity_ - at, bytes.size()));
    const ssize_t n = pwrite(fd_, bytes.data(), run, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(n);
    offset += n;
  }
  return true;
}

bool OutputRing::MoveToFile() {
  fd_ = OpenNamelessFile();
  if (fd_ >= 0 && WriteFile(0, memory_)) {
    memory_ = std::string();
    return true;
  }
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  return false;
}

void OutputRing::Append(std::string_view bytes) {
  // Each piece fits between what is the oldest and itself.
  while (!bytes.empty()) {
    const size_t n = static_cast<size_t>(std::min<int64_t>(bytes.size(), capacity_));
    AppendPiece(bytes.substr(0, n));
    bytes.remove_prefix(n);
  }
}

void OutputRing::AppendPiece(std::string_view bytes) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (fd_ < 0 && capacity_ > kMemoryBytes && end_ + size > kMemoryBytes && !MoveToFile()) {
    // No file at all: what memory holds is all there can be.
    capacity_ = kMemoryBytes;
  }
  if (fd_ >= 0) {
    if (!WriteFile(end_, bytes)) {
      if (end_ < capacity_ && end_ >= kMemoryBytes) {
        // It did not grow: from now on it turns round where it ends.
        capacity_ = end_;
        Append(bytes);
        return;
      }
      begin_ = end_ + size;  // what was overwritten by half is not trusted
    }
  } else {
    memory_.append(bytes);
    if (static_cast<int64_t>(memory_.size()) > capacity_) {
      memory_.erase(0, memory_.size() - static_cast<size_t>(capacity_));
    }
  }
  end_ += size;
  begin_ = std::max(begin_, end_ - capacity_);
}

std::string OutputRing::Read(int64_t offset, size_t most) const {
  size_t size = static_cast<size_t>(std::min<int64_t>(end_ - offset, static_cast<int64_t>(most)));
  if (fd_ < 0) return memory_.substr(memory_.size() - static_cast<size_t>(end_ - offset), size);
  std::string out(size, '\0');
  size_t got = 0;
  while (got < size) {
    const int64_t at = (offset + static_cast<int64_t>(got)) % capacity_;
    const size_t run = static_cast<size_t>(std::min<int64_t>(capacity_ - at, size - got));
    const ssize_t n = pread(fd_, out.data() + got, run, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // cannot be: it was written
    got += static_cast<size_t>(n);
  }
  out.resize(got);
  return out;
}

}  // namespace bridge::local::execd::extra
