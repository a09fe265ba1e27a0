// SPDX-License-Identifier: Apache-2.0
//
// A replay that is put in order keeps every byte but those of marks, and every mark that is whole.
#include <algorithm>
#include <string>

#include "bridge/opensandbox/process_replay.h"
#include "tests/fuzz/fuzz.h"

namespace {

const std::string kNonce = "93c1d7be820f5a64c7e2b0d91f38a65b";

std::string Sorted(std::string text) {
  std::sort(text.begin(), text.end());
  return text;
}

int CountMarks(const std::string& text) {
  const bridge::ProcessMarkPattern pattern(kNonce);
  int count = 0;
  for (size_t at = 0; at < text.size();) {
    const bool mark =
        pattern.Match(0, std::string_view(text).substr(at)) == bridge::kProcessMarkBytes;
    count += mark ? 1 : 0;
    at += mark ? bridge::kProcessMarkBytes : 1;
  }
  return count;
}

void Check(const std::string& text, bool terminal, int64_t offset, int64_t spread) {
  const bridge::ProcessReplay replay =
      bridge::PutReplayInOrder(kNonce, terminal, offset, text, spread);
  const auto rest = static_cast<size_t>(replay.offset - offset);
  FUZZ_CHECK(rest < bridge::kProcessMarkBytes);
  FUZZ_CHECK(replay.data.size() + rest == text.size());
  if (terminal || text.find('\x1e') == std::string::npos) {
    FUZZ_CHECK(replay.data == text.substr(rest));
  } else if (rest == 0) {
    FUZZ_CHECK(Sorted(replay.data) == Sorted(text));
  }
  const int marks = CountMarks(replay.data);
  FUZZ_CHECK(replay.before.has_value() == (marks > 0));
  if (replay.before) {
    FUZZ_CHECK(replay.before->hidden >= 0);
    FUZZ_CHECK(replay.before->hidden <= replay.offset);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = bridge::FuzzText(data, size);
  const uint8_t choice = bridge::TakeChoice(&text);
  // A fuzzer would hardly guess the nonce: "#" stands for a mark's beginning, "<" for the first
  // half of that, ">" for the second.
  std::string output;
  for (const char c : text) {
    if (c == '#' || c == '<') output += "\x1e" + kNonce.substr(0, 16);
    if (c == '#' || c == '>') output += kNonce.substr(16) + ":";
    if (c != '#' && c != '<' && c != '>') output += c;
  }
  for (const bool terminal : {false, true}) {
    Check(output, terminal, choice % 3 * 100, 1 + choice);
  }
  return 0;
}
