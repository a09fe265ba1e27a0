// SPDX-License-Identifier: Apache-2.0
//
// net/http.h — an HTTP/1.1 client for tasks, on libcurl (which this header does not name).
//
// A Transfer is one exchange and a local variable of the task that wants it: its constructor starts
// the exchange, its destructor aborts what still runs. Everything on the loop's thread. An HTTP
// error status is a success here; only failures of the transport are failures:
//   UPSTREAM_UNAVAILABLE  no name, no connection, connection lost    metadata: host, phase
//   UPSTREAM_TIMEOUT      a timeout of the request                   metadata: host, phase
//   UPSTREAM_PROTOCOL     not HTTP, too large, ended inside a body   metadata: host
//   INVALID_ARGUMENT      a URL or header that cannot be sent
//   CANCELLED             the task was cancelled
// phase is "connect" (the request was not sent) or "answer" (it was, at least in part). Messages
// name host, port and phase, and never headers, query strings, bodies or user-info.
// A body that has neither a length nor chunks ends with the connection, and only then can a cut one
// not be told from a complete one. Not done here: redirects, decompression, cookies, 100-continue,
// HTTP/2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/http_headers.h"
#include "bridge/net/task.h"

namespace bridge {

class CurlEngine;

// When a kept-alive connection dies before the first byte of the answer, nobody knows whether the
// request was processed. May it be sent once more, on a fresh connection?
enum class Resend {
  kIdempotent,  // GET, HEAD, PUT, DELETE, OPTIONS: yes. All others, and streamed uploads: never.
  kNever,
  kAlways,  // a POST that is known to be harmless
};

struct HttpRequest {
  std::string method = "GET";
  std::string url = {};
  HttpHeaders headers = {};
  std::string body = {};

  // The body comes from Send() and CloseSend() instead. Without a size it travels in chunks.
  bool upload = false;
  std::optional<int64_t> upload_bytes = {};

  // Each may be infinite. Idle: no byte came and none was taken for so long, while it was not us
  // who did not read or had nothing to send.
  absl::Duration connect_timeout = absl::Seconds(5);
  absl::Duration total_timeout = absl::InfiniteDuration();
  absl::Duration idle_timeout = absl::InfiniteDuration();

  Resend resend = Resend::kIdempotent;

  // Reading: Read() yields about chunk_bytes at most; when max_chunks wait unread the socket is not
  // read any more. whole_chunks: Read() waits for a full chunk (bulk data).
  size_t chunk_bytes = 64 * 1024;
  size_t max_chunks = 4;
  bool whole_chunks = false;
  size_t receive_buffer = 16 * 1024;  // of one read(2); 256 KiB pays for downloads only
};

struct HttpHead {
  int status = 0;
  HttpHeaders headers = {};
  std::string host = {};  // "h:8080", who was asked, for messages; only of a status from 400 on
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers = {};
  std::string body = {};
  std::string host = {};  // as HttpHead has it
};

// The head as an answer, whose body is not read yet.
HttpResponse AnswerOf(HttpHead head);

struct HttpClientOptions {
  // Certificates to trust instead of the system's: a PEM file, or PEM text. Both empty: system's.
  std::string ca_file = {};
  std::string ca_bundle = {};
  // http_proxy, HTTPS_PROXY, ALL_PROXY and NO_PROXY as curl reads them; loopback is never proxied.
  bool use_environment_proxy = false;
  std::string user_agent = "sandbox-bridge";
  int max_idle_connections = 256;
};

// Connections of one loop. Made and destroyed on any thread; must outlive its transfers and be gone
// before its loop.
class HttpClient {
 public:
  explicit HttpClient(EventLoop& loop, HttpClientOptions options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  EventLoop& loop() const { return loop_; }
  CurlEngine& engine() const { return *engine_; }  // for net/ only

 private:
  EventLoop& loop_;
  std::unique_ptr<CurlEngine> engine_;
};

// One exchange. One task may read (Head, Read, ReadAll) while another one sends.
//   auto head = co_await t.Head();
//   while (co_await t.Read(&chunk)) { ... }        then t.result()
//   while (more) if (!co_await t.Send(bytes)) break;   t.CloseSend();
class Transfer {
 public:
  Transfer(HttpClient& client, HttpRequest request);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Status and headers, as soon as they are there.
  Task<absl::StatusOr<HttpHead>> Head();

  // The next piece of the body, swapped into *chunk (whose old memory is used again). False: the
  // body is complete, or the exchange failed, or the task was cancelled; see result().
  Task<bool> Read(std::string* chunk);

  // The whole body; a longer one than `limit` is UPSTREAM_PROTOCOL. Not after Read().
  Task<absl::StatusOr<std::string>> ReadAll(size_t limit);

  // Gives bytes to the upload and returns when all are taken; the memory is used in place. False:
  // the exchange is over (the answer may be there already) or the task was cancelled.
  Task<bool> Send(std::string_view bytes);
  Task<bool> SendParts(std::vector<std::string_view> parts);
  void CloseSend();

  // Over, one way or the other. What was received may still wait for Read().
  bool done() const;
  // How it ended; CANCELLED while it is not done, which is what a cancelled reader sees.
  absl::Status result() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// One exchange with small bodies.
Task<absl::StatusOr<HttpResponse>> Fetch(HttpClient& client, HttpRequest request,
                                         size_t max_body_bytes);

}  // namespace bridge
