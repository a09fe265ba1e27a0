// SPDX-License-Identifier: Apache-2.0
//
// Sends bytes and shows an answer as it came, chunk by chunk. Knows nothing of the server's own
// code but its sockets.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bridge/local/http/socket.h"
#include "bridge/local/http/types.h"

namespace bridge::local::execd {

struct RawAnswer {
  int status = 0;  // 0: none came
  std::string reason;
  http::Headers headers;
  std::vector<std::string> chunks;  // a chunked answer's, else one with the whole body
  std::vector<double> chunk_ms;     // when they came
  bool chunked = false;
  bool complete = false;  // it ended as framed
  double end_ms = 0;
  bool continued = false;  // "100 Continue" came first

  std::string Body() const;
};

class RawClient {
 public:
  explicit RawClient(int port);

  bool Send(std::string_view bytes);
  // Reads one answer. `head_only`: it has no body (to HEAD, and 1xx, 204, 304). `enough` is asked
  // after each chunk; true ends the reading.
  RawAnswer Read(bool head_only, const std::function<bool(const RawAnswer&)>& enough = nullptr);
  // Has the server ended the connection (within the time)?
  bool Ended(absl::Duration timeout);

  http::Socket& socket() { return *socket_; }
  std::string TakeBuffered() { return std::exchange(buffer_, {}); }

 private:
  bool Fill();  // reads more; false at the end of the stream
  bool ReadLine(std::string* line);
  void ReadChunked(RawAnswer* answer, const std::function<bool(const RawAnswer&)>& enough);
  void ReadSized(RawAnswer* answer, int64_t length);

  std::unique_ptr<http::Socket> socket_;
  std::string buffer_;
  absl::Time sent_at_;
};

// Method, path and headers as bytes.
std::string RequestHead(std::string_view method, std::string_view path,
                        const http::Headers& headers);

}  // namespace bridge::local::execd
