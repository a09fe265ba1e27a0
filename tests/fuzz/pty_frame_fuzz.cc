// SPDX-License-Identifier: Apache-2.0
//
// Messages of /pty: any bytes are a frame or a failure; what is read as a replay is what the other
// side writes for that offset and those bytes.
#include <string>
#include <utility>

#include "bridge/local/execd/pty_frames.h"
#include "bridge/opensandbox/pty_codec.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = bridge::FuzzText(data, size);
  const bool is_text = (bridge::TakeChoice(&text) & 1) != 0;
  bridge::WebSocketMessage message;
  message.kind = is_text ? bridge::WebSocketKind::kText : bridge::WebSocketKind::kBinary;
  message.data = std::string(text);
  const auto frame = bridge::ParsePtyFrame(std::move(message));
  if (!frame.ok()) return 0;
  if (frame->kind == bridge::PtyFrame::Kind::kReplay) {
    FUZZ_CHECK(bridge::local::execd::PtyReplayFrame(frame->offset, frame->data) == text);
  }
  if (frame->kind == bridge::PtyFrame::Kind::kOutput) FUZZ_CHECK(frame->data == text.substr(1));
  return 0;
}
