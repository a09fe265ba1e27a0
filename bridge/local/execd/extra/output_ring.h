// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/output_ring.h — the newest bytes of one output of an exec, by number. Little is held
// in memory, more in a file without a name. When the disk is full the ring gets smaller, it never
// loses a byte that it says it holds. Not thread safe: its owner locks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bridge::local::execd::extra {

class OutputRing {
 public:
  explicit OutputRing(int64_t capacity) : capacity_(capacity) {}
  ~OutputRing();
  OutputRing(const OutputRing&) = delete;
  OutputRing& operator=(const OutputRing&) = delete;

  int64_t begin() const { return begin_; }  // number of the oldest byte held
  int64_t end() const { return end_; }      // one past the newest

  // How many bytes may be appended so that `keep` (a number) stays held.
  int64_t Room(int64_t keep) const { return keep + capacity_ - end_; }

  // Forgets the oldest as needed.
  void Append(std::string_view bytes);

  // Up to `most` bytes from `offset`, which must be held or be end().
  std::string Read(int64_t offset, size_t most) const;

 private:
  bool MoveToFile();
  bool WriteFile(int64_t offset, std::string_view bytes);
  void AppendPiece(std::string_view bytes);

  int64_t capacity_;
  int64_t begin_ = 0;
  int64_t end_ = 0;
  std::string memory_;  // all of [0, end_), until there is a file
  int fd_ = -1;         // byte N is at N % capacity_
};

}  // namespace bridge::local::execd::extra
