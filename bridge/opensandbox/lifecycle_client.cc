// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/lifecycle_client.h"

#include <algorithm>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/lifecycle_codec.h"
#include "bridge/opensandbox/timestamps.h"
#include "fmt/format.h"

namespace bridge {
namespace {

constexpr size_t kMaxAnswerBytes = 1 << 20;
constexpr size_t kMaxListBytes = 16 << 20;  // 200 records of what labels and messages may hold
constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLongestRetry = absl::Seconds(5);

// An environment's shorter values are words like "true", and not worth a message without them.
constexpr size_t kShortestSecretValue = 8;

std::vector<std::string_view> SecretsOf(const CreateSpec& spec) {
  std::vector<std::string_view> secrets = {spec.image_password};
  for (const auto& [name, value] : spec.env) {
    if (value.size() >= kShortestSecretValue) secrets.push_back(value);
  }
  return secrets;
}

std::vector<std::string_view> SecretsOf(const CallContext& context,
                                        std::vector<std::string_view> secrets) {
  secrets.push_back(context.api_key);
  return secrets;
}

bool IsSuccess(int status) { return status >= 200 && status < 300; }
bool IsWorthARetry(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

std::string SandboxPath(std::string_view id, std::string_view rest = {}) {
  return fmt::format("/sandboxes/{}{}", EncodeSegment(id), rest);
}

std::string_view DiagnosticsName(DiagnosticsKind kind) {
  switch (kind) {
    case DiagnosticsKind::kSummary:
      return "summary";
    case DiagnosticsKind::kInspect:
      return "inspect";
    case DiagnosticsKind::kEvents:
      return "events";
    case DiagnosticsKind::kLogs:
      return "logs";
  }
  return "summary";
}

}  // namespace

struct LifecycleClient::Exchange {
  Route route = Route::kGet;
  std::string method = "GET";
  std::string path = {};  // below /v1, with its query
  std::string body = {};
  std::string_view id = {};                    // what the path names; the caller's, for messages
  std::vector<std::string_view> secrets = {};  // in the body; must not come back in a message
  size_t max_bytes = kMaxAnswerBytes;
  bool long_running = false;  // only the call's deadline bounds it
  bool below_root = false;    // /health and /version
};

LifecycleClient::LifecycleClient(EventLoop& loop, Fetcher& fetcher, LifecycleClientOptions options)
    : loop_(loop), fetcher_(fetcher), options_(std::move(options)) {}

Task<absl::StatusOr<HttpResponse>> LifecycleClient::TryOnce(const CallContext& context,
                                                            const Exchange& exchange) {
  const absl::Duration left = context.deadline - loop_.Now();
  if (left <= absl::ZeroDuration()) {
    co_return MakeError(ErrorReason::ERROR_REASON_DEADLINE_EXCEEDED,
                        fmt::format("no time left for \"{}\"", RouteName(exchange.route)),
                        {.metadata = {{"waiting_for", std::string(RouteName(exchange.route))}}});
  }
  HttpRequest request;
  request.method = exchange.method;
  request.url = (exchange.below_root ? options_.server.root : options_.server.api) + exchange.path;
  request.headers.Add("Accept", "application/json, text/plain");
  if (!context.api_key.empty()) request.headers.Add(kApiKeyHeader, context.api_key);
  if (!context.traceparent.empty()) request.headers.Add("traceparent", context.traceparent);
  if (!exchange.body.empty()) request.headers.Add("Content-Type", "application/json");
  request.body = exchange.body;
  request.connect_timeout = options_.connect_timeout;
  request.total_timeout = exchange.long_running ? left : std::min(left, options_.request_timeout);
  // A DELETE that is repeated behind our back would turn its own 204 into a 404.
  request.resend = exchange.method == "GET" ? Resend::kIdempotent : Resend::kNever;
  absl::StatusOr<HttpResponse> response =
      co_await fetcher_.Fetch(std::move(request), exchange.max_bytes);
  const UpstreamPlace place = {.route = exchange.route,
                               .host = options_.server.host,
                               .sandbox_id = exchange.id,
                               .secrets = SecretsOf(context, exchange.secrets)};
  if (!response.ok()) co_return TransportError(place, response.status());
  if (!IsSuccess(response->status)) co_return UpstreamError(place, *response);
  co_return response;
}

Task<absl::StatusOr<HttpResponse>> LifecycleClient::Run(const CallContext& context,
                                                        Exchange exchange) {
  Backoff backoff = Backoff::Jittered(kFirstRetry, kLongestRetry, options_.random);
  const int tries = exchange.method == "GET" ? options_.max_retries + 1 : 1;
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<HttpResponse> response = co_await TryOnce(context, exchange);
    if (response.ok() || attempt >= tries) co_return response;
    const absl::Status& failure = response.status();
    const auto metadata = MetadataOf(failure);
    const auto status = metadata.find("upstream_status");
    const bool worth_it = status == metadata.end()
                              ? ReasonOf(failure) == ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE
                              : IsWorthARetry(std::atoi(status->second.c_str()));
    if (!worth_it) co_return response;
    const std::optional<absl::Duration> asked = RetryAfterOf(failure);
    if (asked && *asked > options_.max_retry_after) co_return response;
    const absl::Duration pause = asked ? *asked : backoff.Next();
    if (loop_.Now() + pause >= context.deadline) co_return response;
    const bool slept = co_await loop_.Sleep(pause);
    if (!slept) co_return response;  // cancelled: what is known is the better answer
  }
}

absl::Status LifecycleClient::UnreadableError(const CallContext& context, const Exchange& exchange,
                                              const HttpResponse& response,
                                              const absl::Status& problem) const {
  return UnreadableAnswer({.route = exchange.route,
                           .host = options_.server.host,
                           .sandbox_id = exchange.id,
                           .secrets = SecretsOf(context, exchange.secrets)},
                          response, std::string(problem.message()));
}

template <class T>
Task<absl::StatusOr<T>> LifecycleClient::RunAndParse(const CallContext& context, Exchange exchange,
                                                     absl::StatusOr<T> (*parse)(std::string_view)) {
  CO_ASSIGN_OR_RETURN(const HttpResponse response, co_await Run(context, exchange));
  absl::StatusOr<T> value = parse(response.body);
  if (!value.ok()) co_return UnreadableError(context, exchange, response, value.status());
  co_return value;
}

Task<absl::Status> LifecycleClient::RunOnly(const CallContext& context, Exchange exchange) {
  const absl::StatusOr<HttpResponse> response = co_await Run(context, std::move(exchange));
  co_return response.status();
}

// --- Sandboxes

Task<absl::StatusOr<SandboxRecord>> LifecycleClient::Create(CallContext context, CreateSpec spec) {
  Exchange exchange = {.route = Route::kCreate,
                       .method = "POST",
                       .path = "/sandboxes",
                       .body = CreateSandboxJson(spec),
                       .secrets = SecretsOf(spec),
                       .long_running = true};
  co_return co_await RunAndParse(context, std::move(exchange), &ParseSandbox);
}

Task<absl::StatusOr<Reading>> LifecycleClient::Get(CallContext context, std::string id) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {.route = Route::kGet, .path = SandboxPath(id), .id = id};
  CO_ASSIGN_OR_RETURN(const HttpResponse response, co_await Run(context, exchange));
  absl::StatusOr<SandboxRecord> record = ParseSandbox(response.body);
  if (!record.ok()) co_return UnreadableError(context, exchange, response, record.status());
  if (record->id != id) {
    co_return UnreadableError(context, exchange, response,
                              absl::InternalError("holds another sandbox"));
  }
  const auto date = response.headers.Get("date");
  co_return Reading{.record = *std::move(record),
                    .server_time = date ? ParseHttpDate(*date) : std::nullopt};
}

