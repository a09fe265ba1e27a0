// SPDX-License-Identifier: Apache-2.0
//
// Frames of our own daemon do not depend on how the bytes are cut; what was read is what is
// written.
#include <string>
#include <vector>

#include "bridge/opensandbox/exec_frames.h"
#include "tests/fuzz/fuzz.h"

namespace {

struct Result {
  std::string again;  // the frames, written
  bool ok = true, mid_frame = false;
  bool operator==(const Result&) const = default;
};

Result Parse(const std::vector<std::string_view>& pieces) {
  bridge::ExecFrameParser parser;
  Result result;
  for (const std::string_view piece : pieces) {
    parser.Feed(piece);
    bridge::ExecFrame frame;
    while (parser.Next(&frame)) {
      result.again += bridge::EncodeExecFrame(frame.type, frame.offset, frame.payload);
    }
  }
  result.ok = parser.status().ok();
  if (result.ok) result.mid_frame = parser.mid_frame();
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = bridge::FuzzText(data, size);
  const uint8_t choice = bridge::TakeChoice(&text);
  const Result whole = Parse({text});
  FUZZ_CHECK(Parse(bridge::FuzzPieces(text, choice)) == whole);
  // Three bytes of each head are not looked at.
  FUZZ_CHECK(Parse({whole.again}).again == whole.again);
  for (const auto parse :
       {+[](std::string_view json) { return bridge::ParseExecExited(json).ok(); },
        +[](std::string_view json) { return bridge::ParseExecStarted(json).ok(); },
        +[](std::string_view json) { return bridge::ParseExecRecord(json).ok(); }}) {
    (void)parse(text);
  }
  return 0;
}
