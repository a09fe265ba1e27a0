// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_marker.h"

#include <algorithm>
#include <utility>

namespace bridge {
namespace {

constexpr size_t kTailBytes = 13;               // K : DDD : NNNNNN \x1e
constexpr std::string_view kLetters = "resfc";  // in the order of ProcessMark::Kind

std::optional<int> Digits(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

std::optional<ProcessMark::Kind> ProcessMarkKind(std::string_view letter) {
  const size_t at = letter.size() == 1 ? kLetters.find(letter) : std::string_view::npos;
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<ProcessMark::Kind>(at);
}

std::string FormatProcessMark(std::string_view nonce, ProcessMark mark) {
  char tail[32];
  snprintf(tail, sizeof(tail), "%c:%03d:%06d", kLetters[static_cast<int>(mark.kind)], mark.value,
           mark.number);
  return kProcessMarkEdge + std::string(nonce) + ":" + tail + kProcessMarkEdge;
}

std::optional<ProcessMark> ParseProcessMark(std::string_view text) {
  if (text.size() != kProcessMarkBytes) return std::nullopt;
  const std::string_view tail = text.substr(kProcessMarkBytes - kTailBytes);
  if (tail[1] != ':' || tail[5] != ':' || tail[12] != kProcessMarkEdge) return std::nullopt;
  const auto kind = ProcessMarkKind(tail.substr(0, 1));
  const auto value = Digits(tail.substr(2, 3));
  const auto number = Digits(tail.substr(6, 6));
  if (!kind || !value || !number) return std::nullopt;
  return ProcessMark{*kind, *value, *number};
}

std::optional<Outcome> OutcomeOfMark(ProcessMark mark) {
  using Kind = SpawnFailed::Kind;
  switch (mark.kind) {
    case ProcessMark::Kind::kStarted:
      return std::nullopt;
    case ProcessMark::Kind::kExited:
      return ExitCode{mark.value};
    case ProcessMark::Kind::kSignal:
      return Signalled{mark.value, false};
    case ProcessMark::Kind::kCancelled:
      return CancelledEnd{true, Signalled{mark.value, false}};
    case ProcessMark::Kind::kFailed:
      break;
  }
  if (mark.value == 127) return SpawnFailed{Kind::kNotFound, "no such program"};
  if (mark.value == 126) return SpawnFailed{Kind::kNotExecutable, "the program cannot be executed"};
  if (mark.value == 125) return SpawnFailed{Kind::kBadUser, "the user or group cannot be assumed"};
  return SpawnFailed{Kind::kBadCwd, "the working directory cannot be entered"};
}

// Nothing but the first and the last byte of a marker is an edge: one that is given up holds no
// other.
size_t ProcessMarkPattern::Match(size_t at, std::string_view bytes) const {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto fits = [&](size_t place, char c) {
    if (place < prefix_.size()) return prefix_[place] == c;
    switch (place - prefix_.size()) {
      case 0:
        return kLetters.find(c) != std::string_view::npos;
      case 1:
      case 5:
        return c == ':';
      case 12:
        return c == kProcessMarkEdge;
      default:
        return digit(c);
    }
  };
  size_t n = 0;
  while (n < bytes.size() && at + n < kProcessMarkBytes && fits(at + n, bytes[n])) ++n;
  return n;
}

std::vector<ProcessMarkScanner::Piece> ProcessMarkScanner::Feed(std::optional<StreamId> stream,
                                                                std::string_view bytes) {
  Candidate& candidate = stream == StreamId::kStderr ? err_ : out_;
  while (!bytes.empty()) {
    if (candidate.text.empty()) {
      const size_t edge = std::min(bytes.find(kProcessMarkEdge), bytes.size());
      Append(stream, bytes.substr(0, edge), nullptr);
      bytes.remove_prefix(edge);
    }
    const size_t fits = pattern_.Match(candidate.text.size(), bytes);
    Append(stream, bytes.substr(0, fits), &candidate);
    bytes.remove_prefix(fits);
    if (candidate.text.size() == kProcessMarkBytes) {
      Complete(&candidate);
    } else if (!bytes.empty()) {
      Drop(&candidate);  // an edge that begins nothing
    }
  }
  // Who printed the end of a replay is not known: the other stream may go on with it as well.
  if (!stream && !terminal_ && !out_.text.empty()) {
    Drop(&err_);
    err_ = out_;
    for (Run* run : err_.runs) ++run->candidates;
  }
  return Known();
}

std::vector<ProcessMarkScanner::Piece> ProcessMarkScanner::Release() {
  Drop(&out_);
  Drop(&err_);
  return Known();
}

void ProcessMarkScanner::Append(std::optional<StreamId> stream, std::string_view bytes,
                                Candidate* candidate) {
  if (bytes.empty()) return;
  kept_ += bytes.size();
  runs_.push_back({stream, std::string(bytes), candidate != nullptr ? 1 : 0});
  if (candidate == nullptr) return Merge();
  candidate->text.append(bytes);
  candidate->runs.push_back(&runs_.back());
}

void ProcessMarkScanner::Complete(Candidate* candidate) {
  for (Run* run : candidate->runs) run->hidden = true;
  candidate->runs.back()->mark = ParseProcessMark(candidate->text);
  // Another stream's that began with the same bytes, at the end of a replay.
  Candidate& other = candidate == &out_ ? err_ : out_;
  if (!other.runs.empty() && other.runs.front() == candidate->runs.front()) Drop(&other);
  Drop(candidate);
}

void ProcessMarkScanner::Drop(Candidate* candidate) {
  for (Run* run : candidate->runs) --run->candidates;
  *candidate = {};
  Merge();
}

// Output of nothing but edges is still one run.
void ProcessMarkScanner::Merge() {
  if (runs_.size() < 2) return;
  Run& last = runs_.back();
  Run& before = runs_[runs_.size() - 2];
  const auto known = [](const Run& run) { return run.candidates == 0 && !run.hidden; };
  if (!known(last) || !known(before) || last.stream != before.stream) return;
  before.data.append(last.data);
  runs_.pop_back();
}

std::vector<ProcessMarkScanner::Piece> ProcessMarkScanner::Known() {
  std::vector<Piece> pieces;
  for (; !runs_.empty() && runs_.front().candidates == 0; runs_.pop_front()) {
    Run& run = runs_.front();
    kept_ -= run.data.size();
    if (run.mark) {
      pieces.push_back({run.stream, {}, run.mark});
    } else if (run.hidden) {
      continue;
    } else if (!pieces.empty() && !pieces.back().mark && pieces.back().stream == run.stream) {
      pieces.back().data.append(run.data);
    } else {
      pieces.push_back({run.stream, std::move(run.data)});
    }
  }
  return pieces;
}

void ProcessNumbering::Begin(int marks, int64_t hidden) {
  marks_ = marks;
  hidden_ = hidden;
}

void ProcessNumbering::Take(const ProcessMark& mark) {
  marks_ = std::max(marks_, mark.number + 1);
  hidden_ += static_cast<int64_t>(kProcessMarkBytes);
}

}  // namespace bridge
