// SPDX-License-Identifier: Apache-2.0
//
// Between a Connection and two waiting tasks sits wslay, which turns bytes into messages and back
// and never sees a socket: it reads from input_ and writes to output_. Everything is driven by
// readiness (OnFd), by Write() and by the ping timer; tasks are resumed at the end of the turn.
#include "bridge/net/websocket.h"

#include <fmt/format.h>
#include <openssl/rand.h>
#include <sys/epoll.h>
#include <wslay/wslay.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/net/connection.h"
#include "bridge/net/curl_engine.h"
#include "bridge/net/curl_status.h"
#include "bridge/net/url.h"
#include "bridge/net/websocket_handshake.h"

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

// The URL as curl wants it.
std::string HttpUrl(const std::string& url, const UrlParts& parts) {
  if (parts.scheme == "ws") return "http" + url.substr(2);
  if (parts.scheme == "wss") return "https" + url.substr(3);
  return url;
}

absl::Status CheckRequest(const std::string& url, const std::optional<UrlParts>& parts,
                          const HttpHeaders& headers) {
  const bool known = parts && (parts->scheme == "ws" || parts->scheme == "wss" ||
                               parts->scheme == "http" || parts->scheme == "https");
  if (!known || parts->host.empty()) {
    return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT, "is no valid WebSocket URL");
  }
  if (!IsHeaderValue(url)) {
    return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT,
                     "the WebSocket URL holds a control character");
  }
  for (const HttpHeaders::Field& field : headers) {
    if (!IsHeaderName(field.name) || !IsHeaderValue(field.value)) {
      return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT,
                       "a header of the WebSocket holds a character that cannot travel");
    }
  }
  return absl::OkStatus();
}

}  // namespace

struct WebSocket::Impl final : CurlJob, FdHandler {
  Impl(HttpClient& client, WebSocketOptions opts)
      : engine(client.engine()),
        loop(client.loop()),
        options(opts),
        connection(client),
        ping_timer(loop, &OnPingTimer, this) {}

  ~Impl() {
    if (gone != nullptr) *gone = true;
    engine.Forget(this);
    if (watched_fd >= 0) loop.Unwatch(watched_fd, this);
    if (frames != nullptr) wslay_event_context_free(frames);
  }

  // wslay's callbacks.
  static ssize_t OnRecv(wslay_event_context_ptr, uint8_t* data, size_t size, int, void* self);
  static ssize_t OnSend(wslay_event_context_ptr, const uint8_t* data, size_t size, int, void* self);
  static int OnMask(wslay_event_context_ptr, uint8_t* data, size_t size, void* self);
  static void OnFrameStart(wslay_event_context_ptr,
                           const wslay_event_on_frame_recv_start_arg* frame, void* self);
  static void OnFrameBytes(wslay_event_context_ptr,
                           const wslay_event_on_frame_recv_chunk_arg* chunk, void* self);
  static void OnMessage(wslay_event_context_ptr, const wslay_event_on_msg_recv_arg* message,
                        void* self);

  void StartFrames(std::string early);
  void OnFd(int fd, uint32_t events) override;
  static void OnPingTimer(void* self);
  void Pump();
  void ReadSocket();
  void Feed(std::string_view bytes);
  void WriteSocket();
  bool CanRead() const { return !over && unread_bytes < options.max_unread_bytes; }
  // A message that a close frame overtook is never sent, but stays counted.
  bool Delivered() const { return output.empty() && wslay_event_get_queued_msg_count(frames) == 0; }
  bool NothingToWrite() const { return output.empty() && wslay_event_want_write(frames) == 0; }

  void OnCloseFrame();
  absl::Status FrameFault() const;
  void Lost(absl::Status why);
  void CloseSocketWhenDone();

  void OnCurlDone(int) override {}  // the handle is the Connection's
  void Flush() override;

  CurlEngine& engine;
  EventLoop& loop;
  const WebSocketOptions options;
  std::string url;
  Connection connection;
  int watched_fd = -1;
  bool readable = false;
  bool writable = false;
  wslay_event_context_ptr frames = nullptr;

  std::string_view input;  // bytes that wslay has not taken yet
  std::string output;      // frames on their way to the socket; does not move while it is not empty
  size_t output_sent = 0;
  int unsent_pongs = 0;

