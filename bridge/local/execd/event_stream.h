// SPDX-License-Identifier: Apache-2.0
//
// local/execd/event_stream.h — where the events of one running command go. Used by the one thread
// that runs the command.
#pragma once

#include <string_view>

#include "absl/time/time.h"

namespace bridge::local::execd {

class EventStream {
 public:
  virtual ~EventStream() = default;
  // One event, or the bare object that ends a failed stream. False: the client has gone.
  virtual bool Send(std::string_view bytes) = 0;
  // Waits; false as soon as the client has gone or the daemon ends.
  virtual bool Sleep(absl::Duration duration) = 0;
  // Polls with POLLRDHUP for the client's going; -1 when there is nothing to poll.
  virtual int client_fd() const = 0;
};

}  // namespace bridge::local::execd
