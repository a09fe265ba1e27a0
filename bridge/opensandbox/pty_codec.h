// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/pty_codec.h — the frames of execd's /pty WebSocket: bytes ↔ values. Binary frames
// have a tag in front (0x00 input, 0x01 stdout, 0x02 stderr, 0x03 replay with an 8-byte big-endian
// offset), text frames are JSON objects. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "bridge/net/websocket.h"
#include "bridge/opensandbox/exec_types.h"
#include "bridge/opensandbox/process_types.h"

namespace bridge {

struct PtyFrame {
  enum class Kind { kOutput, kReplay, kConnected, kExit, kPong, kError, kOther };
  Kind kind = Kind::kOther;
  StreamId stream = StreamId::kStdout;  // kOutput
  int64_t offset = 0;                   // kReplay
  std::string data = {};                // kOutput, kReplay
  int exit_code = 0;                    // kExit; -1: a signal
  std::string code = {};                // kError: "START_FAILED"
  bool no_room = false;                 // kError: see no_room.h
};

// Errors: UPSTREAM_PROTOCOL. Takes the message's memory.
absl::StatusOr<PtyFrame> ParsePtyFrame(WebSocketMessage message);

std::string PtyInput(std::string_view bytes);
// Input of a process on pipes, as its wrapper takes it (process_script.cc): for one run of it, from
// the front of *bytes, of which it takes what one frame holds. Empty: the end of input.
std::string PtyPipeInput(std::string_view nonce, int run, std::string_view* bytes);
// PIPE_BUF of Linux, and the tag. A pipe takes so much whole or not at all, so that a daemon which
// breaks off, because its client goes or is displaced, leaves no half frame in it.
inline constexpr size_t kMaxPipeFrame = 4096 + 1;
std::string PtyResize(TerminalSize size);
inline constexpr std::string_view kPtyPing = "{\"type\":\"ping\"}";

// POST /pty and GET /pty/{id}.
std::string PtyRequestJson(const std::string& command);
absl::StatusOr<std::string> ParsePtyId(std::string_view json);
struct PtyState {
  bool running = false;
  int64_t output_offset = 0;
};
absl::StatusOr<PtyState> ParsePtyState(std::string_view json);

}  // namespace bridge
