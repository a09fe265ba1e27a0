// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/daemon_client.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/error_body.h"
#include "bridge/opensandbox/json.h"
#include "bridge/opensandbox/upstream_error.h"

namespace bridge {
namespace {

// Enough for an answer of a daemon that is alive; a paused sandbox accepts and never answers.
constexpr absl::Duration kSmallAnswerTimeout = absl::Seconds(10);

std::string CodeOf(std::string_view body) {
  const auto object = ParseJson(body);
  if (!object.is_object()) return "";
  const auto code = object.find("code");
  return code != object.end() && code->is_string() ? code->get<std::string>() : "";
}

// "DOCKER::SANDBOX_NOT_FOUND", "BACKEND_CONNECTION_FAILED": words of the server, never of a daemon.
bool IsServersCode(std::string_view code) {
  return code.find("::") != std::string_view::npos || code.rfind("BACKEND_", 0) == 0;
}

// As upstream_error.cc has it for the server, so that a status means the same wherever it comes
// from.
ErrorReason ReasonOfDaemonStatus(int status) {
  switch (status) {
    case 400:
    case 413:
    case 416:
    case 422:
      return ErrorReason::ERROR_REASON_UPSTREAM_REJECTED;
    case 401:
    case 407:
      return ErrorReason::ERROR_REASON_UPSTREAM_UNAUTHENTICATED;
    case 403:
      return ErrorReason::ERROR_REASON_UPSTREAM_PERMISSION_DENIED;
    case 408:
      return ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT;
    case 409:
    case 423:
    case 425:
      return ErrorReason::ERROR_REASON_CONFLICT;
    case 429:
      return ErrorReason::ERROR_REASON_QUOTA_EXCEEDED;
    case 501:
      return ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE;
    case 502:
    case 503:
    case 504:
      return ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE;
    default:
      return status >= 500 ? ErrorReason::ERROR_REASON_UPSTREAM_FAILED
                           : ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL;
  }
}

}  // namespace

std::string QueryEscape(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size() + 16);
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    const bool plain = (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || (u >= '0' && u <= '9') ||
                       u == '-' || u == '_' || u == '.' || u == '~';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[u >> 4];
      out += kHex[u & 15];
    }
  }
  return out;
}

bool IsTransportFailure(const absl::Status& status) {
  const auto metadata = MetadataOf(status);
  if (!metadata.contains("host") || metadata.contains("upstream_status")) return false;
  const ErrorReason reason = ReasonOf(status);
  return reason == ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE ||
         reason == ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT;
}

HttpRequest DaemonClient::Request(const CallContext& context, const Daemon& daemon,
                                  std::string_view method, std::string_view target,
                                  absl::Duration limit) const {
  HttpRequest request;
  request.method = std::string(method);
  request.url = daemon.endpoint.url + std::string(target);
  request.headers = daemon.endpoint.headers;
  if (daemon.endpoint.through_server && !context.api_key.empty()) {
    request.headers.Set("OPEN-SANDBOX-API-KEY", context.api_key);
  }
  if (!context.traceparent.empty()) request.headers.Set("traceparent", context.traceparent);
  request.total_timeout = limit;
  if (context.deadline != absl::InfiniteDuration()) {
    const absl::Duration left = context.deadline - http_.loop().Now();
    request.total_timeout = std::min(limit, std::max(left, absl::Milliseconds(1)));
  }
  return request;
}

HttpRequest DaemonClient::EndlessRequest(const CallContext& context, const Daemon& daemon,
                                         std::string_view method, std::string_view target) const {
  HttpRequest request = Request(context, daemon, method, target, absl::InfiniteDuration());
  request.total_timeout = absl::InfiniteDuration();
  return request;
}

Task<absl::StatusOr<HttpResponse>> DaemonClient::Fetch(CallContext context,
                                                       std::shared_ptr<Daemon> daemon,
                                                       HttpRequest request, size_t max_body_bytes) {
  absl::StatusOr<HttpResponse> response =
      co_await bridge::Fetch(http_, std::move(request), max_body_bytes);
  const bool cancelled = co_await Cancelled();
  if (cancelled) co_return response;
  if (response.ok()) {
    CO_RETURN_IF_ERROR(co_await ExpectDaemons(std::move(context), std::move(daemon), &*response));
    co_return response;
  }
  co_return co_await directory_.Explain(std::move(context), daemon->sandbox_id, response.status());
}