Task<absl::StatusOr<SandboxPage>> LifecycleClient::List(CallContext context, ListQuery query) {
  std::string path = fmt::format("/sandboxes?page={}&pageSize={}", query.page, query.page_size);
  for (const std::string& state : query.states) path += "&state=" + EncodeSegment(state);
  if (!query.metadata.empty()) {
    path += "&metadata=" + EncodeSegment(MetadataFilter(query.metadata));
  }
  Exchange exchange = {.route = Route::kList, .path = std::move(path), .max_bytes = kMaxListBytes};
  co_return co_await RunAndParse(context, std::move(exchange), &ParseSandboxPage);
}

Task<absl::StatusOr<int>> LifecycleClient::Delete(CallContext context, std::string id) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {
      .route = Route::kDelete, .method = "DELETE", .path = SandboxPath(id), .id = id};
  CO_ASSIGN_OR_RETURN(const HttpResponse response, co_await Run(context, std::move(exchange)));
  co_return response.status;
}

Task<absl::StatusOr<SandboxRecord>> LifecycleClient::PatchMetadata(
    CallContext context, std::string id, std::map<std::string, std::string> set,
    std::vector<std::string> remove) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {.route = Route::kPatchMetadata,
                       .method = "PATCH",
                       .path = SandboxPath(id, "/metadata"),
                       .body = MetadataPatchJson(set, remove),
                       .id = id};
  co_return co_await RunAndParse(context, std::move(exchange), &ParseSandbox);
}

