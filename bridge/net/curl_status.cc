// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/curl_status.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/net/url.h"

namespace bridge {
namespace {

enum class Extra { kNone, kSystemError, kDetail };

// "<host> <text>[: <extra>]"
struct Row {
  CURLcode code;
  ErrorReason reason;
  std::string_view text;
  Extra extra = Extra::kNone;
};

#define R(name) ErrorReason::ERROR_REASON_##name

constexpr Row kRows[] = {
    {CURLE_COULDNT_RESOLVE_HOST, R(UPSTREAM_UNAVAILABLE), "is not a known name"},
    {CURLE_COULDNT_RESOLVE_PROXY, R(UPSTREAM_UNAVAILABLE), "is behind a proxy of unknown name"},
    {CURLE_COULDNT_CONNECT, R(UPSTREAM_UNAVAILABLE), "accepts no connection", Extra::kSystemError},
    {CURLE_PROXY, R(UPSTREAM_UNAVAILABLE), "cannot be reached through the proxy"},
    {CURLE_SEND_ERROR, R(UPSTREAM_UNAVAILABLE), "broke the connection"},
    {CURLE_SEND_FAIL_REWIND, R(UPSTREAM_UNAVAILABLE), "broke the connection"},
    {CURLE_RECV_ERROR, R(UPSTREAM_UNAVAILABLE), "broke the connection"},
    {CURLE_GOT_NOTHING, R(UPSTREAM_UNAVAILABLE), "closed the connection without an answer"},
    {CURLE_SSL_CONNECT_ERROR, R(UPSTREAM_UNAVAILABLE), "does not agree on TLS", Extra::kDetail},
    {CURLE_PEER_FAILED_VERIFICATION, R(UPSTREAM_UNAVAILABLE),
     "showed a certificate that is not trusted", Extra::kDetail},
    {CURLE_SSL_CERTPROBLEM, R(UPSTREAM_UNAVAILABLE), "cannot be reached with this certificate"},
    {CURLE_SSL_CIPHER, R(UPSTREAM_UNAVAILABLE), "does not agree on a TLS cipher"},
    {CURLE_SSL_CACERT_BADFILE, R(UPSTREAM_UNAVAILABLE),
     "cannot be verified: the file of trusted certificates cannot be read"},
    {CURLE_OPERATION_TIMEDOUT, R(UPSTREAM_TIMEOUT), "did not answer in time"},
    {CURLE_PARTIAL_FILE, R(UPSTREAM_UNAVAILABLE), "ended its answer too early"},
    {CURLE_WEIRD_SERVER_REPLY, R(UPSTREAM_PROTOCOL), "sent a malformed head"},
    {CURLE_UNSUPPORTED_PROTOCOL, R(UPSTREAM_PROTOCOL), "does not speak HTTP"},
    {CURLE_HTTP2, R(UPSTREAM_PROTOCOL), "does not speak HTTP/1.1"},
    {CURLE_BAD_CONTENT_ENCODING, R(UPSTREAM_PROTOCOL), "sent a malformed body"},
    {CURLE_FILESIZE_EXCEEDED, R(UPSTREAM_PROTOCOL), "announced an impossible length"},
    {CURLE_URL_MALFORMAT, R(INVALID_ARGUMENT), "is no valid http or https URL"},
};

#undef R

// libcurl reports malformed chunks and oversized heads as a broken connection.
std::string_view ProtocolFault(const CurlFailure& failure) {
  if (failure.code != CURLE_RECV_ERROR) return {};
  const auto says = [&failure](std::string_view words) {
    return failure.detail.find(words) != std::string_view::npos;
  };
  if (says("chunked-encod")) return "sent a malformed chunk";
  if (says("Too large response headers")) return "sent a head that is too large";
  return {};
}

std::string HostOrWord(std::string_view url) {
  std::string host = HostAndPort(url);
  return host.empty() ? std::string("the peer") : host;
}

std::string_view PhaseName(HttpPhase phase) {
  return phase == HttpPhase::kConnect ? "connect" : "answer";
}

absl::Status Make(ErrorReason reason, std::string_view url, HttpPhase phase,
                  std::string_view text) {
  const std::string host = HostOrWord(url);
  ErrorDetails details{.metadata = {{"host", host}}};
  if (reason != ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL) {
    details.metadata.emplace("phase", PhaseName(phase));
  }
  return MakeError(reason, fmt::format("{} {}", host, text), std::move(details));
}

std::string_view Where(HttpPhase phase) {
  switch (phase) {
    case HttpPhase::kConnect:
      return " before the request was sent";
    case HttpPhase::kAnswer:
      return " before it answered";
    case HttpPhase::kBody:
      return " inside its answer";
  }
  return "";
}

}  // namespace

absl::Status CurlStatus(const CurlFailure& failure) {
  if (failure.code == CURLE_OK) return absl::OkStatus();
  const std::string_view fault = ProtocolFault(failure);
  if (!fault.empty()) return ProtocolStatus(failure.url, fault);
  for (const Row& row : kRows) {
    if (row.code != failure.code) continue;
    std::string text(row.text);
    if (row.code == CURLE_SEND_ERROR || row.code == CURLE_SEND_FAIL_REWIND ||
        row.code == CURLE_RECV_ERROR) {
      text += Where(failure.phase);
    }
    if (row.extra == Extra::kSystemError && failure.system_error != 0) {
      text += ": " + std::system_category().message(failure.system_error);
    } else if (row.extra == Extra::kDetail && !failure.detail.empty()) {
      text += ": " + Printable(failure.detail, 200);
    }
    if (row.reason == ErrorReason::ERROR_REASON_INVALID_ARGUMENT) {
      return MakeError(row.reason, fmt::format("{} {}", HostOrWord(failure.url), text));
    }
    return Make(row.reason, failure.url, failure.phase, text);
  }
  return MakeError(
      ErrorReason::ERROR_REASON_INTERNAL,
      fmt::format("the exchange with {} failed: {} (curl {})", HostOrWord(failure.url),
                  curl_easy_strerror(static_cast<CURLcode>(failure.code)), failure.code),
      {.metadata = {{"host", HostOrWord(failure.url)}}});
}

absl::Status TimeoutStatus(std::string_view url, HttpPhase phase, std::string_view what,
                           absl::Duration limit) {
  return Make(ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT, url, phase,
              fmt::format("{} within {}", what, absl::FormatDuration(limit)));
}

absl::Status ProtocolStatus(std::string_view url, std::string_view what) {
  return Make(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL, url, HttpPhase::kBody, what);
}

absl::Status CancelledStatus(std::string_view url) {
  return MakeError(ErrorReason::ERROR_REASON_CANCELLED,
                   fmt::format("cancelled while waiting for {}", HostOrWord(url)));
}

absl::Status LostStatus(std::string_view url, HttpPhase phase) {
  return CurlStatus({.code = CURLE_RECV_ERROR, .phase = phase, .url = url});
}

absl::Status NotResentStatus(std::string_view url) {
  return Make(ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE, url, HttpPhase::kAnswer,
              "closed its kept-alive connection before it answered; the request may have been "
              "processed and was not repeated");
}

std::string Printable(std::string_view bytes, size_t limit) {
  std::string text;
  for (const char c : bytes.substr(0, limit)) text += c >= 0x20 && c < 0x7f ? c : '?';
  return text;
}

}  // namespace bridge
