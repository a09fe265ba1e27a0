// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/forward.h — passes one exchange on to another server, byte streams and WebSockets
// alike. Blocks the exchange's thread until both sides are done; when one goes, the other is told.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bridge/local/http/exchange.h"
#include "bridge/local/http/parser.h"

namespace bridge::local::lifecycle {

struct ForwardPlan {
  std::string host;
  int port = 0;
  std::string target;     // path and query, sent as it stands
  http::Headers headers;  // all of them, Host included; none is added but those of the body
  bool send_body = true;
  absl::Duration connect_timeout = absl::Seconds(10);
  absl::Duration idle_timeout = absl::InfiniteDuration();  // between bytes of the answer
  // Makes our answer's head from the backend's; framing headers are added afterwards.
  std::function<http::Response(const http::Parser::Head&)> head;
  // What the client sees of an answer that breaks off: its proper end, or a broken connection.
  bool end_broken_answers = false;
};

enum class ForwardResult {
  kDone,            // something was answered, well or not
  kNoConnection,    // nothing was answered: the backend cannot be reached,
  kBrokenResponse,  // or it closed or said something that is not HTTP,
  kTimeout,         // or it was silent for too long
};

ForwardResult ForwardHttp(http::Exchange& exchange, const ForwardPlan& plan);

struct WebSocketPlan {
  std::string host;
  int port = 0;
  std::string target;
  http::Headers headers;  // without those of the handshake itself
  absl::Duration connect_timeout = absl::Seconds(10);
  http::Headers accept_headers;  // added to our 101
  // How the client learns that the backend's connection broke: with this code, or 0 = its own
  // connection breaks too.
  uint16_t broken_code = 0;
};

struct WebSocketResult {
  ForwardResult result = ForwardResult::kDone;
  // The backend's answer to the handshake, when it was no 101: then nothing was answered yet.
  std::optional<http::Response> refusal;
};

WebSocketResult ForwardWebSocket(http::Exchange& exchange, const WebSocketPlan& plan);

// Not passed on, in either direction: about one connection only.
bool IsHopByHop(std::string_view name);

}  // namespace bridge::local::lifecycle