  bool in_close_frame = false;
  std::string close_payload;  // of the peer's close frame, as it came

  std::deque<WebSocketMessage> messages;
  size_t unread_bytes = 0;
  bool over = false;  // nothing more will be received
  std::optional<HttpResponse> refusal;
  WebSocketEnd end;

  absl::Duration last_received;
  Timer ping_timer;
  Waiter reader;
  Waiter writer;
  bool* gone = nullptr;  // set while Flush runs: a resumed task destroyed this
};

// ---- Bytes in

ssize_t WebSocket::Impl::OnRecv(wslay_event_context_ptr context, uint8_t* data, size_t size, int,
                                void* self) {
  std::string_view& input = static_cast<Impl*>(self)->input;
  const size_t n = std::min(size, input.size());
  if (n == 0) {
    wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
    return -1;
  }
  std::memcpy(data, input.data(), n);
  input.remove_prefix(n);
  return static_cast<ssize_t>(n);
}

void WebSocket::Impl::OnFrameStart(wslay_event_context_ptr,
                                   const wslay_event_on_frame_recv_start_arg* frame, void* self) {
  static_cast<Impl*>(self)->in_close_frame = frame->opcode == WSLAY_CONNECTION_CLOSE;
}

// wslay takes codes that were assigned after 2012 for violations of the protocol and forgets them.
void WebSocket::Impl::OnFrameBytes(wslay_event_context_ptr,
                                   const wslay_event_on_frame_recv_chunk_arg* chunk, void* self) {
  auto* impl = static_cast<Impl*>(self);
  if (!impl->in_close_frame) return;
  impl->close_payload.append(reinterpret_cast<const char*>(chunk->data), chunk->data_length);
}

void WebSocket::Impl::OnMessage(wslay_event_context_ptr, const wslay_event_on_msg_recv_arg* message,
                                void* self) {
  auto* impl = static_cast<Impl*>(self);
  if (message->opcode == WSLAY_PING) ++impl->unsent_pongs;  // wslay has queued the pong itself
  if (wslay_is_ctrl_frame(message->opcode)) return;
  impl->messages.push_back(
      {.kind = message->opcode == WSLAY_TEXT_FRAME ? WebSocketKind::kText : WebSocketKind::kBinary,
       .data = std::string(reinterpret_cast<const char*>(message->msg), message->msg_length)});
  impl->unread_bytes += message->msg_length + kMessageOverhead;
}

void WebSocket::Impl::ReadSocket() {
  char bytes[kReadBytes];
  while (readable && CanRead()) {
    size_t n = 0;
    switch (connection.TryRead(bytes, sizeof(bytes), &n)) {
      case Connection::Io::kOk:
        last_received = loop.TurnStart();
        Feed(std::string_view(bytes, n));
        break;
      case Connection::Io::kWouldBlock:
        readable = false;
        break;
      case Connection::Io::kEnd:
      case Connection::Io::kBroken:
        Lost(LostStatus(url, HttpPhase::kBody));
        break;
    }
  }
}

void WebSocket::Impl::Feed(std::string_view bytes) {
  input = bytes;
  const bool intact = wslay_event_recv(frames) == 0;
  input = {};
  if (wslay_event_get_close_received(frames) != 0) return OnCloseFrame();
  if (intact && wslay_event_get_read_enabled(frames) != 0) {
    if (unsent_pongs > kMaxUnsentPongs) {
      Lost(ProtocolStatus(url, "sends pings and does not read the answers"));
    }
    return;
  }
  if (close_payload.size() >= 2) return OnCloseFrame();
  over = true;
  WriteSocket();  // the close frame that says what was wrong
  if (end.status.ok()) end.status = FrameFault();
}

void WebSocket::Impl::OnCloseFrame() {
  over = true;
  end.code = kNoCode;
  if (close_payload.size() < 2) return;
  const auto code = static_cast<uint16_t>(static_cast<unsigned char>(close_payload[0]) << 8 |
                                          static_cast<unsigned char>(close_payload[1]));
  if (MayTravel(code)) {
    end.code = code;
    end.reason = close_payload.substr(2);
  } else {
    end.code.reset();
    end.status = ProtocolStatus(url, "sent a WebSocket close code that must not be sent");
  }
}

