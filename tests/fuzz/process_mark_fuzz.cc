// SPDX-License-Identifier: Apache-2.0
//
// Marks in a process's output are found, and no byte of the output is lost, however it is cut.
#include <string>
#include <vector>

#include "bridge/opensandbox/process_marker.h"
#include "tests/fuzz/fuzz.h"

namespace {

const std::string kNonce(32, 'n');

using Piece = bridge::ProcessMarkScanner::Piece;
using bridge::StreamId;

// Everything, with the marks written back to where they were.
std::string Scan(const std::vector<std::string_view>& pieces) {
  bridge::ProcessMarkScanner scanner(kNonce, true);
  std::string again;
  size_t given = 0;
  const auto take = [&](const std::vector<Piece>& found) {
    for (const Piece& piece : found) {
      again += piece.mark ? bridge::FormatProcessMark(kNonce, *piece.mark) : piece.data;
    }
  };
  for (const std::string_view piece : pieces) {
    take(scanner.Feed(StreamId::kStdout, piece));
    given += piece.size();
    FUZZ_CHECK(scanner.kept_bytes() == given - again.size());
    FUZZ_CHECK(scanner.kept_bytes() < bridge::kProcessMarkBytes);
  }
  take(scanner.Release());
  return again;
}

// The same on both streams, a piece each in turn: each has its own, whatever the other has.
void ScanBoth(const std::vector<std::string_view>& pieces, const std::string& expected) {
  bridge::ProcessMarkScanner scanner(kNonce, false);
  std::string out, err;
  const auto take = [&](const std::vector<Piece>& found) {
    for (const Piece& piece : found) {
      std::string& stream = piece.stream == StreamId::kStderr ? err : out;
      stream += piece.mark ? bridge::FormatProcessMark(kNonce, *piece.mark) : piece.data;
    }
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    take(scanner.Feed(StreamId::kStdout, pieces[i]));
    if (i > 0) take(scanner.Feed(StreamId::kStderr, pieces[i - 1]));
  }
  if (!pieces.empty()) take(scanner.Feed(StreamId::kStderr, pieces.back()));
  take(scanner.Release());
  FUZZ_CHECK(out == expected);
  FUZZ_CHECK(err == expected);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = bridge::FuzzText(data, size);
  const uint8_t choice = bridge::TakeChoice(&text);
  // A fuzzer would hardly guess the nonce: "#" stands for a mark's beginning.
  std::string output;
  for (const char c : text) output += c == '#' ? "\x1e" + kNonce + ":" : std::string(1, c);
  FUZZ_CHECK(Scan({output}) == output);
  const auto pieces = bridge::FuzzPieces(output, choice);
  FUZZ_CHECK(Scan(pieces) == output);
  ScanBoth(pieces, output);
  return 0;
}
