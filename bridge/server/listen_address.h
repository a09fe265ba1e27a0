// SPDX-License-Identifier: Apache-2.0
//
// server/listen_address.h — where a server listens, and who can reach it there. Pure but for
// WhyNotBound().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace bridge {

struct ListenAddress {
  std::string host = {};  // without brackets; for a socket file its path
  int port = 0;           // 0: any free one
  bool unix_socket = false;

  // "127.0.0.1:50051", "[::1]:50051", "unix:/run/bridge.sock".
  std::string ToString() const;
  // Only programs on this machine reach it.
  bool local() const;
};

// One "HOST:PORT", "[IPv6]:PORT" or "unix:PATH" (absolute). Errors: INVALID_ARGUMENT for field
// `flag`.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text, std::string_view flag);

// A comma-separated list of at least one.
absl::StatusOr<std::vector<ListenAddress>> ParseListenAddresses(std::string_view text,
                                                                std::string_view flag);

// Why the address cannot be bound, in the system's words; gRPC does not tell. "" when it can.
std::string WhyNotBound(const ListenAddress& address);

}  // namespace bridge
