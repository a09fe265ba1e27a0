// SPDX-License-Identifier: Apache-2.0
//
// local/execd/pty_holder.h — one client's hold of a process, and how another client ends it: the
// former one is always told (close 4001), unless it does not read.
// Source: the real daemon's close of a displaced client. Any thread, but where it says otherwise.
#pragma once

#include <atomic>
#include <mutex>
#include <string_view>

#include "absl/synchronization/notification.h"
#include "bridge/local/http/websocket.h"

namespace bridge::local::execd {

class PtyHolder {
 public:
  // `socket` may die once Leave() has returned.
  explicit PtyHolder(http::WebSocket& socket) : socket_(socket) {}

  http::WebSocket& socket() { return socket_; }

  // Sends output, unless it is displaced. By one thread at a time.
  void Deliver(std::string_view frame);

  // Another client takes over. The first call tells this one so, or cuts it off if it does not
  // read; another call leaves that to the first.
  void Displace();
  bool displaced() const { return displaced_; }
  // It had its time to answer.
  void StopListening();

  // For the thread that serves the client, when it is done: a Displace() that has begun is awaited,
  // since whoever is displaced is to hear that.
  void AwaitDisplaced();
  // Nothing touches the socket after it.
  void Leave();

  bool greeted = false;  // guarded by the deliverer's lock: nothing goes out before the greeting

 private:
  http::WebSocket& socket_;
  std::mutex mu_;  // guards `gone_`; held while somebody else closes the socket
  bool gone_ = false;
  std::atomic<bool> writing_{false};    // output is on its way to the client
  std::atomic<bool> displaced_{false};  // another client has taken over
  absl::Notification told_;             // of the one Displace()
};

}  // namespace bridge::local::execd
