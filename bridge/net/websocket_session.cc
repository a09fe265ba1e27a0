// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/websocket_session.h"

#include <fmt/format.h>
#include <openssl/rand.h>
#include <sys/epoll.h>
#include <wslay/wslay.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "bridge/net/curl_status.h"

namespace bridge {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
constexpr size_t kOutputBytes = 64 * 1024;
constexpr size_t kMessageOverhead = 64;  // counted for a message however short it is
constexpr int kMaxUnsentPongs = 1000;    // a peer that pings and does not read is no peer
constexpr int kSilentPings = 3;          // so many intervals without a byte: the peer is gone
constexpr size_t kMaxReasonBytes = 123;  // RFC 6455, 5.5
constexpr uint16_t kNoCode = 1005;       // RFC 6455, 7.4.1

// RFC 6455, 7.4 and the codes that IANA assigned since (1012 to 1014).
bool MayTravel(uint16_t code) {
  if (code >= 3000 && code <= 4999) return true;
  return code >= 1000 && code <= 1014 && code != 1004 && code != kNoCode && code != 1006;
}

// At most kMaxReasonBytes, and no half of a character at the end.
std::string_view Shortened(std::string_view reason) {
  if (reason.size() <= kMaxReasonBytes) return reason;
  size_t end = kMaxReasonBytes;
  while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0) == 0x80) --end;
  return reason.substr(0, end);
}

const uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

}  // namespace

struct WebSocketSession::Callbacks {
  static ssize_t OnRecv(wslay_event_context_ptr context, uint8_t* data, size_t size, int,
                        void* self) {
    std::string_view& input = static_cast<WebSocketSession*>(self)->input_;
    const size_t n = std::min(size, input.size());
    if (n == 0) {
      wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
      return -1;
    }
    std::memcpy(data, input.data(), n);
    input.remove_prefix(n);
    return static_cast<ssize_t>(n);
  }

  static ssize_t OnSend(wslay_event_context_ptr context, const uint8_t* data, size_t size, int,
                        void* self) {
    std::string& output = static_cast<WebSocketSession*>(self)->output_;
    const size_t n = std::min(size, kOutputBytes - output.size());
    if (n == 0) {
      wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
      return -1;
    }
    output.append(reinterpret_cast<const char*>(data), n);
    return static_cast<ssize_t>(n);
  }

  static int OnMask(wslay_event_context_ptr, uint8_t* data, size_t size, void*) {
    return RAND_bytes(data, static_cast<int>(size)) == 1 ? 0 : -1;
  }

  static void OnFrameStart(wslay_event_context_ptr,
                           const wslay_event_on_frame_recv_start_arg* frame, void* self) {
    static_cast<WebSocketSession*>(self)->in_close_frame_ = frame->opcode == WSLAY_CONNECTION_CLOSE;
  }

  // wslay takes codes that were assigned after 2012 for violations of the protocol and forgets
  // them.
  static void OnFrameBytes(wslay_event_context_ptr,
                           const wslay_event_on_frame_recv_chunk_arg* chunk, void* self) {
    auto* session = static_cast<WebSocketSession*>(self);
    if (!session->in_close_frame_) return;
    session->close_payload_.append(reinterpret_cast<const char*>(chunk->data), chunk->data_length);
  }

  static void OnMessage(wslay_event_context_ptr, const wslay_event_on_msg_recv_arg* message,
                        void* self) {
    auto* session = static_cast<WebSocketSession*>(self);
    if (message->opcode == WSLAY_PING) ++session->unsent_pongs_;  // wslay has queued the pong
    if (wslay_is_ctrl_frame(message->opcode)) return;
    session->messages_.push_back(
        {.kind =
             message->opcode == WSLAY_TEXT_FRAME ? WebSocketKind::kText : WebSocketKind::kBinary,
         .data = std::string(reinterpret_cast<const char*>(message->msg), message->msg_length)});
    session->unread_bytes_ += message->msg_length + kMessageOverhead;
  }
};

WebSocketSession::WebSocketSession(HttpClient& client, Connection& connection, std::string url,
                                   const WebSocketOptions& options, std::string_view early)
    : engine_(client.engine()),
      loop_(client.loop()),
      connection_(connection),
      url_(std::move(url)),
      options_(options),
      last_received_(loop_.Now()),
      ping_timer_(loop_, &OnPingTimer, this) {
  StartFrames();
  watched_fd_ = connection_.fd();
  loop_.Watch(watched_fd_, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, this);
  ping_timer_.SetAt(last_received_ + options_.ping_interval);
  if (!early.empty()) Feed(early);
  Pump();
}

