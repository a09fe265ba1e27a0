// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/exchange.h"

#include <cstdio>
#include <utility>

#include "bridge/local/http/connection.h"

namespace bridge::local::http {
namespace {

bool HasNoBody(int status) { return status / 100 == 1 || status == 204 || status == 304; }

}  // namespace

Exchange::Exchange(Connection& connection, Request request,
                   std::vector<std::unique_ptr<Hook>> hooks)
    : connection_(connection), request_(std::move(request)), hooks_(std::move(hooks)) {
  close_after_ = !connection_.parser().keep_alive();
}

Exchange::~Exchange() = default;

const std::string& Exchange::note(const std::string& name) const {
  static const std::string* const none = new std::string;
  const auto it = notes_.find(name);
  return it == notes_.end() ? *none : it->second;
}

void Exchange::Run(const Handler& handler) {
  bool handled = false;
  for (const auto& hook : hooks_) handled = handled || hook->BeforeHandler(*this);
  if (!handled && !connection_.socket().was_shut_down()) handler(*this);
  for (const auto& hook : hooks_) hook->AfterHandler(*this);
}

absl::StatusOr<size_t> Exchange::ReadBody(char* to, size_t size) {
  if (!continue_sent_ && !started_ && !connection_.parser().done() &&
      request_.headers.HasToken("Expect", "100-continue")) {
    continue_sent_ = true;
    if (absl::Status sent = socket().Write("HTTP/1.1 100 Continue\r\n\r\n"); !sent.ok())
      return sent;
  }
  const absl::StatusOr<size_t> n = connection_.ReadBody(to, size);
  if (n.ok() && *n > 0) {
    for (const auto& hook : hooks_) hook->OnRequestBody({to, *n});
  }
  return n;
}

absl::StatusOr<std::string> Exchange::ReadAll(size_t limit) {
  std::string body;
  while (true) {
    const size_t old = body.size();
    const size_t step = old < 65536 ? 8192 : 262144;
    body.resize(old + step);
    const absl::StatusOr<size_t> n = ReadBody(body.data() + old, step);
    if (!n.ok()) return n.status();
    body.resize(old + *n);
    if (*n == 0) return body;
    if (body.size() > limit) return absl::ResourceExhaustedError("the body is too long");
  }
}

bool Exchange::Bodiless(int status) const { return request_.method == "HEAD" || HasNoBody(status); }

void Exchange::AddFraming(Response& head, const std::string* body) {
  const ServerOptions& options = connection_.options();
  const bool lower = options.lower_case_headers;
  if (options.date_header && !head.headers.Has("date")) {
    head.headers.Add(lower ? "date" : "Date", HttpDate(UnixTime()));
  }
  if (HasNoBody(head.status)) return;
  if (head.headers.Has("content-length")) return;
  if (body != nullptr) {
    head.headers.Add(lower ? "content-length" : "Content-Length", std::to_string(body->size()));
  } else if (request_.minor_version >= 1) {
    chunked_ = true;
    // Go's server says so before it names the framing.
    if (close_after_ && !lower && !head.headers.Has("connection")) {
      head.headers.Add("Connection", "close");
    }
    head.headers.Add(lower ? "transfer-encoding" : "Transfer-Encoding", "chunked");
  } else {
    close_after_ = true;  // HTTP/1.0: the end of the connection ends the body
  }
}

std::string Exchange::SerializeHead(Response& head) {
  const bool lower = connection_.options().lower_case_headers;
  if (head.headers.HasToken("connection", "close")) close_after_ = true;
  if (close_after_ && head.status != 101 && !head.headers.Has("connection")) {
    head.headers.Add(lower ? "connection" : "Connection", "close");
  }
  std::string text = "HTTP/1.1 " + std::to_string(head.status) + " ";
  text += head.reason.empty() ? ReasonPhrase(head.status) : head.reason;
  text += "\r\n";
  for (const auto& [name, value] : head.headers) text += name + ": " + value + "\r\n";
  text += "\r\n";
  status_ = head.status;
  started_ = true;
  return text;
}

absl::Status Exchange::Respond(Response response) {
  if (started_) return absl::FailedPreconditionError("the exchange was already answered");
  for (const auto& hook : hooks_) hook->BeforeHead(*this, response);
  AddFraming(response, &response.body);
  std::string bytes = SerializeHead(response);
  Hook::After after = Hook::After::kGoOn;
  if (!Bodiless(response.status) && !response.body.empty()) {
    std::string body = std::move(response.body);
    after = RunBodyHooks(body);
    bytes += body;
  }
  if (absl::Status sent = socket().Write(bytes); !sent.ok()) return sent;
  finished_ = true;
  return ApplyAfter(after);
}

absl::Status Exchange::Start(Response head) {
  if (started_) return absl::FailedPreconditionError("the exchange was already answered");
  for (const auto& hook : hooks_) hook->BeforeHead(*this, head);
  AddFraming(head, nullptr);
  return socket().Write(SerializeHead(head));
}

absl::Status Exchange::Write(std::string_view bytes) {
  if (!started_ || finished_) return absl::FailedPreconditionError("not within an answer");
  if (bytes.empty() || Bodiless(status_)) return absl::OkStatus();
  if (hooks_.empty()) return WriteChunk(bytes);
  std::string changed(bytes);
  const Hook::After after = RunBodyHooks(changed);
  if (!changed.empty()) {
    if (absl::Status sent = WriteChunk(changed); !sent.ok()) return sent;
  }
  return ApplyAfter(after);
}

absl::Status Exchange::WriteChunk(std::string_view bytes) {
  if (!chunked_) return socket().Write(bytes);
  char size[24];
  snprintf(size, sizeof(size), "%zx\r\n", bytes.size());
  std::string chunk;
  chunk.reserve(bytes.size() + 24);
  chunk += size;
  chunk += bytes;
  chunk += "\r\n";
  return socket().Write(chunk);
}

absl::Status Exchange::Finish() {
  if (!started_ || finished_) return absl::FailedPreconditionError("not within an answer");
  std::string rest;
  for (const auto& hook : hooks_) hook->BeforeEnd(*this, rest);
  if (!rest.empty() && !Bodiless(status_)) {
    if (absl::Status sent = WriteChunk(rest); !sent.ok()) return sent;
  }
  if (chunked_ && !Bodiless(status_)) {
    if (absl::Status sent = socket().Write("0\r\n\r\n"); !sent.ok()) return sent;
  }
  finished_ = true;
  return absl::OkStatus();
}

Hook::After Exchange::RunBodyHooks(std::string& bytes) {
  Hook::After after = Hook::After::kGoOn;
  for (const auto& hook : hooks_) {
    const Hook::After wanted = hook->BeforeBody(*this, bytes);
    if (wanted != Hook::After::kGoOn) after = wanted;
  }
  return after;
}

absl::Status Exchange::ApplyAfter(Hook::After after) {
  switch (after) {
    case Hook::After::kGoOn:
      return absl::OkStatus();
    case Hook::After::kClose:
      socket().CloseGently();
      break;
    case Hook::After::kReset:
      Reset();
      break;
    case Hook::After::kHang:
      Sleep(absl::InfiniteDuration());
      break;
  }
  finished_ = false;
  return absl::UnavailableError("the answer was cut off on command");
}

bool Exchange::IsWebSocket() const {
  return request_.method == "GET" && request_.headers.HasToken("Upgrade", "websocket") &&
         request_.headers.HasToken("Connection", "Upgrade") &&
         request_.headers.Has("Sec-WebSocket-Key");
}

absl::StatusOr<std::unique_ptr<WebSocket>> Exchange::AcceptWebSocket(WebSocket::Options options,
                                                                     Headers headers) {
  if (started_) return absl::FailedPreconditionError("the exchange was already answered");
  Response head{101, {{"Upgrade", "websocket"}, {"Connection", "Upgrade"}}, ""};
  head.headers.Add("Sec-WebSocket-Accept",
                   WebSocketAccept(request_.headers.Get("Sec-WebSocket-Key").value_or("")));
  for (const auto& [name, value] : headers) head.headers.Add(name, value);
  for (const auto& hook : hooks_) hook->BeforeHead(*this, head);
  hijacked_ = true;
  if (absl::Status sent = socket().Write(SerializeHead(head)); !sent.ok()) return sent;
  options.client = false;
  auto websocket = std::make_unique<WebSocket>(socket(), connection_.TakePending(), options);
  if (!hooks_.empty()) {
    websocket->set_write_filter(
        [this](std::string& payload, const std::function<absl::Status()>& send) {
          const bool had_content = !payload.empty();
          const Hook::After after = RunBodyHooks(payload);
          const bool dropped = had_content && payload.empty();
          if (absl::Status sent = dropped ? absl::OkStatus() : send(); !sent.ok()) return sent;
          return ApplyAfter(after);
        });
  }
  return websocket;
}

Socket& Exchange::Hijack(std::string* pending) {
  hijacked_ = true;
  *pending = connection_.TakePending();
  return socket();
}

void Exchange::Reset() {
  hijacked_ = true;
  socket().Reset();
}

long long Exchange::UnixTime() const { return connection_.UnixTime(); }
int Exchange::fd() const { return connection_.socket().fd(); }
Socket& Exchange::socket() { return connection_.socket(); }
bool Exchange::PeerClosed() const { return connection_.socket().PeerClosed(); }
bool Exchange::Sleep(absl::Duration d) const { return !connection_.socket().WaitPeerClosed(d); }
std::stop_token Exchange::stop_token() const { return connection_.stop_token(); }

}  // namespace bridge::local::http
