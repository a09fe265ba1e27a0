// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_attachment.h — holding a process: its output numbered and whole, its input
// taken at most once, its end behind its last byte. Dropping it detaches; the process runs on. One
// task reads events while another one sends input; loop thread only.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/net/websocket.h"
#include "bridge/opensandbox/process_id.h"
#include "bridge/opensandbox/process_marker.h"
#include "bridge/opensandbox/process_types.h"
#include "bridge/opensandbox/pty_codec.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

struct AttachOptions {
  std::optional<int64_t> offset = {};  // absent: from now on
  bool takeover = false;
  bool restart_if_exited = false;
};

class ProcessAttachment {
 public:
  ProcessAttachment(SandboxHandle sandbox, ProcessKey key, std::string folder);
  ~ProcessAttachment();

  // Errors: PROCESS_NOT_FOUND, ALREADY_ATTACHED, REPLAY_GAP, INVALID_ARGUMENT (an offset ahead of
  // the output), those of the transport.
  Task<absl::Status> Open(AttachOptions options);

  // The next event; the last one is ProcessDrained or Displaced. Errors: what became of the sandbox
  // (SANDBOX_NOT_FOUND, SANDBOX_NOT_RUNNING), else SANDBOX_UNREACHABLE (attach again at the last
  // offset); CANCELLED.
  Task<absl::StatusOr<ProcessEvent>> Next();

  // `offset`: of the first byte, counted in this attachment. What was taken before is skipped.
  // Errors: INVALID_ARGUMENT (a hole; after the end). Where there is no connection any more it is
  // dropped and never acknowledged: Next() tells why.
  Task<absl::Status> SendInput(int64_t offset, std::string_view bytes);
  Task<absl::Status> SendEof();
  Task<absl::Status> Resize(TerminalSize size);

 private:
  Task<absl::Status> AwaitConnected();
  absl::Status TakeReplay(PtyFrame frame);
  Task<absl::Status> Restart();
  absl::Status TakeFrame(PtyFrame frame);
  void TakeOutput(std::optional<StreamId> stream, std::string_view bytes);
  void TakePieces(std::vector<ProcessMarkScanner::Piece> pieces);
  Task<void> Decide();
  void TakeMark(ProcessMark mark);
  bool Ended() const { return outcome_.has_value() && marks_ >= (key_.terminal ? 1 : 2); }
  Task<absl::Status> TakeEnd();
  Task<absl::Status> Unreachable(std::string why);
  Task<absl::Status> TakeDeath();
  Task<absl::StatusOr<PtyState>> AskForEnd();
  void Conclude(Outcome outcome);
  std::string NextInputFrame(std::string_view* bytes) const;
  Task<absl::Status> Send(std::string frame, WebSocketKind kind);

  SandboxHandle sandbox_;
  const ProcessKey key_;
  const std::string folder_;
  std::unique_ptr<WebSocket> socket_;
  ProcessMarkScanner scanner_;
  // When to ask whether what is kept back is a mark, and how long to wait if that is not known
  // then.
  absl::Duration decide_at_ = absl::InfiniteDuration();
  absl::Duration decide_pause_ = absl::ZeroDuration();
  std::deque<ProcessEvent> events_;
  ProcessNumbering numbering_;
  std::optional<int64_t> wanted_;  // the API's number of the first byte to deliver
  int64_t next_ = 0;               // the API's number of the next output byte
  int64_t sent_ = 0;               // input given to the daemon
  int64_t taken_ = 0;              // of it, by the process
  std::deque<int64_t> pings_;      // input that lies before each unanswered ping
  int marks_ = 0;  // of the present end: a process on pipes tells it on both streams
  std::optional<Outcome> outcome_;
  std::optional<Outcome> told_end_;  // by the wrapper's files, before it was attached to
  bool restart_wanted_ = false;
  bool restarted_ = false;
  std::optional<Outcome> wrapper_end_;  // as the daemon told it
  bool input_ended_ = false;
  bool input_broken_ = false;  // the daemon found nobody to take it
  bool over_ = false;
};

}  // namespace bridge
