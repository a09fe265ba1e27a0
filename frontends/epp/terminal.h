// SPDX-License-Identifier: Apache-2.0
//
// epp/terminal.h — pty.*: a shell on a terminal, for as long as the host keeps it open.
//
// The call that opened it runs until the end of the shell and owns everything: the stream to the
// bridge, what is still to be written, and the duty to end the shell when the host closes the
// terminal or goes away. Loop thread only.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "frontends/epp/call.h"

namespace bridge::epp {

Task<void> OpenTerminal(Call& call);
Task<absl::StatusOr<Json>> WriteTerminal(Call& call);
Task<absl::StatusOr<Json>> ResizeTerminal(Call& call);
// Ends the shell. Succeeds when there is none.
Task<absl::StatusOr<Json>> CloseTerminal(Call& call);

// An open terminal, as the other calls see it.
class Terminal {
 public:
  // More than this is refused: a shell that reads nothing would hold all of it.
  static constexpr size_t kMaxQueuedBytes = 1024 * 1024;
  static constexpr size_t kChunkBytes = 64 * 1024;

  using Stream = BidiStream<v1::AttachProcessRequest, v1::ProcessEvent>;
  // `sandbox_id`: whose shell it is.
  Terminal(Stream& stream, std::string sandbox_id)
      : stream_(stream), sandbox_id_(std::move(sandbox_id)) {}

  const std::string& sandbox_id() const { return sandbox_id_; }

  // False: there is no room.
  bool Queue(std::string_view input);
  void Resize(uint32_t rows, uint32_t columns);
  // The host has closed it: the stream ends.
  void Close();
  bool closed() const { return closed_; }

  // Writes what is queued until Stop(), then ends.
  Task<void> Write();
  void Stop();

 private:
  Stream& stream_;
  const std::string sandbox_id_;
  std::deque<v1::AttachProcessRequest> queue_;
  size_t queued_bytes_ = 0;
  int64_t offset_ = 0;
  bool closed_ = false;
  bool stopped_ = false;
  Waiter work_;
};

}  // namespace bridge::epp
