// SPDX-License-Identifier: Apache-2.0
//
// What goes to a process: the other half of process_attachment.cc.
#include <algorithm>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/process_attachment.h"

namespace bridge {
namespace {

constexpr char kEndOfInput = '\x04';  // Ctrl-D on a terminal

}  // namespace

Task<absl::Status> ProcessAttachment::Send(std::string frame, WebSocketKind kind) {
  if (over_ || socket_ == nullptr) co_return absl::OkStatus();  // nobody reads it any more
  const bool sent = co_await socket_->Write(kind, frame);
  if (sent) co_return absl::OkStatus();
  const bool cancelled = co_await Cancelled();
  if (cancelled) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled");
  // The connection is over. How, and what that says of the process, is for Next() to tell.
  co_return absl::OkStatus();
}

std::string ProcessAttachment::NextInputFrame(std::string_view* bytes) const {
  if (!key_.terminal) return PtyPipeInput(key_.nonce, numbering_.run(), bytes);
  return PtyInput(std::exchange(*bytes, {}));
}

Task<absl::Status> ProcessAttachment::SendInput(int64_t offset, std::string_view bytes) {
  if (offset > sent_) co_return InvalidField("stdin.offset", "leaves out input");
  const int64_t known = std::min<int64_t>(sent_ - offset, static_cast<int64_t>(bytes.size()));
  bytes.remove_prefix(static_cast<size_t>(known));
  if (bytes.empty()) co_return absl::OkStatus();
  if (input_ended_) co_return InvalidField("stdin", "comes after its end");
  sent_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    CO_RETURN_IF_ERROR(co_await Send(NextInputFrame(&bytes), WebSocketKind::kBinary));
  }
  // The daemon handles frames in order: its pong says that the input before it was written.
  pings_.push_back(sent_);
  co_return co_await Send(std::string(kPtyPing), WebSocketKind::kText);
}

Task<absl::Status> ProcessAttachment::SendEof() {
  if (key_.terminal) {
    co_return co_await Send(PtyInput(std::string_view(&kEndOfInput, 1)), WebSocketKind::kBinary);
  }
  input_ended_ = true;
  std::string_view nothing;
  co_return co_await Send(NextInputFrame(&nothing), WebSocketKind::kBinary);
}

Task<absl::Status> ProcessAttachment::Resize(TerminalSize size) {
  if (!key_.terminal) co_return InvalidField("resize", "the process has no terminal");
  co_return co_await Send(PtyResize(size), WebSocketKind::kText);
}

}  // namespace bridge
