// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/daemon_finder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "bridge/base/ascii.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/base_url.h"
#include "bridge/opensandbox/error_body.h"
#include "bridge/opensandbox/upstream_error.h"
#include "fmt/format.h"

namespace bridge {
namespace {

constexpr size_t kMaxPingBytes = 64 << 10;

// Whose refusal a 401 or 403 is: behind the server's proxy it may be either's.
std::string_view RefusingHop(const Endpoint& endpoint, const ErrorBody& body) {
  const bool servers_word = body.code == "MISSING_API_KEY" || body.code == "INVALID_API_KEY" ||
                            body.code == "MISSING_OR_INVALID_SECURE_ACCESS" || body.html;
  return endpoint.through_server && servers_word ? "server" : "sandbox";
}

// Some gateways have a code where others have words: {"error":"sandbox_not_found"}.
std::string CodeOf(const ErrorBody& body) {
  if (!body.code.empty() || !body.from_application) return body.code;
  const auto is_code = [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == ':'; };
  return std::all_of(body.words.begin(), body.words.end(), is_code) ? body.words : std::string();
}

absl::Status Unreachable(std::string_view sandbox_id, const Endpoint& endpoint,
                         std::string_view problem, std::map<std::string, std::string> metadata) {
  metadata["sandbox_id"] = std::string(sandbox_id);
  metadata["endpoint"] = HostOf(endpoint);
  return MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE,
                   fmt::format("the daemon of sandbox {} at {} does not answer: {}", sandbox_id,
                               HostOf(endpoint), problem),
                   {.metadata = std::move(metadata)});
}

absl::Status TransportProblem(std::string_view sandbox_id, const Endpoint& endpoint,
                              const absl::Status& failure) {
  std::string problem(failure.message());
  if (!endpoint.through_server) {
    problem +=
        " (if the bridge cannot reach this address, let it go through the OpenSandbox "
        "server: --use_server_proxy)";
  }
  std::map<std::string, std::string> metadata;
  const auto details = MetadataOf(failure);
  if (const auto phase = details.find("phase"); phase != details.end()) metadata.insert(*phase);
  return Unreachable(sandbox_id, endpoint, problem, std::move(metadata));
}

absl::Status RefusalOrProblem(std::string_view sandbox_id, const Endpoint& endpoint,
                              const HttpResponse& response) {
  const ErrorBody body =
      ParseErrorBody(response.headers.Get("content-type").value_or(""), response.body);
  std::map<std::string, std::string> metadata = {
      {"upstream_status", std::to_string(response.status)}};
  if (std::string code = CodeOf(body); !code.empty()) metadata["upstream_code"] = std::move(code);
  if (std::string request_id = RequestIdOf(response.headers); !request_id.empty()) {
    metadata["upstream_request_id"] = std::move(request_id);
  }
  if (response.status == 401 || response.status == 403) {
    const std::string_view hop = RefusingHop(endpoint, body);
    metadata["hop"] = std::string(hop);
    metadata["sandbox_id"] = std::string(sandbox_id);
    return MakeError(
        response.status == 401 ? ErrorReason::ERROR_REASON_UPSTREAM_UNAUTHENTICATED
                               : ErrorReason::ERROR_REASON_UPSTREAM_PERMISSION_DENIED,
        fmt::format("the {} refused the bridge on the way to the daemon of sandbox {} "
                    "at {} with {}{}{}",
                    hop == "server" ? "OpenSandbox server" : "sandbox's daemon", sandbox_id,
                    HostOf(endpoint), response.status, body.words.empty() ? "" : ": ", body.words),
        {.metadata = std::move(metadata)});
  }
  if (response.status == 404 && endpoint.through_server && body.from_application &&
      body.code.ends_with("NOT_FOUND")) {
    metadata["sandbox_id"] = std::string(sandbox_id);
    return MakeError(ErrorReason::ERROR_REASON_SANDBOX_NOT_FOUND,
                     fmt::format("sandbox {} is unknown to the server's proxy", sandbox_id),
                     {.metadata = std::move(metadata)});
  }
  return Unreachable(sandbox_id, endpoint,
                     fmt::format("/ping answered {}{}{}", response.status,
                                 body.words.empty() ? "" : ": ", body.words),
                     std::move(metadata));
}

}  // namespace

std::string HostOf(const Endpoint& endpoint) {
  const std::string origin = OriginOf(endpoint.url);
  const size_t start = origin.find("://");
  return start == std::string::npos ? "" : origin.substr(start + 3);
}

bool MayAnswerLater(const absl::Status& failure) {
  switch (ReasonOf(failure)) {
    case ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE: {
      const auto metadata = MetadataOf(failure);
      const auto code = metadata.find("upstream_code");
      if (code == metadata.end()) return true;
      const std::string word = AsciiLowered(code->second);
      return !word.ends_with("unreachable") && !word.ends_with("sandbox_not_found");
    }
    case ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE:
    case ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT:
    case ErrorReason::ERROR_REASON_UPSTREAM_FAILED:
    case ErrorReason::ERROR_REASON_CONFLICT:
      return true;
    default:
      return false;
  }
}

Task<absl::Status> DaemonFinder::Ping(CallContext context, std::string sandbox_id,
                                      Endpoint endpoint) {
  HttpRequest request;
  request.url = endpoint.url + "/ping";
  request.headers = endpoint.headers;
  if (endpoint.through_server && !context.api_key.empty()) {
    request.headers.Set(kApiKeyHeader, context.api_key);
  }
  if (!context.traceparent.empty()) request.headers.Set("traceparent", context.traceparent);
  const absl::Duration left = context.deadline - client_.loop().Now();
  request.total_timeout = std::max(std::min(options_.ping_timeout, left), absl::Milliseconds(1));
  request.connect_timeout = request.total_timeout;
  const absl::StatusOr<HttpResponse> response =
      co_await fetcher_.Fetch(std::move(request), kMaxPingBytes);
  if (!response.ok()) {
    if (ReasonOf(response.status()) == ErrorReason::ERROR_REASON_CANCELLED) {
      co_return response.status();
    }
    co_return TransportProblem(sandbox_id, endpoint, response.status());
  }
  if (response->status >= 200 && response->status < 300) co_return absl::OkStatus();
  co_return RefusalOrProblem(sandbox_id, endpoint, *response);
}

Task<absl::StatusOr<Endpoint>> DaemonFinder::Find(CallContext context, std::string sandbox_id) {
  CO_ASSIGN_OR_RETURN(
      const Endpoint given,
      co_await client_.GetEndpoint(context, sandbox_id, kExecdPort, options_.through_server));
  const Endpoint root = WithoutExecdProxy(given);
  const absl::Status first = co_await Ping(context, sandbox_id, root);
  if (first.ok()) co_return root;
  if (root.url == given.url || ReasonOf(first) != ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE) {
    co_return first;
  }
  const absl::Status second = co_await Ping(context, sandbox_id, given);
  if (!second.ok()) co_return first;
  // A daemon that came up between the two answers at its root as well, and the detour would cost it
  // its descriptors for as long as it is remembered.
  const absl::Status again = co_await Ping(context, sandbox_id, root);
  co_return again.ok() ? root : given;
}

}  // namespace bridge