absl::Status WebSocket::Impl::FrameFault() const {
  switch (wslay_event_get_status_code_sent(frames)) {
    case WSLAY_CODE_MESSAGE_TOO_BIG:
      return ProtocolStatus(url, fmt::format("sent a WebSocket message of more than {} bytes",
                                             options.max_message_bytes));
    case WSLAY_CODE_INVALID_FRAME_PAYLOAD_DATA:
      return ProtocolStatus(url, "sent a WebSocket text that is not UTF-8");
    default:
      return ProtocolStatus(url, "sent a malformed WebSocket frame");
  }
}

// ---- Bytes out

ssize_t WebSocket::Impl::OnSend(wslay_event_context_ptr context, const uint8_t* data, size_t size,
                                int, void* self) {
  std::string& output = static_cast<Impl*>(self)->output;
  const size_t n = std::min(size, kOutputBytes - output.size());
  if (n == 0) {
    wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
    return -1;
  }
  output.append(reinterpret_cast<const char*>(data), n);
  return static_cast<ssize_t>(n);
}

int WebSocket::Impl::OnMask(wslay_event_context_ptr, uint8_t* data, size_t size, void*) {
  return RAND_bytes(data, static_cast<int>(size)) == 1 ? 0 : -1;
}

void WebSocket::Impl::WriteSocket() {
  while (writable && watched_fd >= 0) {
    if (output.empty()) {
      if (wslay_event_want_write(frames) == 0) break;
      if (wslay_event_send(frames) != 0 || output.empty()) break;
    }
    size_t n = 0;
    switch (connection.TryWrite(std::string_view(output).substr(output_sent), &n)) {
      case Connection::Io::kOk:
        output_sent += n;
        break;
      case Connection::Io::kWouldBlock:
        writable = false;
        break;
      default:
        return Lost(LostStatus(url, HttpPhase::kBody));
    }
    if (output_sent == output.size()) {
      output.clear();
      output_sent = 0;
    }
  }
  if (NothingToWrite()) unsent_pongs = 0;
}

// ---- Events

void WebSocket::Impl::StartFrames(std::string early) {
  wslay_event_callbacks callbacks{};
  callbacks.recv_callback = &OnRecv;
  callbacks.send_callback = &OnSend;
  callbacks.genmask_callback = &OnMask;
  callbacks.on_frame_recv_start_callback = &OnFrameStart;
  callbacks.on_frame_recv_chunk_callback = &OnFrameBytes;
  callbacks.on_msg_recv_callback = &OnMessage;
  if (wslay_event_context_client_init(&frames, &callbacks, this) != 0) std::abort();  // no memory
  wslay_event_config_set_max_recv_msg_length(frames, options.max_message_bytes);
  watched_fd = connection.fd();
  readable = writable = true;
  last_received = loop.Now();
  loop.Watch(watched_fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, this);
  ping_timer.SetAt(last_received + options.ping_interval);
  if (!early.empty()) Feed(early);
  Pump();
}

void WebSocket::Impl::OnFd(int, uint32_t events) {
  const uint32_t broken = EPOLLERR | EPOLLHUP;
  if ((events & (EPOLLIN | EPOLLRDHUP | broken)) != 0) readable = true;
  if ((events & (EPOLLOUT | broken)) != 0) writable = true;
  Pump();
}

// Never resumes a task: Flush() does, at the end of the turn.
void WebSocket::Impl::Pump() {
  ReadSocket();
  WriteSocket();
  CloseSocketWhenDone();
  engine.MarkDirty(this);
}

void WebSocket::Impl::OnPingTimer(void* self) {
  auto* impl = static_cast<Impl*>(self);
  if (impl->over) return;
  const absl::Duration interval = impl->options.ping_interval;
  const absl::Duration now = impl->loop.Now();
  const absl::Duration silent = now - impl->last_received;
  if (silent >= interval && impl->CanRead()) {
    if (silent >= kSilentPings * interval) {
      impl->Lost(TimeoutStatus(impl->url, HttpPhase::kBody, "answered no ping", silent));
    } else {
      const wslay_event_msg ping{WSLAY_PING, nullptr, 0};
      (void)wslay_event_queue_msg(impl->frames, &ping);
    }
  }
  impl->Pump();
  impl->ping_timer.SetAt((silent >= interval ? now : impl->last_received) + interval);
}