Task<absl::Status> LifecycleClient::Pause(CallContext context, std::string id) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {
      .route = Route::kPause, .method = "POST", .path = SandboxPath(id, "/pause"), .id = id};
  co_return co_await RunOnly(context, std::move(exchange));
}

Task<absl::Status> LifecycleClient::Resume(CallContext context, std::string id) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {
      .route = Route::kResume, .method = "POST", .path = SandboxPath(id, "/resume"), .id = id};
  co_return co_await RunOnly(context, std::move(exchange));
}

Task<absl::StatusOr<std::optional<absl::Time>>> LifecycleClient::Renew(CallContext context,
                                                                       std::string id,
                                                                       absl::Time expires_at) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {.route = Route::kRenew,
                       .method = "POST",
                       .path = SandboxPath(id, "/renew-expiration"),
                       .body = RenewJson(expires_at),
                       .id = id};
  co_return co_await RunAndParse(context, std::move(exchange), &ParseRenewal);
}

// --- Endpoints

Task<absl::StatusOr<Endpoint>> LifecycleClient::GetEndpoint(CallContext context, std::string id,
                                                            int port, bool through_server) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {
      .route = Route::kEndpoint,
      .path = SandboxPath(
          id, fmt::format("/endpoints/{}{}", port, through_server ? "?use_server_proxy=true" : "")),
      .id = id};
  CO_ASSIGN_OR_RETURN(RawEndpoint raw,
                      co_await RunAndParse(context, std::move(exchange), &ParseEndpointAnswer));
  co_return ParseEndpoint(raw.endpoint, std::move(raw.headers), options_.server.api,
                          through_server);
}

Task<absl::StatusOr<Endpoint>> LifecycleClient::SignEndpoint(CallContext context, std::string id,
                                                             int port,
                                                             int64_t expires_unix_seconds) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {
      .route = Route::kSignedEndpoint,
      .path = SandboxPath(id, fmt::format("/endpoints/{}?expires={}", port, expires_unix_seconds)),
      .id = id};
  CO_ASSIGN_OR_RETURN(RawEndpoint raw,
                      co_await RunAndParse(context, std::move(exchange), &ParseEndpointAnswer));
  co_return ParseEndpoint(raw.endpoint, std::move(raw.headers), options_.server.api, false);
}

// --- Network policy, diagnostics

Task<absl::StatusOr<NetworkPolicyStatus>> LifecycleClient::GetNetworkPolicy(CallContext context,
                                                                            std::string id) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {
      .route = Route::kNetworkPolicy, .path = SandboxPath(id, "/networkpolicy"), .id = id};
  co_return co_await RunAndParse(context, std::move(exchange), &ParseNetworkPolicy);
}

Task<absl::Status> LifecycleClient::AddNetworkRules(CallContext context, std::string id,
                                                    std::vector<NetworkRule> rules) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {.route = Route::kNetworkPolicy,
                       .method = "PATCH",
                       .path = SandboxPath(id, "/networkpolicy"),
                       .body = NetworkRulesJson(rules),
                       .id = id};
  co_return co_await RunOnly(context, std::move(exchange));
}

Task<absl::Status> LifecycleClient::RemoveNetworkTargets(CallContext context, std::string id,
                                                         std::vector<std::string> targets) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {.route = Route::kNetworkPolicy,
                       .method = "DELETE",
                       .path = SandboxPath(id, "/networkpolicy"),
                       .body = TargetsJson(targets),
                       .id = id};
  co_return co_await RunOnly(context, std::move(exchange));
}

