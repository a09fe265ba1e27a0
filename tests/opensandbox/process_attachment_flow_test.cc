// SPDX-License-Identifier: Apache-2.0
//
// Attachments to a daemon whose every frame the test decides: input that nobody takes, and output
// that could begin a mark.
#include <atomic>
#include <string>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/opensandbox/process_attachment.h"
#include "tests/opensandbox/scripted_pty.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using R = ErrorReason;

// ---- Input that nobody takes

// Says these frames when the ping behind some input has come, and is gone.
ScriptedPty::Socket SayingToInput(const std::string& frames) {
  return [frames](RawConnection& peer, const std::string& head) {
    peer.Write(WebSocketAnswer(head) + Frame(kText, kConnected));
    while (const auto frame = ReadFrame(peer)) {
      if (frame->opcode == kText) break;
    }
    peer.Write(frames);
    peer.Close();
  };
}

// Types this, then tells what Attach() does.
Told AttachTyping(const ScriptedPty& pty, const std::string& text) {
  return Attach(pty, {.offset = 0}, false, 1000, absl::OkStatus(), text);
}

// It was UPSTREAM_FAILED, or an acknowledgement, when a process was deleted.
TEST(ProcessAttachment, AProcessThatIsGoneBeforeItTookItsInputHasEnded) {
  const std::string failed =
      Frame(kText, "{\"type\":\"error\",\"error\":\"x\",\"code\":\"STDIN_WRITE_FAILED\"}");
  const std::string pong = Frame(kText, "{\"type\":\"pong\"}");
  const std::string exit = Frame(kText, "{\"type\":\"exit\",\"exit_code\":-1}");
  const std::string close = Frame(kClose, ClosePayload(1011));
  for (const std::string& frames : {failed + close, failed, failed + pong + close,
                                    failed + exit + close, exit + pong + close}) {
    ScriptedPty pty(SayingToInput(frames));
    pty.state_later = "";  // deleted
    const Told told = AttachTyping(pty, "input");
    EXPECT_TRUE(told.status.ok()) << told.status;
    EXPECT_THAT(told.events, ElementsAre("attached 0", "exited ?", "drained 0"));
  }
  ScriptedPty displaced(SayingToInput(failed + Frame(kClose, ClosePayload(4001))));
  EXPECT_THAT(AttachTyping(displaced, "input").events, ElementsAre("attached 0", "displaced"));
}

// A process that runs on is attached to again, one that does not has ended somehow.
TEST(ProcessAttachment, ALostConnectionIsTheEndWhenTheProcessIsGone) {
  ScriptedPty running(SayingToInput(""));
  EXPECT_EQ(ReasonOf(AttachTyping(running, "input").status), R::ERROR_REASON_SANDBOX_UNREACHABLE);
  for (const char* state : {"", "{\"session_id\":\"s\",\"running\":false,\"output_offset\":0}"}) {
    ScriptedPty gone(SayingToInput(""));
    gone.state_later = state;
    EXPECT_THAT(AttachTyping(gone, "input").events,
                ElementsAre("attached 0", "exited ?", "drained 0"));
  }
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
