// SPDX-License-Identifier: Apache-2.0
//
// Marks in a process's output are found, and no byte of the output is lost, however it is cut.
#include <string>
#include <vector>

#include "bridge/opensandbox/process_marker.h"
#include "tests/fuzz/fuzz.h"

namespace {

const std::string kNonce(32, 'n');

// Everything, with the marks written back to where they were.
std::string Scan(const std::vector<std::string_view>& pieces) {
  bridge::ProcessMarkScanner scanner(kNonce);
  std::string again;
  int64_t offset = 0;
  const auto take = [&](const std::vector<bridge::ProcessMarkScanner::Piece>& found) {
    for (const auto& piece : found) {
      FUZZ_CHECK(piece.offset == static_cast<int64_t>(again.size()));
      again += piece.mark ? bridge::FormatProcessMark(kNonce, *piece.mark) : piece.data;
    }
  };
  for (const std::string_view piece : pieces) {
    take(scanner.Feed(piece, offset));
    offset += static_cast<int64_t>(piece.size());
  }
  take(scanner.Finish());
  return again;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = bridge::FuzzText(data, size);
  const uint8_t choice = bridge::TakeChoice(&text);
  // A fuzzer would hardly guess the nonce: "#" stands for a mark's beginning.
  std::string output;
  for (const char c : text) output += c == '#' ? "\x1e" + kNonce + ":" : std::string(1, c);
  FUZZ_CHECK(Scan({output}) == output);
  FUZZ_CHECK(Scan(bridge::FuzzPieces(output, choice)) == output);
  return 0;
}
