// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_replay.h"

#include <algorithm>
#include <map>
#include <utility>

namespace bridge {
namespace {

// The edge and so much of the nonce, or so much of it and what follows, is certainly a mark's. Of
// each mark in two parts one has that.
constexpr size_t kCertain = 17;
constexpr int64_t kLeastBudget = 64 * 1024;

class Replay {
 public:
  Replay(std::string_view nonce, int64_t spread, std::string* data)
      : pattern_(nonce),
        certain_(pattern_.prefix().size() - kCertain),
        spread_(static_cast<size_t>(spread)),
        data_(*data),
        budget_(static_cast<int64_t>(4 * data->size()) + kLeastBudget) {}

  // Moves the first part of each mark that lies there in two to the second one. Of what is alone, a
  // second part goes to the beginning, since its first one lies before, and a first one to the end.
  void Join() {
    for (size_t at = data_.find(kProcessMarkEdge); at != std::string::npos && budget_ > 0;
         at = data_.find(kProcessMarkEdge, at + 1)) {
      const size_t size = Matched(at);
      if (size < kProcessMarkBytes && size >= kCertain && at + size < data_.size()) {
        JoinFirst(at, size);
      }
    }
    const std::string_view nonce_end = pattern_.prefix().substr(certain_);
    for (size_t at = data_.find(nonce_end); at != std::string::npos && budget_ > 0;
         at = data_.find(nonce_end, at + 1)) {
      if (IsRest(at, certain_)) JoinSecond(at);
    }
  }

  // How many bytes at the beginning are the rest of a mark. A lone edge may be the program's.
  size_t RestSize() const {
    for (size_t from = 1; from + 1 < kProcessMarkBytes; ++from) {
      if (IsRest(0, from)) return kProcessMarkBytes - from;
    }
    return 0;
  }

  bool IsMark(size_t at) const { return Matched(at) == kProcessMarkBytes; }

 private:
  size_t Matched(size_t at) const { return pattern_.Match(0, std::string_view(data_).substr(at)); }
  // A mark's bytes from `from` to its end.
  bool IsRest(size_t at, size_t from) const {
    return pattern_.Match(from, std::string_view(data_).substr(at)) == kProcessMarkBytes - from;
  }
  bool InMark(size_t at) const {
    const size_t before = std::min(at, kProcessMarkBytes - 1);
    for (size_t begin = at - before; begin <= at; ++begin) {
      if (data_[begin] == kProcessMarkEdge && IsMark(begin)) return true;
    }
    return false;
  }
  void Move(size_t from, size_t size, size_t to) {
    const auto begin = data_.begin();
    std::rotate(begin + from, begin + from + size, begin + to);
  }

  // At `at` is the certain end of a nonce, and the rest of its mark behind it.
  void JoinSecond(size_t at) {
    size_t from = certain_;
    while (from > 0 && at > 0 && data_[at - 1] == pattern_.prefix()[from - 1]) --from, --at;
    if (from == 0) {
      // Its own edge, or the end of another mark?
      if (at + 1 < kProcessMarkBytes || !IsMark(at + 1 - kProcessMarkBytes)) return;
      ++from, ++at;
    }
    // What lies between them may begin as the second part does, or end as the first one.
    for (const size_t more : {size_t{0}, size_t{1}, size_t{2}, kProcessMarkBytes}) {
      for (size_t size = from; size <= certain_; ++size) {
        const size_t rest = at + size - from;
        const size_t first = FindFirst(size, rest, size + more);
        if (first != std::string::npos) return Move(first, size, rest);
      }
    }
    Move(0, at, at + kProcessMarkBytes - from);  // to the beginning
  }

  // The nearest first part of this size, and seemingly of no more than `most`, before `rest`.
  size_t FindFirst(size_t size, size_t rest, size_t most) {
    const std::string_view text = pattern_.prefix().substr(0, size);
    const size_t begin = rest - std::min(rest, spread_);
    size_t end = rest;
    while (budget_ > 0) {
      const size_t at = std::string_view(data_).substr(begin, end - begin).rfind(text);
      const bool none = at == std::string_view::npos;
      budget_ -= static_cast<int64_t>(none ? end - begin : end - begin - at + kProcessMarkBytes);
      if (none) break;
      if (Matched(begin + at) <= most && !InMark(begin + at)) return begin + at;
      end = begin + at + size - 1;
    }
    return std::string::npos;
  }

  // At `first` are so many bytes of a mark. What lies between the parts may begin as the second one
  // does, or end as the first one.
  void JoinFirst(size_t first, size_t matched) {
    for (size_t size = matched; size >= kCertain; --size) {
      for (const bool exact : {true, false}) {
        const size_t end = std::min(data_.size(), first + size + spread_);
        for (size_t rest = first + size; rest < end && budget_ > 0; ++rest, --budget_) {
          if (!IsRest(rest, size) || (exact && IsRest(rest - 1, size - 1))) continue;
          if (!InMark(rest)) return Move(first, size, rest);
        }
      }
    }
    Move(first, matched, data_.size());
  }

  const ProcessMarkPattern pattern_;
  const size_t certain_;  // where in a mark the certain end of its nonce begins
  const size_t spread_;
  std::string& data_;
  // Bytes that may still be looked at: a program that knows its nonce may print parts without end.
  int64_t budget_;
};

struct Copies {
  int count = 0;
  int64_t at = 0;  // of the first one
};

// The marks in it by their numbers, and what they tell.
std::optional<BeforeReplay> CountMarks(const Replay& replay, std::string_view data,
                                       std::map<int, Copies>* marks) {
  std::optional<BeforeReplay> before;
  size_t at = data.find(kProcessMarkEdge);
  while (at != std::string::npos) {
    size_t next = at + 1;
    if (replay.IsMark(at)) {
      next = at + kProcessMarkBytes;
      const auto mark = ParseProcessMark(data.substr(at, kProcessMarkBytes));
      if (!before) before.emplace().marks = mark->number;
      Copies& copies = (*marks)[mark->number];
      if (copies.count++ == 0) copies.at = static_cast<int64_t>(at);
    }
    at = data.find(kProcessMarkEdge, next);
  }
  return before;
}

}  // namespace

ProcessReplay PutReplayInOrder(std::string_view nonce, bool terminal, int64_t offset,
                               std::string data, int64_t spread) {
  Replay replay(nonce, spread, &data);
  if (!terminal) replay.Join();
  const size_t rest = offset > 0 ? replay.RestSize() : 0;
  data.erase(0, rest);
  ProcessReplay result{.data = {}, .offset = offset + static_cast<int64_t>(rest)};
  std::map<int, Copies> marks;
  result.before = CountMarks(replay, data, &marks);
  if (result.before) {
    // Counted from the end, where all of them were read but those that are still to come.
    const int each = terminal ? 1 : 2;
    const int last = marks.rbegin()->first;
    int64_t copies_before = int64_t{each} * (last + 1);
    for (const auto& [number, copies] : marks) {
      const bool to_come = copies.count < each && (offset == 0 || copies.at >= spread);
      copies_before -= copies.count + (to_come ? 1 : 0);
      if (number == last) result.before->last_copy = copies.count < each && !to_come;
    }
    // The rest at the beginning belongs to one that is counted as a whole.
    result.before->hidden = std::clamp<int64_t>(
        copies_before * static_cast<int64_t>(kProcessMarkBytes), 0, result.offset);
  }
  result.data = std::move(data);
  return result;
}

}  // namespace bridge
