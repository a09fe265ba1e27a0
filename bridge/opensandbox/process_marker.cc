// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_marker.h"

#include <algorithm>

namespace bridge {
namespace {

constexpr char kEdge = '\x1e';

std::optional<int> Digits(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<ProcessMark> ParseTail(std::string_view tail) {
  // K : DDD : NNNNNN \x1e
  if (tail.size() != 13 || tail[1] != ':' || tail[5] != ':' || tail[12] != kEdge) {
    return std::nullopt;
  }
  ProcessMark mark;
  switch (tail[0]) {
    case 'r':
      mark.kind = ProcessMark::Kind::kStarted;
      break;
    case 'e':
      mark.kind = ProcessMark::Kind::kExited;
      break;
    case 's':
      mark.kind = ProcessMark::Kind::kSignal;
      break;
    case 'f':
      mark.kind = ProcessMark::Kind::kFailed;
      break;
    default:
      return std::nullopt;
  }
  const auto value = Digits(tail.substr(2, 3));
  const auto number = Digits(tail.substr(6, 6));
  if (!value || !number) return std::nullopt;
  mark.value = *value;
  mark.number = *number;
  return mark;
}

}  // namespace

std::string FormatProcessMark(std::string_view nonce, ProcessMark mark) {
  constexpr char kLetters[] = {'r', 'e', 's', 'f'};
  char tail[32];
  snprintf(tail, sizeof(tail), "%c:%03d:%06d", kLetters[static_cast<int>(mark.kind)], mark.value,
           mark.number);
  return kEdge + std::string(nonce) + ":" + tail + kEdge;
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
    case ProcessMark::Kind::kFailed:
      break;
  }
  if (mark.value == 127) return SpawnFailed{Kind::kNotFound, "no such program"};
  if (mark.value == 126) return SpawnFailed{Kind::kNotExecutable, "the program cannot be executed"};
  if (mark.value == 125) return SpawnFailed{Kind::kBadUser, "the user or group cannot be assumed"};
  return SpawnFailed{Kind::kBadCwd, "the working directory cannot be entered"};
}

std::vector<ProcessMarkScanner::Piece> ProcessMarkScanner::Feed(std::string_view bytes,
                                                                int64_t offset) {
  std::vector<Piece> pieces;
  if (kept_.empty()) offset_ = offset;
  kept_.append(bytes);
  std::string_view rest = kept_;
  while (!rest.empty()) {
    const size_t edge = rest.find(kEdge);
    if (edge == std::string_view::npos) {
      Emit(rest, &pieces);
      rest = {};
      break;
    }
    Emit(rest.substr(0, edge), &pieces);
    rest.remove_prefix(edge);
    const size_t common = std::min(rest.size(), prefix_.size());
    if (rest.substr(0, common) != std::string_view(prefix_).substr(0, common)) {
      Emit(rest.substr(0, 1), &pieces);  // an edge that begins nothing
      rest.remove_prefix(1);
      continue;
    }
    if (rest.size() < kProcessMarkBytes) break;  // may still become one
    const auto mark = ParseTail(rest.substr(prefix_.size(), kProcessMarkBytes - prefix_.size()));
    if (!mark) {
      Emit(rest.substr(0, 1), &pieces);
      rest.remove_prefix(1);
      continue;
    }
    pieces.push_back({{}, mark, offset_});
    offset_ += static_cast<int64_t>(kProcessMarkBytes);
    rest.remove_prefix(kProcessMarkBytes);
  }
  kept_ = std::string(rest);
  return pieces;
}

std::vector<ProcessMarkScanner::Piece> ProcessMarkScanner::Finish() {
  std::vector<Piece> pieces;
  Emit(kept_, &pieces);
  kept_.clear();
  return pieces;
}

void ProcessMarkScanner::Emit(std::string_view bytes, std::vector<Piece>* pieces) {
  if (bytes.empty()) return;
  if (!pieces->empty() && !pieces->back().mark) {
    pieces->back().data.append(bytes);
  } else {
    pieces->push_back({std::string(bytes), std::nullopt, offset_});
  }
  offset_ += static_cast<int64_t>(bytes.size());
}

void ProcessNumbering::Begin(int marks) {
  marks_ = marks;
  hidden_ = HiddenBytes(marks);
}

void ProcessNumbering::Take(const ProcessMark& mark) {
  marks_ = std::max(marks_, mark.number + 1);
  hidden_ += static_cast<int64_t>(kProcessMarkBytes);
}

}  // namespace bridge