WebSocketSession::~WebSocketSession() {
  if (gone_ != nullptr) *gone_ = true;
  engine_.Forget(this);
  if (watched_fd_ >= 0) loop_.Unwatch(watched_fd_, this);
  wslay_event_context_free(frames_);
}

void WebSocketSession::StartFrames() {
  wslay_event_callbacks callbacks{};
  callbacks.recv_callback = &Callbacks::OnRecv;
  callbacks.send_callback = &Callbacks::OnSend;
  callbacks.genmask_callback = &Callbacks::OnMask;
  callbacks.on_frame_recv_start_callback = &Callbacks::OnFrameStart;
  callbacks.on_frame_recv_chunk_callback = &Callbacks::OnFrameBytes;
  callbacks.on_msg_recv_callback = &Callbacks::OnMessage;
  if (wslay_event_context_client_init(&frames_, &callbacks, this) != 0) std::abort();  // no memory
  wslay_event_config_set_max_recv_msg_length(frames_, options_.max_message_bytes);
}

// ---- For the tasks

Task<bool> WebSocketSession::Read(WebSocketMessage* message) {
  bool waiting = true;
  while (waiting && messages_.empty() && !over_) waiting = co_await reader_.Wait();
  if (messages_.empty()) co_return false;
  std::swap(*message, messages_.front());
  messages_.pop_front();
  const bool was_full = !CanRead();
  unread_bytes_ -= message->data.size() + kMessageOverhead;
  if (was_full && CanRead()) Pump();
  co_return true;
}

Task<bool> WebSocketSession::Write(WebSocketKind kind, std::string_view bytes) {
  const auto opcode = kind == WebSocketKind::kText ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME;
  const wslay_event_msg message{static_cast<uint8_t>(opcode), Bytes(bytes), bytes.size()};
  if (over_ || wslay_event_queue_msg(frames_, &message) != 0) co_return false;
  co_return co_await Deliver();
}

Task<bool> WebSocketSession::Close(uint16_t code, std::string_view reason) {
  const bool with_code = MayTravel(code);
  const std::string_view text = with_code ? Shortened(reason) : std::string_view();
  if (over_ ||
      wslay_event_queue_close(frames_, with_code ? code : 0, Bytes(text), text.size()) != 0) {
    co_return false;
  }
  co_return co_await Deliver();
}

// Until the kernel has everything that was queued.
Task<bool> WebSocketSession::Deliver() {
  bool waiting = true;
  Pump();
  while (waiting && !over_ && !Delivered()) waiting = co_await writer_.Wait();
  co_return Delivered();
}

// A message that a close frame overtook is never sent, but stays counted.
bool WebSocketSession::Delivered() const {
  return output_.empty() && wslay_event_get_queued_msg_count(frames_) == 0;
}

bool WebSocketSession::NothingToWrite() const {
  return output_.empty() && wslay_event_want_write(frames_) == 0;
}

void WebSocketSession::Flush() {
  bool gone = false;
  gone_ = &gone;
  if (over_ || Delivered()) writer_.Notify(true);
  if (gone) return;
  gone_ = nullptr;
  if (over_ || !messages_.empty()) reader_.Notify(true);
}

// ---- Events

void WebSocketSession::OnFd(int, uint32_t events) {
  const uint32_t broken = EPOLLERR | EPOLLHUP;
  if ((events & (EPOLLIN | EPOLLRDHUP | broken)) != 0) readable_ = true;
  if ((events & (EPOLLOUT | broken)) != 0) writable_ = true;
  Pump();
}

// Never resumes a task: Flush() does, at the end of the turn.
void WebSocketSession::Pump() {
  ReadSocket();
  WriteSocket();
  LeaveSocketWhenDone();
  engine_.MarkDirty(this);
}

void WebSocketSession::OnPingTimer(void* self) {
  auto* session = static_cast<WebSocketSession*>(self);
  if (session->over_) return;
  const absl::Duration interval = session->options_.ping_interval;
  const absl::Duration now = session->loop_.Now();
  const absl::Duration silent = now - session->last_received_;
  if (silent >= interval && session->CanRead()) {
    if (silent >= kSilentPings * interval) {
      session->Lost(TimeoutStatus(session->url_, HttpPhase::kBody, "answered no ping", silent));
    } else {
      const wslay_event_msg ping{WSLAY_PING, nullptr, 0};
      (void)wslay_event_queue_msg(session->frames_, &ping);
    }
  }
  session->Pump();
  session->ping_timer_.SetAt((silent >= interval ? now : session->last_received_) + interval);
}

