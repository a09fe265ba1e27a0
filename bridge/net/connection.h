// SPDX-License-Identifier: Apache-2.0
//
// net/connection.h — a plain stream of bytes to the host of a URL: libcurl resolves, connects, goes
// through proxies and speaks TLS; what is said is the caller's business. For net/ only.
//
// The loop's thread only. Reading and writing never block; with TLS, read until kWouldBlock before
// waiting for the descriptor, which is edge-triggered for that reason.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"

namespace bridge {

class Connection {
 public:
  enum class Io { kOk, kWouldBlock, kEnd, kBroken };

  explicit Connection(HttpClient& client);
  ~Connection();  // closes it
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Once. `url` is http or https; failures as in net/http.h, with phase "connect".
  Task<absl::Status> Open(std::string url, absl::Duration timeout);

  int fd() const;  // valid after Open() succeeded

  // Closing it will throw away what was not sent, and tell the peer at once. Else the news of the
  // end waits behind that, for ever if the peer does not read.
  void ResetWhenClosed();

  Io TryRead(char* data, size_t capacity, size_t* bytes);
  // After kWouldBlock the same bytes must come again, at the same place (TLS wants it).
  Io TryWrite(std::string_view data, size_t* bytes);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bridge
