// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/pty_codec.h"

#include <nlohmann/json.hpp>

#include "bridge/base/error.h"
#include "bridge/opensandbox/json.h"
#include "bridge/opensandbox/no_room.h"

namespace bridge {
namespace {

using Json = nlohmann::json;
constexpr size_t kOffsetBytes = 8;
constexpr size_t kMaxLengthAndBreak = 5;  // "4096\n"
constexpr size_t kMaxPrintfByte = 5;      // "\\0377"

absl::Status Malformed() {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   "the sandbox's daemon sent a terminal frame that cannot be read");
}

std::string Text(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

absl::StatusOr<PtyFrame> ParseText(const std::string& text) {
  const Json object = ParseJson(text);
  if (!object.is_object()) return Malformed();
  const std::string type = Text(object, "type");
  PtyFrame frame;
  if (type == "connected") {
    frame.kind = PtyFrame::Kind::kConnected;
  } else if (type == "pong") {
    frame.kind = PtyFrame::Kind::kPong;
  } else if (type == "error") {
    frame.kind = PtyFrame::Kind::kError;
    frame.code = Text(object, "code").substr(0, 64);
    frame.no_room = SaysNoRoom(Text(object, "error"));
  } else if (type == "exit") {
    const auto code = object.find("exit_code");
    if (code == object.end() || !code->is_number_integer()) return Malformed();
    frame.kind = PtyFrame::Kind::kExit;
    frame.exit_code = code->get<int>();
  }
  return frame;
}

// As bash's `printf %b` takes it. Neither a line break nor the sign that begins a header is in it,
// nor what a shell cannot hold in a variable, or some versions get wrong.
void AppendForPrintf(char c, std::string* text) {
  const auto byte = static_cast<unsigned char>(c);
  if (c == '\n') {
    text->append("\\n");
  } else if (c == '\\') {
    text->append("\\\\");
  } else if (byte >= ' ' && byte < 0x7f && c != '=') {
    text->push_back(c);
  } else {
    text->append("\\0");
    for (const int shift : {6, 3, 0}) text->push_back(static_cast<char>('0' + (byte >> shift & 7)));
  }
}

}  // namespace

absl::StatusOr<PtyFrame> ParsePtyFrame(WebSocketMessage message) {
  if (message.kind == WebSocketKind::kText) return ParseText(message.data);
  PtyFrame frame;
  if (message.data.empty()) return frame;
  switch (message.data[0]) {
    case 0x01:
    case 0x02:
      frame.kind = PtyFrame::Kind::kOutput;
      frame.stream = message.data[0] == 0x01 ? StreamId::kStdout : StreamId::kStderr;
      message.data.erase(0, 1);
      break;
    case 0x03: {
      if (message.data.size() < 1 + kOffsetBytes) return Malformed();
      frame.kind = PtyFrame::Kind::kReplay;
      uint64_t offset = 0;
      for (size_t i = 1; i <= kOffsetBytes; ++i) {
        offset = offset << 8 | static_cast<unsigned char>(message.data[i]);
      }
      frame.offset = static_cast<int64_t>(offset);
      if (frame.offset < 0) return Malformed();
      message.data.erase(0, 1 + kOffsetBytes);
      break;
    }
    default:
      return frame;
  }
  frame.data = std::move(message.data);
  return frame;
}

std::string PtyInput(std::string_view bytes) {
  std::string frame(1, '\0');
  frame.append(bytes);
  return frame;
}

std::string PtyPipeInput(std::string_view nonce, int run, std::string_view* bytes) {
  const std::string head = "\n=" + std::string(nonce) + " " + std::to_string(run) + " ";
  std::string data;
  while (!bytes->empty() &&
         head.size() + kMaxLengthAndBreak + data.size() + kMaxPrintfByte < kMaxPipeFrame) {
    AppendForPrintf(bytes->front(), &data);
    bytes->remove_prefix(1);
  }
  return PtyInput(head + std::to_string(data.size()) + "\n" + data);
}

std::string PtyResize(TerminalSize size) {
  return "{\"type\":\"resize\",\"cols\":" + std::to_string(size.columns) +
         ",\"rows\":" + std::to_string(size.rows) + "}";
}

std::string PtyRequestJson(const std::string& command) {
  const Json body = {{"command", command}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<std::string> ParsePtyId(std::string_view json) {
  const Json object = ParseJson(json);
  const std::string id = object.is_object() ? Text(object, "session_id") : std::string();
  if (id.empty()) return Malformed();
  return id;
}

absl::StatusOr<PtyState> ParsePtyState(std::string_view json) {
  const Json object = ParseJson(json);
  if (!object.is_object()) return Malformed();
  const auto running = object.find("running");
  const auto offset = object.find("output_offset");
  if (running == object.end() || !running->is_boolean() || offset == object.end() ||
      !offset->is_number_integer()) {
    return Malformed();
  }
  return PtyState{running->get<bool>(), offset->get<int64_t>()};
}

}  // namespace bridge