void WebSocketSession::Lost(absl::Status why) {
  if (!over_) end_.status = std::move(why);
  over_ = true;
  readable_ = writable_ = false;
  if (watched_fd_ >= 0) loop_.Unwatch(std::exchange(watched_fd_, -1), this);
}

// After both close frames, or after ours for a violation, nobody waits for the peer's FIN: it may
// never come. The descriptor is released with the connection.
void WebSocketSession::LeaveSocketWhenDone() {
  if (!over_ || watched_fd_ < 0 || !NothingToWrite()) return;
  loop_.Unwatch(std::exchange(watched_fd_, -1), this);
  ping_timer_.Clear();
}

// ---- Bytes in

void WebSocketSession::ReadSocket() {
  char bytes[kReadBytes];
  while (readable_ && CanRead()) {
    size_t n = 0;
    switch (connection_.TryRead(bytes, sizeof(bytes), &n)) {
      case Connection::Io::kOk:
        last_received_ = loop_.TurnStart();
        Feed(std::string_view(bytes, n));
        break;
      case Connection::Io::kWouldBlock:
        readable_ = false;
        break;
      case Connection::Io::kEnd:
      case Connection::Io::kBroken:
        Lost(LostStatus(url_, HttpPhase::kBody));
        break;
    }
  }
}

void WebSocketSession::Feed(std::string_view bytes) {
  input_ = bytes;
  const bool intact = wslay_event_recv(frames_) == 0;
  input_ = {};
  if (wslay_event_get_close_received(frames_) != 0) return OnCloseFrame();
  if (intact && wslay_event_get_read_enabled(frames_) != 0) {
    if (unsent_pongs_ > kMaxUnsentPongs) {
      Lost(ProtocolStatus(url_, "sends pings and does not read the answers"));
    }
    return;
  }
  if (close_payload_.size() >= 2) return OnCloseFrame();
  over_ = true;
  WriteSocket();  // the close frame that says what was wrong
  if (end_.status.ok()) end_.status = FrameFault();
}

void WebSocketSession::OnCloseFrame() {
  over_ = true;
  end_.code = kNoCode;
  if (close_payload_.size() < 2) return;
  const auto byte = [this](size_t i) { return static_cast<unsigned char>(close_payload_[i]); };
  const auto code = static_cast<uint16_t>(byte(0) << 8 | byte(1));
  if (MayTravel(code)) {
    end_.code = code;
    end_.reason = close_payload_.substr(2);
  } else {
    end_.code.reset();
    end_.status = ProtocolStatus(url_, "sent a WebSocket close code that must not be sent");
  }
}

absl::Status WebSocketSession::FrameFault() const {
  switch (wslay_event_get_status_code_sent(frames_)) {
    case WSLAY_CODE_MESSAGE_TOO_BIG:
      return ProtocolStatus(url_, fmt::format("sent a WebSocket message of more than {} bytes",
                                              options_.max_message_bytes));
    case WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA:
      return ProtocolStatus(url_, "sent a WebSocket text that is not UTF-8");
    default:
      return ProtocolStatus(url_, "sent a malformed WebSocket frame");
  }
}

// ---- Bytes out

void WebSocketSession::WriteSocket() {
  while (writable_ && watched_fd_ >= 0) {
    if (output_.empty()) {
      if (wslay_event_want_write(frames_) == 0) break;
      if (wslay_event_send(frames_) != 0 || output_.empty()) break;
    }
    size_t n = 0;
    switch (connection_.TryWrite(std::string_view(output_).substr(output_sent_), &n)) {
      case Connection::Io::kOk:
        output_sent_ += n;
        break;
      case Connection::Io::kWouldBlock:
        writable_ = false;
        break;
      default:
        // What the peer said before it stopped listening is there to be read: why, perhaps.
        readable_ = true;
        ReadSocket();
        return Lost(LostStatus(url_, HttpPhase::kBody));
    }
    if (output_sent_ == output_.size()) {
      output_.clear();
      output_sent_ = 0;
    }
  }
  if (NothingToWrite()) unsent_pongs_ = 0;
}

}  // namespace bridge
