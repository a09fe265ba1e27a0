// SPDX-License-Identifier: Apache-2.0
//
// tests/opensandbox/scripted_pty.h — attachments to a daemon whose every frame the test decides.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bridge/opensandbox/process_attachment.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/websocket_peer.h"
#include "tests/opensandbox/exec_fixture.h"

namespace bridge {

inline constexpr int kText = 1, kBinary = 2, kClose = 8;
inline const std::string kNonce(32, 'a');
inline constexpr char kNoFile[] = "{\"code\":\"FILE_NOT_FOUND\",\"message\":\"no such file\"}";
inline constexpr char kConnected[] =
    "{\"type\":\"connected\",\"session_id\":\"s\",\"mode\":\"pty\"}\n";

inline std::string Answer(int status, std::string_view body) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

inline std::string Frame(int opcode, std::string payload) {
  return EncodeFrame({.opcode = opcode, .payload = std::move(payload)});
}
inline std::string Out(std::string_view text) { return Frame(kBinary, "\x01" + std::string(text)); }
inline std::string Err(std::string_view text) { return Frame(kBinary, "\x02" + std::string(text)); }

inline std::string Replay(int64_t offset, std::string_view text) {
  std::string payload = "\x03";
  for (int shift = 56; shift >= 0; shift -= 8) payload += static_cast<char>(offset >> shift);
  return Frame(kBinary, payload + std::string(text));
}

// A daemon with one terminal, whose socket is the test's.
class ScriptedPty {
 public:
  using Socket = std::function<void(RawConnection&, const std::string& head)>;
  explicit ScriptedPty(Socket socket)
      : socket_(std::move(socket)), server_([this](RawConnection& peer) { Serve(peer); }) {}

  std::string url() const { return server_.Url(""); }
  std::string state = "{\"session_id\":\"s\",\"running\":true,\"output_offset\":0}";
  std::optional<std::string> state_later;  // once there was an attachment; "": the id is unknown
  std::string marks;     // the content of the file that counts them; empty: there is none
  bool running = false;  // the file that says so is there
  std::atomic<bool> asked = false;  // for it

 private:
  void Serve(RawConnection& peer) {
    while (true) {
      const std::string head = peer.ReadHead();
      if (head.empty()) return;
      if (head.rfind("GET /pty/s/ws", 0) == 0) {
        attached_ = true;
        return socket_(peer, head);
      }
      if (head.rfind("GET /pty/s ", 0) == 0) {
        const std::string now = attached_ ? state_later.value_or(state) : state;
        peer.Write(now.empty() ? Answer(404, "{}") : Answer(200, now));
      } else if (head.find("%2Fp ") != std::string::npos) {
        peer.Write(running ? Answer(200, "4711 1\n") : Answer(404, kNoFile));
        asked = true;
        asked.notify_all();
      } else if (head.find("%2Fn ") != std::string::npos && !marks.empty()) {
        peer.Write(Answer(200, marks));
      } else {
        peer.Write(Answer(404, kNoFile));
      }
    }
  }

  const Socket socket_;
  std::atomic<bool> attached_ = false;
  RawServer server_;
};

// What an attachment told, a word an event, and how it ended.
struct Told {
  absl::Status status;
  std::vector<std::string> events;
};

inline Told Attach(const ScriptedPty& pty, AttachOptions options = {.offset = 0},
                   bool terminal = true, size_t enough = 1000,
                   absl::Status explanation = absl::OkStatus(), const std::string& input = "") {
  ExecBench bench(pty.url());
  bench.directory.SetExplanation(std::move(explanation));
  return RunTask(bench.loop, [&]() -> Task<Told> {
    Told told;
    SandboxHandle sandbox{bench.daemon,
                          bench.background,
                          {},
                          bench.directory.daemon(),
                          std::make_shared<DaemonCapabilities>()};
    ProcessAttachment attachment(sandbox, {"s", kNonce, terminal}, "/tmp/p");
    told.status = co_await attachment.Open(options);
    if (told.status.ok() && !input.empty()) {
      told.status = co_await attachment.SendInput(0, input);
    }
    while (told.status.ok() && told.events.size() < enough) {
      auto event = co_await attachment.Next();
      told.status = event.status();
      if (!event.ok()) break;
      if (const auto* attached = std::get_if<Attached>(&*event)) {
        told.events.push_back("attached " + std::to_string(attached->offset));
      } else if (const auto* output = std::get_if<ProcessOutput>(&*event)) {
        told.events.push_back(std::to_string(output->offset) + ":" + output->data);
      } else if (const auto* exited = std::get_if<ProcessExited>(&*event)) {
        const auto* code = std::get_if<ExitCode>(&exited->outcome);
        told.events.push_back("exited " + (code == nullptr ? "?" : std::to_string(code->code)));
      } else if (const auto* taken = std::get_if<StdinTaken>(&*event)) {
        told.events.push_back("taken " + std::to_string(taken->offset));
      } else if (std::holds_alternative<Displaced>(*event)) {
        told.events.push_back("displaced");
        break;
      } else if (const auto* drained = std::get_if<ProcessDrained>(&*event)) {
        told.events.push_back("drained " + std::to_string(drained->end_offset));
        break;
      }
    }
    co_return told;
  });
}

// Keeps the connection until the other side closes it.
inline void AwaitGoodbye(RawConnection& peer) {
  while (const auto frame = ReadFrame(peer)) {
    if (frame->opcode != kClose) continue;
    peer.Write(Frame(kClose, ClosePayload(1000)));
    return peer.Close();
  }
}

// Accepts, says these frames and keeps the connection until the other side closes it.
inline ScriptedPty::Socket Saying(const std::string& frames, bool drop = false) {
  return [frames, drop](RawConnection& peer, const std::string& head) {
    peer.Write(WebSocketAnswer(head) + Frame(kText, kConnected) + frames);
    drop ? peer.Close() : AwaitGoodbye(peer);
  };
}

}  // namespace bridge