void WebSocket::Impl::Lost(absl::Status why) {
  if (!over) end.status = std::move(why);
  over = true;
  readable = writable = false;
  if (watched_fd >= 0) loop.Unwatch(std::exchange(watched_fd, -1), this);
}

// After both close frames, or after ours for a violation, nobody waits for the peer's FIN: it may
// never come. The descriptor is released with the object.
void WebSocket::Impl::CloseSocketWhenDone() {
  if (!over || watched_fd < 0 || !NothingToWrite()) return;
  loop.Unwatch(std::exchange(watched_fd, -1), this);
  ping_timer.Clear();
}

void WebSocket::Impl::Flush() {
  bool is_gone = false;
  gone = &is_gone;
  if (over || Delivered()) writer.Notify(true);
  if (is_gone) return;
  gone = nullptr;
  if (over || !messages.empty()) reader.Notify(true);
}

// ---- WebSocket

WebSocket::WebSocket(HttpClient& client, WebSocketOptions options)
    : impl_(std::make_unique<Impl>(client, options)) {}

WebSocket::~WebSocket() = default;

const std::optional<HttpResponse>& WebSocket::refusal() const { return impl_->refusal; }

const WebSocketEnd& WebSocket::end() const { return impl_->end; }

Task<absl::Status> WebSocket::Connect(std::string url, HttpHeaders headers) {
  Impl& ws = *impl_;
  const std::optional<UrlParts> parts = ParseUrl(url);
  absl::Status status = CheckRequest(url, parts, headers);
  if (!status.ok()) co_return status;
  ws.url = HttpUrl(url, *parts);
  status = co_await ws.connection.Open(ws.url, ws.options.connect_timeout);
  if (!status.ok()) co_return status;

  HandshakeResult result;
  auto handshake = [&] {
    return Handshake(ws.loop, ws.connection, ws.url, std::move(headers),
                     ws.options.max_refusal_bytes, &result);
  };
  const bool in_time = co_await RunWithin(ws.loop, ws.options.answer_timeout, handshake);
  const bool cancelled = co_await Cancelled();
  if (!in_time && !cancelled && !result.refusal) {
    co_return TimeoutStatus(ws.url, HttpPhase::kAnswer, "did not answer the WebSocket handshake",
                            ws.options.answer_timeout);
  }
  ws.refusal = std::move(result.refusal);
  if (result.status.ok()) ws.StartFrames(std::move(result.early));
  co_return result.status;
}

Task<bool> WebSocket::Read(WebSocketMessage* message) {
  Impl& ws = *impl_;
  bool waiting = true;
  while (waiting && ws.messages.empty() && !ws.over && ws.frames != nullptr) {
    waiting = co_await ws.reader.Wait();
  }
  if (ws.messages.empty()) co_return false;
  std::swap(*message, ws.messages.front());
  ws.messages.pop_front();
  const bool was_full = !ws.CanRead();
  ws.unread_bytes -= message->data.size() + kMessageOverhead;
  if (was_full && ws.CanRead()) ws.Pump();
  co_return true;
}

Task<bool> WebSocket::Write(WebSocketKind kind, std::string_view bytes) {
  Impl& ws = *impl_;
  bool waiting = true;
  if (ws.frames == nullptr || ws.over) co_return false;
  const wslay_event_msg message{
      static_cast<uint8_t>(kind == WebSocketKind::kText ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME),
      Bytes(bytes), bytes.size()};
  if (wslay_event_queue_msg(ws.frames, &message) != 0) co_return false;
  ws.Pump();
  while (waiting && !ws.over && !ws.Delivered()) waiting = co_await ws.writer.Wait();
  co_return ws.Delivered();
}

Task<bool> WebSocket::Close(uint16_t code, std::string_view reason) {
  Impl& ws = *impl_;
  bool waiting = true;
  if (ws.frames == nullptr || ws.over) co_return false;
  const bool with_code = MayTravel(code);
  const std::string_view text = with_code ? Shortened(reason) : std::string_view();
  if (wslay_event_queue_close(ws.frames, with_code ? code : 0, Bytes(text), text.size()) != 0) {
    co_return false;
  }
  ws.Pump();
  while (waiting && !ws.over && !ws.Delivered()) waiting = co_await ws.writer.Wait();
  co_return ws.Delivered();
}

}  // namespace bridge
