// SPDX-License-Identifier: Apache-2.0
//
// Attachments to a daemon whose every frame the test decides: odd ends, refusals, late output.
#include "bridge/opensandbox/process_attachment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/websocket_peer.h"
#include "tests/opensandbox/exec_fixture.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using R = ErrorReason;

constexpr int kText = 1, kBinary = 2, kClose = 8;
const std::string kNonce(32, 'a');
constexpr char kNoFile[] = "{\"code\":\"FILE_NOT_FOUND\",\"message\":\"no such file\"}";
constexpr char kConnected[] = "{\"type\":\"connected\",\"session_id\":\"s\",\"mode\":\"pty\"}\n";

std::string Answer(int status, std::string_view body) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::string Frame(int opcode, std::string payload) {
  return EncodeFrame({.opcode = opcode, .payload = std::move(payload)});
}
std::string Out(std::string_view text) { return Frame(kBinary, "\x01" + std::string(text)); }
std::string Err(std::string_view text) { return Frame(kBinary, "\x02" + std::string(text)); }

std::string Replay(int64_t offset, std::string_view text) {
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
  std::string marks;     // the content of the file that counts them; empty: there is none
  bool running = false;  // the file that says so is there
  std::atomic<bool> asked = false;  // for it

 private:
  void Serve(RawConnection& peer) {
    while (true) {
      const std::string head = peer.ReadHead();
      if (head.empty()) return;
      if (head.rfind("GET /pty/s/ws", 0) == 0) return socket_(peer, head);
      if (head.rfind("GET /pty/s ", 0) == 0) {
        peer.Write(Answer(200, state));
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
  RawServer server_;
};

// What an attachment told, a word an event, and how it ended.
struct Told {
  absl::Status status;
  std::vector<std::string> events;
};

Told Attach(const ScriptedPty& pty, AttachOptions options = {.offset = 0}, bool terminal = true,
            size_t enough = 1000, absl::Status explanation = absl::OkStatus()) {
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
void AwaitGoodbye(RawConnection& peer) {
  while (const auto frame = ReadFrame(peer)) {
    if (frame->opcode != kClose) continue;
    peer.Write(Frame(kClose, ClosePayload(1000)));
    return peer.Close();
  }
}

// Accepts, says these frames and keeps the connection until the other side closes it.
ScriptedPty::Socket Saying(const std::string& frames, bool drop = false) {
  return [frames, drop](RawConnection& peer, const std::string& head) {
    peer.Write(WebSocketAnswer(head) + Frame(kText, kConnected) + frames);
    drop ? peer.Close() : AwaitGoodbye(peer);
  };
}

TEST(ProcessAttachment, ALostConnectionIsNoEndOfTheProcess) {
  for (const uint16_t code : {1000, 1001, 1011, 1008, 4999}) {
    const ScriptedPty pty(Saying(Out("out") + Frame(kClose, ClosePayload(code, "x")), true));
    const Told told = Attach(pty);
    EXPECT_EQ(ReasonOf(told.status), R::ERROR_REASON_SANDBOX_UNREACHABLE) << code << told.status;
    EXPECT_THAT(told.events, ElementsAre("attached 0", "0:out")) << code;
  }
  for (const std::string& end : {Frame(kClose, ""), std::string()}) {
    const ScriptedPty pty(Saying(Out("out") + end, true));
    const Told told = Attach(pty);
    EXPECT_EQ(ReasonOf(told.status), R::ERROR_REASON_SANDBOX_UNREACHABLE) << told.status;
    EXPECT_THAT(told.events, ElementsAre("attached 0", "0:out"));
  }
}

TEST(ProcessAttachment, ASandboxThatIsGoneIsNotOneToComeBackTo) {
  const absl::Status gone = MakeError(R::ERROR_REASON_SANDBOX_NOT_FOUND, "no sandbox of this id");
  const ScriptedPty lost(Saying(Out("out"), true));
  EXPECT_EQ(ReasonOf(Attach(lost, {.offset = 0}, true, 1000, gone).status),
            R::ERROR_REASON_SANDBOX_NOT_FOUND);
  const ScriptedPty early([](RawConnection& peer, const std::string& head) {
    peer.Write(WebSocketAnswer(head));
    peer.Close();
  });
  EXPECT_EQ(ReasonOf(Attach(early, {.offset = 0}, true, 1000, gone).status),
            R::ERROR_REASON_SANDBOX_NOT_FOUND);
}

TEST(ProcessAttachment, TakenOverIsSaid) {
  const ScriptedPty pty(Saying(Out("out") + Frame(kClose, ClosePayload(4001, "TAKEN_OVER")), true));
  const Told told = Attach(pty);
  EXPECT_TRUE(told.status.ok()) << told.status;
  EXPECT_THAT(told.events, ElementsAre("attached 0", "0:out", "displaced"));
}

// Of several who take a process over at once.
TEST(ProcessAttachment, WhoComesTooLateIsToldThatAnotherHoldsIt) {
  const std::string error =
      "{\"type\":\"error\",\"error\":\"another client\",\"code\":\"ALREADY_CONNECTED\"}\n";
  for (const std::string& frames : {Frame(kText, error) + Frame(kClose, ClosePayload(1000, "")),
                                    Frame(kClose, ClosePayload(4001, "TAKEN_OVER"))}) {
    const ScriptedPty pty([&frames](RawConnection& peer, const std::string& head) {
      peer.Write(WebSocketAnswer(head) + frames);
      peer.Close();
    });
    const Told told = Attach(pty, {.takeover = true});
    EXPECT_EQ(ReasonOf(told.status), R::ERROR_REASON_ALREADY_ATTACHED) << told.status;
  }
}

// The last output was lost when the exit came first.
TEST(ProcessAttachment, OutputBehindTheExitFrameComesFirst) {
  const std::string frames =
      Out("a") + Frame(kText, "{\"type\":\"exit\",\"exit_code\":7}") + Out("b") + Out("c");
  const std::string closed = frames + Frame(kClose, ClosePayload(1000, "process exited"));
  for (const auto& [said, drop] : {std::pair{closed, false}, {closed, true}, {frames, true}}) {
    const ScriptedPty pty(Saying(said, drop));
    const Told told = Attach(pty);
    EXPECT_TRUE(told.status.ok()) << told.status;
    EXPECT_THAT(told.events,
                ElementsAre("attached 0", "0:a", "1:b", "2:c", "exited 7", "drained 3"));
  }
}

TEST(ProcessAttachment, ADaemonThatDoesNotCloseAfterTheExitIsNotWaitedFor) {
  const ScriptedPty pty(Saying(Frame(kText, "{\"type\":\"exit\",\"exit_code\":0}")));
  const Told told = Attach(pty);
  EXPECT_TRUE(told.status.ok()) << told.status;
  EXPECT_THAT(told.events, ElementsAre("attached 0", "exited 0", "drained 0"));
}

TEST(ProcessAttachment, RefusedHandshakesAreToldApart) {
  const auto reason = [](const std::string& answer) {
    const ScriptedPty pty(
        [&answer](RawConnection& peer, const std::string&) { peer.Write(answer); });
    return ReasonOf(Attach(pty).status);
  };
  EXPECT_EQ(reason(Answer(404, "{\"code\":\"CONTEXT_NOT_FOUND\"}")),
            R::ERROR_REASON_PROCESS_NOT_FOUND);
  EXPECT_EQ(reason(Answer(409, "{\"code\":\"ALREADY_CONNECTED\"}")),
            R::ERROR_REASON_ALREADY_ATTACHED);
  EXPECT_EQ(reason(Answer(401, "{\"error\":\"Unauthorized\"}")),
            R::ERROR_REASON_UPSTREAM_UNAUTHENTICATED);
  EXPECT_EQ(reason(Answer(403, "{}")), R::ERROR_REASON_UPSTREAM_PERMISSION_DENIED);
  EXPECT_EQ(reason(Answer(502, "Bad Gateway")), R::ERROR_REASON_SANDBOX_UNREACHABLE);
  EXPECT_EQ(reason(Answer(400, "{}")), R::ERROR_REASON_UPSTREAM_REJECTED);
  for (const int status : {200, 426}) {
    EXPECT_EQ(reason(Answer(status, "{}")), R::ERROR_REASON_UPSTREAM_PROTOCOL) << status;
  }
  EXPECT_EQ(reason("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                   "Connection: Upgrade\r\nSec-WebSocket-Accept: wrong\r\n\r\n"),
            R::ERROR_REASON_SANDBOX_UNREACHABLE);
}

// Numbers leave the marks out, also where none of them is in what is replayed.
TEST(ProcessAttachment, NumbersFromTheMiddleOfTheOutput) {
  const std::string mark = FormatProcessMark(kNonce, {ProcessMark::Kind::kStarted, 0, 3});
  {
    // Four marks, 47 bytes each; the ring begins behind all of them.
    ScriptedPty pty([](RawConnection& peer, const std::string& head) {
      peer.Write(WebSocketAnswer(head) + Replay(100'188, "0123456789") + Frame(kText, kConnected) +
                 Out("x"));
      peer.Close();
    });
    pty.state = "{\"session_id\":\"s\",\"running\":true,\"output_offset\":100198}";
    pty.marks = "000004\n";
    EXPECT_THAT(Attach(pty, {.offset = 100'003}).events,
                ElementsAre("attached 100003", "100003:3456789", "100010:x"));
    EXPECT_THAT(Attach(pty, {}).events, ElementsAre("attached 100010", "100010:x"));
    const Told gap = Attach(pty, {.offset = 99'999});
    EXPECT_EQ(ReasonOf(gap.status), R::ERROR_REASON_REPLAY_GAP);
    EXPECT_EQ(MetadataOf(gap.status).at("first_available"), "100000");
    EXPECT_EQ(ReasonOf(Attach(pty, {.offset = 100'011}).status), R::ERROR_REASON_INVALID_ARGUMENT);
  }
  // The last of them is in it, and the file did not know of it yet.
  ScriptedPty pty([&mark](RawConnection& peer, const std::string& head) {
    peer.Write(WebSocketAnswer(head) + Replay(141, "old" + mark + "new") +
               Frame(kText, kConnected));
    peer.Close();
  });
  pty.state = "{\"session_id\":\"s\",\"running\":true,\"output_offset\":194}";
  pty.marks = "000003\n";
  EXPECT_THAT(Attach(pty, {.offset = 0}).events, ElementsAre("attached 0", "0:old", "3:new"));
}

// An attachment at the right place was called one ahead of the output, now and then.
TEST(ProcessAttachment, AMarkThatIsPrintedBetweenTwoQuestions) {
  const std::string mark = FormatProcessMark(kNonce, {ProcessMark::Kind::kExited, 3, 0});
  ScriptedPty pty([&mark](RawConnection& peer, const std::string& head) {
    peer.Write(WebSocketAnswer(head) + Replay(0, "output" + mark) + Frame(kText, kConnected));
    peer.Close();
  });
  pty.state = "{\"session_id\":\"s\",\"running\":true,\"output_offset\":6}";
  pty.marks = "000001\n";
  EXPECT_THAT(Attach(pty, {.offset = 6}).events,
              ElementsAre("attached 6", "exited 3", "drained 6"));
}

// All output was lost without a word when the daemon was slow to read the terminal.
TEST(ProcessAttachment, AMarkThatTheDaemonHasNotReadYet) {
  const std::string mark = FormatProcessMark(kNonce, {ProcessMark::Kind::kExited, 3, 0});
  {
    ScriptedPty pty([&mark](RawConnection& peer, const std::string& head) {
      peer.Write(WebSocketAnswer(head) + Replay(0, "output") + Frame(kText, kConnected) +
                 Out(mark));
      peer.Close();
    });
    pty.state = "{\"session_id\":\"s\",\"running\":true,\"output_offset\":6}";
    pty.marks = "000001\n";
    EXPECT_THAT(Attach(pty, {.offset = 0}).events,
                ElementsAre("attached 0", "0:output", "exited 3", "drained 6"));
    EXPECT_THAT(Attach(pty, {}).events, ElementsAre("attached 6", "exited 3", "drained 6"));
    EXPECT_EQ(ReasonOf(Attach(pty, {.offset = 7}).status), R::ERROR_REASON_INVALID_ARGUMENT);
  }
  // In a later run, from the middle of a long output.
  const std::string third = FormatProcessMark(kNonce, {ProcessMark::Kind::kExited, 3, 2});
  ScriptedPty pty([&third](RawConnection& peer, const std::string& head) {
    peer.Write(WebSocketAnswer(head) + Replay(100'094, "0123456789") + Frame(kText, kConnected) +
               Out("x" + third));
    peer.Close();
  });
  pty.state = "{\"session_id\":\"s\",\"running\":true,\"output_offset\":100104}";
  pty.marks = "000003\n";
  EXPECT_THAT(
      Attach(pty, {.offset = 100'008}).events,
      ElementsAre("attached 100008", "100008:89", "100010:x", "exited 3", "drained 100011"));
}

// ---- A mark's first byte as the program's own

const std::string kEnd = FormatProcessMark(kNonce, {ProcessMark::Kind::kExited, 0, 0});

// Numbers were below 0, or hid a byte, when one stream's last byte waited for the other's mark.
TEST(ProcessAttachment, NumbersOfAStreamThatEndsInAMarksFirstByte) {
  for (size_t cut = 0; cut <= kEnd.size(); ++cut) {
    const ScriptedPty pty(Saying(Out("out") + Err("\x1e") + Out(kEnd.substr(0, cut)) +
                                 Err("x\x1e") + Out(kEnd.substr(cut)) + Err(kEnd)));
    const Told told = Attach(pty, {.offset = 0}, false);
    EXPECT_TRUE(told.status.ok()) << told.status;
    std::string said;
    for (const std::string& event : told.events) {
      const size_t colon = event.find(':');
      if (colon == std::string::npos) continue;
      EXPECT_EQ(event.substr(0, colon), std::to_string(said.size())) << cut;
      said += event.substr(colon + 1);
    }
    EXPECT_EQ(said, "out\x1ex\x1e") << cut;
    ASSERT_GE(told.events.size(), 3u);
    EXPECT_THAT(std::vector(told.events.end() - 2, told.events.end()),
                ElementsAre("exited 0", "drained 6"))
        << cut;
  }
}

// What came later on the other stream was told first, so that who attached behind it missed one.
TEST(ProcessAttachment, AByteThatWaitsIsNotOvertaken) {
  ScriptedPty pty(Saying(Out("out\x1e") + Err("err")));
  EXPECT_THAT(Attach(pty, {.offset = 0}, false, 2).events, ElementsAre("attached 0", "0:out"));
  pty.running = true;
  EXPECT_THAT(Attach(pty, {.offset = 0}, false, 4).events,
              ElementsAre("attached 0", "0:out", "3:\x1e", "4:err"));
}

// A prompt that ends so came when the process ended.
TEST(ProcessAttachment, APauseBehindAMarksFirstByte) {
  for (const std::string& prompt : {std::string("\x1e"), "> " + kEnd.substr(0, 20)}) {
    const std::string size = std::to_string(prompt.size());
    for (const bool terminal : {false, true}) {
      ScriptedPty live(Saying(Out(prompt)));
      live.running = true;
      std::string said;
      const Told told = Attach(live, {.offset = 0}, terminal, prompt.size() > 1 ? 3 : 2);
      for (size_t i = 1; i < told.events.size(); ++i) {
        said += told.events[i].substr(told.events[i].find(':') + 1);
      }
      EXPECT_EQ(said, prompt);
      // All of it was seen by one who attaches again, and more comes.
      ScriptedPty again([&prompt](RawConnection& peer, const std::string& head) {
        peer.Write(WebSocketAnswer(head) + Replay(0, prompt) + Frame(kText, kConnected) +
                   Out("more"));
        AwaitGoodbye(peer);
      });
      again.state = "{\"session_id\":\"s\",\"running\":true,\"output_offset\":" + size + "}";
      again.running = true;
      const AttachOptions behind{.offset = static_cast<int64_t>(prompt.size())};
      EXPECT_THAT(Attach(again, behind, terminal, 2).events,
                  ElementsAre("attached " + size, size + ":more"));
    }
  }
}

// It is not known yet whether it is one: the program has ended.
TEST(ProcessAttachment, AMarkThatComesInPartsIsWaitedFor) {
  std::atomic<bool>* asked = nullptr;
  ScriptedPty pty([&asked](RawConnection& peer, const std::string& head) {
    peer.Write(WebSocketAnswer(head) + Frame(kText, kConnected) + Out("out" + kEnd.substr(0, 9)));
    asked->wait(false);
    peer.Write(Out(kEnd.substr(9)));
    AwaitGoodbye(peer);
  });
  asked = &pty.asked;
  EXPECT_THAT(Attach(pty).events, ElementsAre("attached 0", "0:out", "exited 0", "drained 3"));
}

// Nothing is kept without end, nor given out as what it may not be.
TEST(ProcessAttachment, WhatIsKeptBackHasAnEnd) {
  std::string frames = Out(kEnd.substr(0, 9));
  for (int i = 0; i < 40; ++i) frames += Err(std::string(32 * 1024, 'e'));
  ScriptedPty pty(Saying(frames + Out(kEnd.substr(9)) + Err(kEnd)));
  const Told told = Attach(pty, {.offset = 0}, false);
  EXPECT_EQ(ReasonOf(told.status), R::ERROR_REASON_SANDBOX_UNREACHABLE) << told.status;
  EXPECT_THAT(told.events, ElementsAre("attached 0"));
  pty.running = true;  // and so it is output
  EXPECT_EQ(Attach(pty, {.offset = 0}, false, 2).events.size(), 2u);
}

}  // namespace
}  // namespace bridge
