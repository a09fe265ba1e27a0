// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/upstream_error.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "bridge/opensandbox/redact.h"
#include "bridge/opensandbox/timestamps.h"
#include "fmt/format.h"

namespace bridge {
namespace {

using S = Speaker;

constexpr uint32_t Mask(Route route) { return static_cast<uint32_t>(route); }
template <class... Routes>
constexpr uint32_t Any(Routes... routes) {
  return (Mask(routes) | ...);
}

constexpr uint32_t kAll = 0;
constexpr uint32_t kSandboxRoutes =
    Any(Route::kGet, Route::kDelete, Route::kPatchMetadata, Route::kPause, Route::kResume,
        Route::kRenew, Route::kEndpoint, Route::kSignedEndpoint, Route::kNetworkPolicy,
        Route::kDiagnostics, Route::kCreateSnapshot);
constexpr uint32_t kSnapshotRoutes = Any(Route::kGetSnapshot, Route::kDeleteSnapshot);
// Routes that some servers do not have.
constexpr uint32_t kOptionalRoutes =
    Any(Route::kNetworkPolicy, Route::kDiagnostics, Route::kCreateSnapshot, Route::kGetSnapshot,
        Route::kListSnapshots, Route::kDeleteSnapshot, Route::kPause, Route::kResume,
        Route::kPatchMetadata);

// A server that asks for more means "do not come back"; callers get a number they can use.
constexpr absl::Duration kMaxRetryAfter = absl::Hours(24);

#define R(name) ErrorReason::ERROR_REASON_##name

constexpr UpstreamErrorRule kRules[] = {
    // Not OpenSandbox at all.
    {kAll, 200, 499, "", S::kLoginPage, R(UPSTREAM_UNAUTHENTICATED)},

    // Capacity, under whatever status it comes (but 503, which says "later" by itself).
    {kAll, 400, 500, "QUOTA_EXCEEDED", S::kApplication, R(QUOTA_EXCEEDED)},
    {kAll, 400, 500, "POOL_EXHAUSTED", S::kApplication, R(QUOTA_EXCEEDED)},
    {kAll, 400, 500, "POOL_CAPACITY_EXHAUSTED", S::kApplication, R(QUOTA_EXCEEDED)},

    // What this upstream cannot do.
    {Mask(Route::kSignedEndpoint), 400, 400, "API_NOT_SUPPORTED", S::kApplication,
     R(SIGNED_ENDPOINT_UNSUPPORTED)},
    {Mask(Route::kSignedEndpoint), 501, 501, "", S::kAnyone, R(SIGNED_ENDPOINT_UNSUPPORTED)},
    {kAll, 400, 400, "API_NOT_SUPPORTED", S::kApplication, R(UNSUPPORTED_FEATURE)},
    {kAll, 400, 400, "UNSUPPORTED_POOL_REF", S::kApplication, R(UNSUPPORTED_FEATURE)},
    {kAll, 400, 400, "SCOPE_UNSUPPORTED", S::kApplication, R(UNSUPPORTED_FEATURE)},
    {kAll, 501, 501, "", S::kAnyone, R(UNSUPPORTED_FEATURE)},
    {kOptionalRoutes, 404, 405, "", S::kNotApplication, R(UNSUPPORTED_FEATURE)},

    // A sandbox that could not be made.
    {Mask(Route::kCreate), 500, 500, "IMAGE_PULL_FAILED", S::kApplication, R(SANDBOX_FAILED)},
    {Mask(Route::kCreate), 500, 500, "START_FAILED", S::kApplication, R(SANDBOX_FAILED)},
    {Mask(Route::kCreate), 500, 500, "POD_FAILED", S::kApplication, R(SANDBOX_FAILED)},
    {Mask(Route::kCreate), 504, 504, "POD_READY_TIMEOUT", S::kApplication, R(READY_TIMEOUT)},
    {Mask(Route::kCreate), 404, 404, "SNAPSHOT::NOT_FOUND", S::kApplication, R(SNAPSHOT_NOT_FOUND)},
    {Mask(Route::kCreate), 409, 409, "INVALID_RESTORE_CONFIG", S::kApplication,
     R(UPSTREAM_REJECTED)},
    {Mask(Route::kCreate), 404, 404, "", S::kApplication, R(UPSTREAM_REJECTED)},

    // The sandbox is not in the state that the call wants.
    {Mask(Route::kRenew), 409, 409, "INVALID_EXPIRATION", S::kAnyone, R(NO_EXPIRY)},
    {Any(Route::kPause, Route::kResume, Route::kCreateSnapshot), 409, 409, "", S::kAnyone,
     R(SANDBOX_NOT_RUNNING)},
    {Mask(Route::kEndpoint), 404, 404, "POD_IP_NOT_AVAILABLE", S::kApplication,
     R(SANDBOX_UNREACHABLE)},
    {Mask(Route::kEndpoint), 500, 500, "ENDPOINT_UNAVAILABLE", S::kApplication,
     R(SANDBOX_UNREACHABLE)},

    // Absence is believed only when OpenSandbox itself says so: a wrong base URL must not make
    // sandboxes look deleted.
    {kSandboxRoutes, 404, 404, "", S::kApplication, R(SANDBOX_NOT_FOUND)},
    {kSandboxRoutes, 410, 410, "", S::kApplication, R(SANDBOX_NOT_FOUND)},
    {kSnapshotRoutes, 404, 404, "", S::kApplication, R(SNAPSHOT_NOT_FOUND)},
    {kSnapshotRoutes, 410, 410, "", S::kApplication, R(SNAPSHOT_NOT_FOUND)},
    {kAll, 404, 405, "", S::kAnyone, R(UPSTREAM_PROTOCOL)},
    {kAll, 410, 410, "", S::kAnyone, R(UPSTREAM_PROTOCOL)},

    {kAll, 401, 401, "", S::kAnyone, R(UPSTREAM_UNAUTHENTICATED)},
    {kAll, 403, 403, "", S::kAnyone, R(UPSTREAM_PERMISSION_DENIED)},
    {kAll, 407, 407, "", S::kAnyone, R(UPSTREAM_UNAUTHENTICATED)},
    {kAll, 408, 408, "", S::kAnyone, R(UPSTREAM_TIMEOUT)},
    {kAll, 409, 409, "", S::kAnyone, R(CONFLICT)},
    {kAll, 423, 423, "", S::kAnyone, R(CONFLICT)},
    {kAll, 425, 425, "", S::kAnyone, R(CONFLICT)},
    {kAll, 429, 429, "", S::kAnyone, R(QUOTA_EXCEEDED)},
    {kAll, 400, 499, "", S::kPage, R(UPSTREAM_PROTOCOL)},
    {kAll, 400, 499, "", S::kAnyone, R(UPSTREAM_REJECTED)},
    {kAll, 502, 504, "", S::kAnyone, R(UPSTREAM_UNAVAILABLE)},
    // What content delivery networks answer for a dead origin.
    {kAll, 520, 527, "", S::kAnyone, R(UPSTREAM_UNAVAILABLE)},
    {kAll, 500, 599, "", S::kAnyone, R(UPSTREAM_FAILED)},
    // Redirects are not followed: the key would go along.
    {kAll, 0, 999, "", S::kAnyone, R(UPSTREAM_PROTOCOL)},
};

#undef R

struct RouteWords {
  Route route;
  std::string_view name;
  std::string_view feature;
};
constexpr RouteWords kRoutes[] = {
    {Route::kCreate, "create", "sandboxes.create"},
    {Route::kGet, "get", "sandboxes.get"},
    {Route::kList, "list", "sandboxes.list"},
    {Route::kDelete, "delete", "sandboxes.delete"},
    {Route::kPatchMetadata, "update metadata", "sandboxes.metadata"},
    {Route::kPause, "pause", "sandboxes.pause"},
    {Route::kResume, "resume", "sandboxes.pause"},
    {Route::kRenew, "renew expiration", "sandboxes.expiration"},
    {Route::kEndpoint, "get endpoint", "sandboxes.endpoints"},
    {Route::kSignedEndpoint, "sign endpoint", "sandboxes.signed_endpoints"},
    {Route::kNetworkPolicy, "network policy", "sandboxes.network_policy"},
    {Route::kDiagnostics, "diagnostics", "sandboxes.diagnostics"},
    {Route::kCreateSnapshot, "create snapshot", "sandboxes.snapshots"},
    {Route::kGetSnapshot, "get snapshot", "sandboxes.snapshots"},
    {Route::kListSnapshots, "list snapshots", "sandboxes.snapshots"},
    {Route::kDeleteSnapshot, "delete snapshot", "sandboxes.snapshots"},
    {Route::kHealth, "health", "sandboxes.get"},
};

const RouteWords& WordsOf(Route route) {
  for (const RouteWords& words : kRoutes) {
    if (words.route == route) return words;
  }
  return kRoutes[0];
}

bool Speaks(const ErrorBody& body, Speaker speaker) {
  switch (speaker) {
    case S::kAnyone:
      return true;
    case S::kApplication:
      return body.from_application;
    case S::kNotApplication:
      return !body.from_application;
    case S::kPage:
      return body.html;
    case S::kLoginPage:
      return body.login_page;
  }
  return false;
}

std::string_view HeaderOr(const HttpHeaders& headers, std::string_view name) {
  return headers.Get(name).value_or(std::string_view());
}

std::map<std::string, std::string> Metadata(const UpstreamPlace& place, ErrorReason reason,
                                            const HttpResponse& response, const ErrorBody& body) {
  std::map<std::string, std::string> metadata;
  metadata["upstream_status"] = std::to_string(response.status);
  if (!body.code.empty()) metadata["upstream_code"] = body.code;
  const std::string request_id = RequestIdOf(response.headers);
  if (!request_id.empty()) metadata["upstream_request_id"] = request_id;
  if (!place.sandbox_id.empty()) metadata["sandbox_id"] = OneLine(place.sandbox_id, 300);
  switch (reason) {
    case ErrorReason::ERROR_REASON_UPSTREAM_UNAUTHENTICATED:
    case ErrorReason::ERROR_REASON_UPSTREAM_PERMISSION_DENIED:
      metadata["hop"] = "server";
      break;
    case ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE:
      metadata["host"] = std::string(place.host);
      break;
    case ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE:
      metadata["feature"] = std::string(RouteFeature(place.route));
      break;
    default:
      break;
  }
  return metadata;
}

}  // namespace

std::string_view RouteName(Route route) { return WordsOf(route).name; }
std::string_view RouteFeature(Route route) { return WordsOf(route).feature; }

absl::Span<const UpstreamErrorRule> UpstreamErrorRules() { return kRules; }

ErrorReason UpstreamReason(Route route, int status, const ErrorBody& body) {
  for (const UpstreamErrorRule& rule : kRules) {
    if (rule.routes != kAll && (rule.routes & Mask(route)) == 0) continue;
    if (status < rule.status_from || status > rule.status_to) continue;
    if (!body.code.ends_with(rule.code_end) || !Speaks(body, rule.speaker)) continue;
    return rule.reason;
  }
  return std::rbegin(kRules)->reason;
}

absl::Status UpstreamError(const UpstreamPlace& place, const HttpResponse& response) {
  ErrorBody body = ParseErrorBody(HeaderOr(response.headers, "content-type"), response.body);
  const ErrorReason reason = UpstreamReason(place.route, response.status, body);
  body.words = WithoutSecrets(std::move(body.words), place.secrets);
  body.code = WithoutSecrets(std::move(body.code), place.secrets);

  std::string message = fmt::format("OpenSandbox at {} answered {} to \"{}\"", place.host,
                                    response.status, RouteName(place.route));
  if (body.html) {
    message += body.login_page ? " with a web page that asks to sign in" : " with a web page";
  } else if (response.status >= 300 && response.status < 400) {
    message += ", a redirect, which is not followed: check the base URL";
  }
  if (!body.code.empty()) message += " (" + body.code + ")";
  if (!body.words.empty()) message += ": " + body.words;
  return MakeError(reason, message,
                   {.metadata = Metadata(place, reason, response, body),
                    .retry_after = RetryAfter(response.headers)});
}

absl::Status UnreadableAnswer(const UpstreamPlace& place, const HttpResponse& response,
                              std::string_view problem) {
  const ErrorBody body = ParseErrorBody(HeaderOr(response.headers, "content-type"), response.body);
  if (body.html) return UpstreamError(place, response);
  return MakeError(
      ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
      fmt::format("OpenSandbox at {} answered {} to \"{}\" and {}", place.host, response.status,
                  RouteName(place.route), problem),
      {.metadata = Metadata(place, ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL, response, {})});
}

absl::Status TransportError(const UpstreamPlace& place, const absl::Status& failure) {
  absl::Status status =
      WithContext(failure, fmt::format("OpenSandbox, \"{}\"", RouteName(place.route)));
  if (!place.sandbox_id.empty()) {
    status = WithMetadata(status, "sandbox_id", OneLine(place.sandbox_id, 300));
  }
  return status;
}

std::string RequestIdOf(const HttpHeaders& headers) {
  return OneLine(HeaderOr(headers, "x-request-id"), 100);
}

std::optional<absl::Duration> RetryAfter(const HttpHeaders& headers) {
  const auto value = headers.Get("retry-after");
  if (!value) return std::nullopt;
  const auto delay = ParseRetryAfter(*value, ParseHttpDate(HeaderOr(headers, "date")));
  if (!delay) return std::nullopt;
  return std::min(*delay, kMaxRetryAfter);
}

}  // namespace bridge
