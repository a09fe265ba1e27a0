// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/exec_streams.h — frames of an exec on their way to a client, over HTTP or a
// WebSocket, and what comes back. Each call is a connection's thread until the client goes or all
// is said.
#pragma once

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "bridge/local/execd/extra/exec.h"
#include "bridge/local/http/exchange.h"

namespace bridge::local::execd::extra {

// How a client reads.
struct ReadPlan {
  int64_t out = 0;
  int64_t err = 0;
  bool kill_on_disconnect = false;
  absl::Duration heartbeat = absl::Seconds(15);
};

void StreamOverHttp(http::Exchange& exchange, Exec& exec, Exec::Reader& reader,
                    const ReadPlan& plan);
// `ready` sends while the caller's thread listens.
void StreamOverSocket(http::WebSocket& socket, Exec& exec, Exec::Reader& reader,
                      const ReadPlan& plan, ReadyThread ready);

// The WebSocket of an exchange; null when the client has gone.
std::unique_ptr<http::WebSocket> AcceptSocket(http::Exchange& exchange);

// One ERROR frame and close 1000.
void CloseWith(http::WebSocket& socket, const Failure& failure);

// The body of a request as input from `offset` on; waits for the program to read it, or for the
// client to go.
std::optional<Failure> FeedInput(http::Exchange& exchange, Exec& exec, int64_t offset, bool eof);

// {"signal":…,"to":"group"|"process"}
std::optional<Failure> ParseExecSignal(std::string_view body, int* number, bool* group);

}  // namespace bridge::local::execd::extra
