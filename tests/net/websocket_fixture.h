// SPDX-License-Identifier: Apache-2.0
//
// A WebSocket on a loop of its own, against a peer that the test plays.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bridge/net/websocket.h"
#include "tests/fakes/websocket_peer.h"
#include "tests/net/http_fixture.h"

namespace bridge {

class WebSocketTest : public HttpTest {
 protected:
  // What a reader sees until the end.
  struct Seen {
    std::vector<std::string> texts;
    std::vector<std::string> binaries;
    WebSocketEnd end;
  };

  Task<void> ReadToEnd(WebSocket& socket, Seen* seen) {
    WebSocketMessage message;
    while (co_await socket.Read(&message)) {
      (message.kind == WebSocketKind::kText ? seen->texts : seen->binaries).push_back(message.data);
    }
    seen->end = socket.end();
  }

  // Connects and reads to the end.
  Seen ReadAll(RawServer& server, WebSocketOptions options = {}) {
    Seen seen;
    RunTask(loop_, [&]() -> Task<void> {
      WebSocket socket(client_, options);
      const absl::Status connected = co_await socket.Connect(server.Url("/ws"));
      EXPECT_TRUE(connected.ok()) << connected;
      co_await ReadToEnd(socket, &seen);
    });
    return seen;
  }

  absl::Status Connect(const std::string& url, std::optional<HttpResponse>* refusal = nullptr) {
    return RunTask(loop_, [&]() -> Task<absl::Status> {
      WebSocket socket(client_, {.max_refusal_bytes = 1000});
      const absl::Status status = co_await socket.Connect(url);
      if (refusal != nullptr) *refusal = socket.refusal();
      co_return status;
    });
  }
};

}  // namespace bridge
