// SPDX-License-Identifier: Apache-2.0
//
// local/http/exchange.h — one request and its answer, as a handler sees them.
//
// A handler runs on its connection's own thread and may block. It answers in exactly one way:
// Respond() at once; Start() + Write()… + Finish() as a stream (every Write is one HTTP chunk and
// is flushed); AcceptWebSocket(); or Hijack() for raw bytes. One that returns without answering
// ends the connection. Everything belongs to that thread; another one may only use the WebSocket's
// writes, PeerClosed(), Sleep() and stop_token().
//
// Writes fail with UNAVAILABLE once the peer has gone. A handler that waits for something else
// should wait with WaitPeerClosed()/poll on fd() as well, and end when stop_token() is set.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/local/http/socket.h"
#include "bridge/local/http/types.h"
#include "bridge/local/http/websocket.h"

namespace bridge::local::http {

class Connection;
class Exchange;

// Sees and may change one exchange: the recorder and the fault plans. All calls come from the
// exchange's thread, BeforeBody also from any thread that writes to its WebSocket.
class Hook {
 public:
  enum class After { kGoOn, kClose, kReset, kHang };

  virtual ~Hook() = default;
  // Before the handler. True = this hook has dealt with the exchange, the handler is skipped.
  virtual bool BeforeHandler(Exchange&) { return false; }
  // A piece of the request's body was read.
  virtual void OnRequestBody(std::string_view) {}
  // Before the head is sent. May change it; a Content-Length found here is kept, right or wrong.
  virtual void BeforeHead(Exchange&, Response&) {}
  // Before a piece of the answer's body (a Write, or a whole Respond body, or the payload of a
  // WebSocket message). May change it; emptying a Write or a message drops it. Then what After says
  // happens.
  virtual After BeforeBody(Exchange&, std::string&) { return After::kGoOn; }
  // Before a stream's end; may add a last piece to its body.
  virtual void BeforeEnd(Exchange&, std::string&) {}
  // The handler has returned.
  virtual void AfterHandler(Exchange&) {}
};
// Makes the hook of an exchange, or null.
using HookFactory = std::function<std::unique_ptr<Hook>(const Request&)>;

using Handler = std::function<void(Exchange&)>;

class Exchange {
 public:
  // Made by Server. `connection` outlives the exchange.
  Exchange(Connection& connection, Request request, std::vector<std::unique_ptr<Hook>> hooks);
  ~Exchange();

  Request& request() { return request_; }
  const Request& request() const { return request_; }

  // What hooks want a handler to know; empty for every name without a hook.
  void SetNote(const std::string& name, std::string value) { notes_[name] = std::move(value); }
  const std::string& note(const std::string& name) const;

  // ---- the request's body
  // Bytes read, 0 at its end. Sends "100 Continue" first if the client waits for that.
  absl::StatusOr<size_t> ReadBody(char* to, size_t size);
  // The whole body; RESOURCE_EXHAUSTED when it is longer than `limit`.
  absl::StatusOr<std::string> ReadAll(size_t limit = size_t{1} << 30);

  // ---- the answer
  // Sends all at once, with Content-Length (also for an empty body; not with 1xx, 204, 304).
  absl::Status Respond(Response response);
  // Sends the head. Chunked, unless the headers have a Content-Length.
  absl::Status Start(Response head);
  absl::Status Write(std::string_view bytes);  // one chunk; empty = nothing
  absl::Status Finish();                       // the last chunk
  bool started() const { return started_; }
  bool finished() const { return finished_; }
  int status() const { return status_; }  // 0 = not yet answered

  // The connection ends after this answer.
  void CloseAfter() { close_after_ = true; }
  bool close_after() const { return close_after_; }

  // Is this a WebSocket handshake with all that belongs to it?
  bool IsWebSocket() const;
  // Answers 101. `ping_interval` as in WebSocket::Options. `headers` are added to the answer.
  absl::StatusOr<std::unique_ptr<WebSocket>> AcceptWebSocket(WebSocket::Options options = {},
                                                             Headers headers = {});

  // ---- below HTTP
  // The connection's socket; the server sends nothing more on it and closes it afterwards. Bytes
  // that were already read from it are put into *pending.
  Socket& Hijack(std::string* pending);
  bool hijacked() const { return hijacked_; }
  void Reset();  // TCP reset, now
  int fd() const;
  Socket& socket();

  // What the server takes for the time, for its Date header; seconds since 1970.
  long long UnixTime() const;
  bool PeerClosed() const;
  // Sleeps; false when the peer has gone or the server stops before that.
  bool Sleep(absl::Duration d) const;
  std::stop_token stop_token() const;

 private:
  friend class Connection;

  void Run(const Handler& handler);
  // body: of a Respond; null for a stream.
  void AddFraming(Response& head, const std::string* body);
  std::string SerializeHead(Response& head);
  absl::Status WriteChunk(std::string_view bytes);
  Hook::After RunBodyHooks(std::string& bytes);
  absl::Status ApplyAfter(Hook::After after);
  bool Bodiless(int status) const;

  Connection& connection_;
  Request request_;
  std::vector<std::unique_ptr<Hook>> hooks_;
  std::map<std::string, std::string> notes_;
  bool continue_sent_ = false;
  bool started_ = false;
  bool finished_ = false;
  bool chunked_ = false;
  bool hijacked_ = false;
  bool close_after_ = false;
  int status_ = 0;
};

}  // namespace bridge::local::http
