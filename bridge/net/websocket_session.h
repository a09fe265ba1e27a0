// SPDX-License-Identifier: Apache-2.0
//
// net/websocket_session.h — an open WebSocket: between a Connection and two waiting tasks.
//
// wslay turns bytes into messages and back and never sees the socket: it reads from input_ and
// writes to output_. Everything is driven by readiness (OnFd), by Send() and by the ping timer;
// tasks are resumed at the end of the turn, never from inside. For net/ only; this header names no
// wslay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bridge/net/connection.h"
#include "bridge/net/curl_engine.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/task.h"
#include "bridge/net/websocket.h"

struct wslay_event_context;

namespace bridge {

class WebSocketSession final : public CurlJob, public FdHandler {
 public:
  // `connection` has finished its handshake and outlives this; `early` are the bytes that came
  // after the answer's head.
  WebSocketSession(HttpClient& client, Connection& connection, std::string url,
                   const WebSocketOptions& options, std::string_view early);
  ~WebSocketSession();

  Task<bool> Read(WebSocketMessage* message);
  Task<bool> Write(WebSocketKind kind, std::string_view bytes);
  Task<bool> Close(uint16_t code, std::string_view reason);
  const WebSocketEnd& end() const { return end_; }

  void OnFd(int fd, uint32_t events) override;
  void OnCurlDone(int) override {}  // the handle is the Connection's
  void Flush() override;

 private:
  struct Callbacks;  // wslay's
  friend struct Callbacks;

  static void OnPingTimer(void* self);
  void StartFrames();
  void Pump();
  void ReadSocket();
  void Feed(std::string_view bytes);
  void WriteSocket();
  Task<bool> Deliver();

  bool CanRead() const { return !over_ && unread_bytes_ < options_.max_unread_bytes; }
  bool Delivered() const;
  bool NothingToWrite() const;

  void OnCloseFrame();
  absl::Status FrameFault() const;
  void Lost(absl::Status why);
  void LeaveSocketWhenDone();

  CurlEngine& engine_;
  EventLoop& loop_;
  Connection& connection_;
  const std::string url_;
  const WebSocketOptions options_;
  int watched_fd_ = -1;
  bool readable_ = true;
  bool writable_ = true;
  wslay_event_context* frames_ = nullptr;

  std::string_view input_;  // bytes that wslay has not taken yet
  std::string output_;      // frames on their way; does not move while it is not empty
  size_t output_sent_ = 0;
  int unsent_pongs_ = 0;

  bool in_close_frame_ = false;
  std::string close_payload_;  // of the peer's close frame, as it came

  std::deque<WebSocketMessage> messages_;
  size_t unread_bytes_ = 0;
  bool over_ = false;  // nothing more will be received
  WebSocketEnd end_;

  absl::Duration last_received_;
  Timer ping_timer_;
  Waiter reader_;
  Waiter writer_;
  bool* gone_ = nullptr;  // set while Flush runs: a resumed task destroyed this
};

}  // namespace bridge
