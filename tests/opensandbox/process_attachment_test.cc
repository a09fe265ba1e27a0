// SPDX-License-Identifier: Apache-2.0
//
// Attachments to a daemon whose every frame the test decides: odd ends, refusals, late output.
#include "bridge/opensandbox/process_attachment.h"

#include <string>

#include "bridge/base/error.h"
#include "tests/opensandbox/scripted_pty.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using R = ErrorReason;

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

// A server that a shell leaves behind prints on. Who attached then was never told of the end.
TEST(ProcessAttachment, AnEndThatWasToldLongAgo) {
  ScriptedPty pty([](RawConnection& peer, const std::string& head) {
    peer.Write(WebSocketAnswer(head) + Replay(2'000'000, std::string(1 << 20, 's')) +
               Frame(kText, kConnected));
    peer.Close();
  });
  pty.state = "{\"session_id\":\"s\",\"running\":true,\"output_offset\":3048576}";
  pty.marks = "000001 e 004\n";
  EXPECT_THAT(Attach(pty, {}, true).events,
              ElementsAre("attached 3048529", "exited 4", "drained 3048529"));
  EXPECT_THAT(Attach(pty, {.offset = 3'048'480}, false).events,
              ElementsAre("attached 3048480", "3048480:ss", "exited 4", "drained 3048482"));
}

// A mark that the other stream's output had cut came out as output, and its end was never told.
TEST(ProcessAttachment, AMarkThatIsCutInTheReplay) {
  const std::string mark = FormatProcessMark(kNonce, {ProcessMark::Kind::kExited, 3, 0});
  ScriptedPty pty([&mark](RawConnection& peer, const std::string& head) {
    peer.Write(WebSocketAnswer(head) +
               Replay(0, "out" + mark.substr(0, 20) + "err" + mark + mark.substr(20)) +
               Frame(kText, kConnected));
    peer.Close();
  });
  pty.state = "{\"session_id\":\"s\",\"running\":true,\"output_offset\":100}";
  pty.marks = "000001 e 003\n";
  EXPECT_THAT(Attach(pty, {.offset = 0}, false).events,
              ElementsAre("attached 0", "0:outerr", "exited 3", "drained 6"));
}

// What a process printed that was killed together with its wrapper can be had no more: attaching
// would run it again. That was not said.
TEST(ProcessAttachment, OutputOfOneWhoseWrapperIsGone) {
  ScriptedPty pty([](RawConnection& peer, const std::string&) { peer.Close(); });
  pty.state = "{\"session_id\":\"s\",\"running\":false,\"output_offset\":10}";
  const Told gap = Attach(pty, {.offset = 3});
  EXPECT_EQ(ReasonOf(gap.status), R::ERROR_REASON_REPLAY_GAP);
  EXPECT_EQ(MetadataOf(gap.status).at("first_available"), "10");
  for (const AttachOptions& options : {AttachOptions{}, AttachOptions{.offset = 10}}) {
    EXPECT_THAT(Attach(pty, options).events, ElementsAre("attached 10", "exited ?", "drained 10"));
  }
}

}  // namespace
}  // namespace bridge
