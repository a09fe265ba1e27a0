// SPDX-License-Identifier: Apache-2.0
//
// net/curl_status.h — the one table from libcurl's result codes to the product's failures.
// Pure; any thread. For net/ only.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace bridge {

// How far an exchange had come.
enum class HttpPhase {
  kConnect,  // the request was not sent
  kAnswer,   // it was, at least in part, and no complete head of an answer has come
  kBody,     // the head has come
};

// A CURLcode with what is known about it.
struct CurlFailure {
  int code = 0;
  HttpPhase phase = HttpPhase::kConnect;
  std::string_view url;     // only host and port of it get into the status
  int system_error = 0;     // errno of a connection attempt, if any
  std::string_view detail;  // libcurl's own words; used only where they hold no peer's bytes
};

// OK for CURLE_OK.
absl::Status CurlStatus(const CurlFailure& failure);

// A limit of our own that ended an exchange.
absl::Status TimeoutStatus(std::string_view url, HttpPhase phase, std::string_view what,
                           absl::Duration limit);
absl::Status ProtocolStatus(std::string_view url, std::string_view what);
absl::Status CancelledStatus(std::string_view url);
absl::Status LostStatus(std::string_view url, HttpPhase phase);
// The kept-alive connection died, and the request must not be repeated.
absl::Status NotResentStatus(std::string_view url);

// Bytes of a peer as text that is safe in a message: printable ASCII, at most `limit` characters.
std::string Printable(std::string_view bytes, size_t limit);

}  // namespace bridge
