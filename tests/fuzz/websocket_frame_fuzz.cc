// SPDX-License-Identifier: Apache-2.0
//
// WebSocket frames do not depend on how the bytes are cut; what was read can be written and read
// again.
#include <string>
#include <vector>

#include "bridge/local/http/websocket_frame.h"
#include "tests/fuzz/fuzz.h"

namespace {

using bridge::local::http::WebSocketFrame;
using bridge::local::http::WebSocketFrameParser;

struct Result {
  std::vector<WebSocketFrame> frames;
  absl::StatusCode end = absl::StatusCode::kOk;
};

Result Parse(const std::vector<std::string_view>& pieces, bool masked) {
  WebSocketFrameParser parser(masked, 1024);
  Result result;
  for (const std::string_view piece : pieces) {
    parser.Feed(piece);
    while (result.end == absl::StatusCode::kOk) {
      auto frame = parser.Next();
      if (!frame.ok()) result.end = frame.status().code();
      if (!frame.ok() || !frame->has_value()) break;
      result.frames.push_back(**std::move(frame));
    }
  }
  return result;
}

bool Same(const Result& a, const Result& b) {
  if (a.end != b.end || a.frames.size() != b.frames.size()) return false;
  for (size_t i = 0; i < a.frames.size(); ++i) {
    if (a.frames[i].fin != b.frames[i].fin || a.frames[i].opcode != b.frames[i].opcode ||
        a.frames[i].payload != b.frames[i].payload) {
      return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = bridge::FuzzText(data, size);
  const uint8_t choice = bridge::TakeChoice(&text);
  const bool masked = (choice & 1) != 0;
  const Result whole = Parse({text}, masked);
  FUZZ_CHECK(Same(Parse(bridge::FuzzPieces(text, choice), masked), whole));
  std::string again;
  for (const WebSocketFrame& frame : whole.frames) {
    again += bridge::local::http::EncodeFrame(frame.opcode, frame.payload, frame.fin, std::nullopt);
  }
  Result read = Parse({again}, false);
  read.end = whole.end;
  FUZZ_CHECK(Same(read, whole));
  return 0;
}