Task<absl::Status> DaemonClient::Explained(CallContext context, std::shared_ptr<Daemon> daemon,
                                           absl::Status status) {
  const bool cancelled = co_await Cancelled();
  if (cancelled || !IsTransportFailure(status)) co_return status;
  co_return co_await directory_.Explain(std::move(context), daemon->sandbox_id, std::move(status));
}

Task<absl::Status> DaemonClient::ExpectDaemons(CallContext context, std::shared_ptr<Daemon> daemon,
                                               const HttpResponse* response) {
  if (!daemon->endpoint.through_server || response->status < 400) co_return absl::OkStatus();
  const std::string code = CodeOf(response->body);
  if (!IsServersCode(code)) co_return absl::OkStatus();
  absl::Status failure =
      MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE,
                "the OpenSandbox server's proxy answered " + std::to_string(response->status) +
                    " (" + code.substr(0, 64) + ") in its place");
  co_return co_await directory_.Explain(std::move(context), daemon->sandbox_id, std::move(failure));
}

Task<absl::StatusOr<std::string>> DaemonClient::ReadSmallFile(CallContext context,
                                                              std::shared_ptr<Daemon> daemon,
                                                              std::string path, size_t max_bytes) {
  HttpRequest request = Request(context, *daemon, "GET",
                                "/files/download?path=" + QueryEscape(path), kSmallAnswerTimeout);
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await Fetch(context, daemon, std::move(request), max_bytes));
  if (response.status == 200 || response.status == 206) co_return std::move(response.body);
  if (response.status == 404) {
    co_return MakeError(ErrorReason::ERROR_REASON_PATH_NOT_FOUND, "no such file in the sandbox");
  }
  co_return DaemonError(response, "read a file");
}

absl::Status DaemonError(const HttpResponse& response, std::string_view what) {
  const ErrorBody body = ParseErrorBody(
      response.headers.Get("Content-Type").value_or(std::string_view()), response.body);
  ErrorReason reason = ReasonOfDaemonStatus(response.status);
  // No daemon has pages: a gate on the way to it does.
  if (body.html && response.status < 500) reason = ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL;
  if (body.login_page && response.status < 500) {
    reason = ErrorReason::ERROR_REASON_UPSTREAM_UNAUTHENTICATED;
  }
  ErrorDetails details;
  details.retry_after = RetryAfter(response.headers);
  details.metadata["upstream_status"] = std::to_string(response.status);
  if (!body.code.empty()) details.metadata["upstream_code"] = body.code.substr(0, 64);
  const std::string request_id = RequestIdOf(response.headers);
  if (!request_id.empty()) details.metadata["upstream_request_id"] = request_id;
  if (reason == ErrorReason::ERROR_REASON_UPSTREAM_UNAUTHENTICATED ||
      reason == ErrorReason::ERROR_REASON_UPSTREAM_PERMISSION_DENIED) {
    details.metadata["hop"] = "sandbox";
  }
  // Who says this: something on the way, not the daemon.
  const bool between = body.html || reason == ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE;
  const std::string place = between && !response.host.empty() ? " at " + response.host : "";
  if (reason == ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE && !response.host.empty()) {
    details.metadata["endpoint"] = response.host;
  }
  const std::string status = std::to_string(response.status);
  if (body.html) {
    return MakeError(reason,
                     "asked to " + std::string(what) + ", something between the bridge and the " +
                         "sandbox's daemon" + place + " answered status " + status +
                         " with a web page" + (body.login_page ? " that asks to sign in" : ""),
                     std::move(details));
  }
  return MakeError(reason,
                   "the sandbox's daemon" + place + " refused to " + std::string(what) +
                       " (status " + status + ")",
                   std::move(details));
}

absl::Status UnexpectedContentType(std::string_view what) {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   std::string(what) +
                       " was answered with an unexpected content type; something between the "
                       "bridge and the sandbox's daemon answers in its place");
}

}  // namespace bridge