Task<absl::StatusOr<std::string>> LifecycleClient::Diagnostics(CallContext context, std::string id,
                                                               DiagnosticsKind kind, int tail,
                                                               size_t max_bytes) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  std::string query;
  if (kind == DiagnosticsKind::kLogs || kind == DiagnosticsKind::kSummary) {
    query = fmt::format("?tail={}", tail);
  } else if (kind == DiagnosticsKind::kEvents) {
    query = fmt::format("?limit={}", std::min(tail, 500));  // more is refused
  }
  const std::string path = fmt::format("/diagnostics/{}{}", DiagnosticsName(kind), query);
  Exchange exchange = {.route = Route::kDiagnostics,
                       .path = SandboxPath(id, path),
                       .id = id,
                       .max_bytes = max_bytes};
  CO_ASSIGN_OR_RETURN(HttpResponse response, co_await Run(context, exchange));
  const std::string_view type = response.headers.Get("content-type").value_or("");
  if (type.substr(0, 16) != "application/json") co_return std::move(response.body);
  // Versions after the plain-text form was dropped.
  absl::StatusOr<std::string> content = ParseDiagnostics(response.body);
  if (!content.ok()) co_return UnreadableError(context, exchange, response, content.status());
  co_return content;
}

// --- Snapshots

Task<absl::StatusOr<SnapshotRecord>> LifecycleClient::CreateSnapshot(CallContext context,
                                                                     std::string id,
                                                                     std::string name) {
  if (id.empty()) co_return InvalidField("sandbox_id", "must not be empty");
  Exchange exchange = {.route = Route::kCreateSnapshot,
                       .method = "POST",
                       .path = SandboxPath(id, "/snapshots"),
                       .body = CreateSnapshotJson(name),
                       .id = id};
  co_return co_await RunAndParse(context, std::move(exchange), &ParseSnapshot);
}

Task<absl::StatusOr<SnapshotRecord>> LifecycleClient::GetSnapshot(CallContext context,
                                                                  std::string snapshot_id) {
  if (snapshot_id.empty()) co_return InvalidField("snapshot_id", "must not be empty");
  Exchange exchange = {.route = Route::kGetSnapshot,
                       .path = "/snapshots/" + EncodeSegment(snapshot_id)};
  co_return co_await RunAndParse(context, std::move(exchange), &ParseSnapshot);
}

Task<absl::StatusOr<SnapshotPage>> LifecycleClient::ListSnapshots(CallContext context,
                                                                  std::string sandbox_id, int page,
                                                                  int page_size) {
  std::string path = fmt::format("/snapshots?page={}&pageSize={}", page, page_size);
  if (!sandbox_id.empty()) path += "&sandboxId=" + EncodeSegment(sandbox_id);
  Exchange exchange = {
      .route = Route::kListSnapshots, .path = std::move(path), .max_bytes = kMaxListBytes};
  co_return co_await RunAndParse(context, std::move(exchange), &ParseSnapshotPage);
}

Task<absl::Status> LifecycleClient::DeleteSnapshot(CallContext context, std::string snapshot_id) {
  if (snapshot_id.empty()) co_return InvalidField("snapshot_id", "must not be empty");
  Exchange exchange = {.route = Route::kDeleteSnapshot,
                       .method = "DELETE",
                       .path = "/snapshots/" + EncodeSegment(snapshot_id)};
  co_return co_await RunOnly(context, std::move(exchange));
}

// --- The server itself

Task<absl::Status> LifecycleClient::Health(CallContext context) {
  Exchange exchange = {.route = Route::kHealth, .path = "/health", .below_root = true};
  co_return co_await RunOnly(context, std::move(exchange));
}

Task<absl::StatusOr<std::string>> LifecycleClient::Version(CallContext context) {
  Exchange exchange = {.route = Route::kHealth, .path = "/version", .below_root = true};
  absl::StatusOr<std::string> version =
      co_await RunAndParse(context, std::move(exchange), &ParseVersion);
  if (!version.ok() && MetadataOf(version.status())["upstream_status"] == "404") {
    co_return std::string();
  }
  co_return version;
}

}  // namespace bridge
