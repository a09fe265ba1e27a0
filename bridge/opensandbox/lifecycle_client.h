// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/lifecycle_client.h — the lifecycle server's API, one method a route, typed.
//
// No policy: a method is one exchange (reads: a few tries) and says what the server answered.
//   * Reads are tried again after 429, 502, 503, 504 and lost connections: at most max_retries
//   times,
//     full jitter, a Retry-After honoured up to max_retry_after, never past the call's deadline.
//     Everything else is sent once; POST /sandboxes above all.
//   * Failures are those of upstream_error.h, net/http.h for the transport (with metadata "phase"),
//     DEADLINE_EXCEEDED when the call's deadline left no time to ask, CANCELLED.
//   * Ids are one percent-encoded segment of the path; an empty id is INVALID_ARGUMENT.
// Loop thread only. The object outlives its tasks.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/backoff.h"
#include "bridge/opensandbox/base_url.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/endpoint.h"
#include "bridge/opensandbox/fetcher.h"
#include "bridge/opensandbox/lifecycle_types.h"
#include "bridge/opensandbox/upstream_error.h"

namespace bridge {

inline constexpr std::string_view kApiKeyHeader = "OPEN-SANDBOX-API-KEY";

struct LifecycleClientOptions {
  BaseUrl server = {};
  absl::Duration connect_timeout = absl::Seconds(5);
  // Of one exchange whose call has a later deadline or none.
  absl::Duration request_timeout = absl::Seconds(30);
  int max_retries = 3;
  absl::Duration max_retry_after = absl::Seconds(10);
  RandomFraction random = SystemRandom();
};

// A record as read, and the server's clock at that moment (to the second, by its Date header).
struct Reading {
  SandboxRecord record = {};
  std::optional<absl::Time> server_time = {};
};

enum class DiagnosticsKind { kSummary, kInspect, kEvents, kLogs };

class LifecycleClient {
 public:
  LifecycleClient(EventLoop& loop, Fetcher& fetcher, LifecycleClientOptions options);
  LifecycleClient(const LifecycleClient&) = delete;
  LifecycleClient& operator=(const LifecycleClient&) = delete;

  // Waits for the answer until the context's deadline, however long that is: a pull takes minutes.
  Task<absl::StatusOr<SandboxRecord>> Create(CallContext context, CreateSpec spec);
  Task<absl::StatusOr<Reading>> Get(CallContext context, std::string id);
  Task<absl::StatusOr<SandboxPage>> List(CallContext context, ListQuery query);
  // The status of the success, 2xx.
  Task<absl::StatusOr<int>> Delete(CallContext context, std::string id);
  Task<absl::StatusOr<SandboxRecord>> PatchMetadata(CallContext context, std::string id,
                                                    std::map<std::string, std::string> set,
                                                    std::vector<std::string> remove);
  Task<absl::Status> Pause(CallContext context, std::string id);
  Task<absl::Status> Resume(CallContext context, std::string id);
  // What the server says that it stored; nullopt when it does not say.
  Task<absl::StatusOr<std::optional<absl::Time>>> Renew(CallContext context, std::string id,
                                                        absl::Time expires_at);

  Task<absl::StatusOr<Endpoint>> GetEndpoint(CallContext context, std::string id, int port,
                                             bool through_server);
  // Never asks for the server's proxy: its route cannot be signed.
  Task<absl::StatusOr<Endpoint>> SignEndpoint(CallContext context, std::string id, int port,
                                              int64_t expires_unix_seconds);

  Task<absl::StatusOr<NetworkPolicyStatus>> GetNetworkPolicy(CallContext context, std::string id);
  Task<absl::Status> AddNetworkRules(CallContext context, std::string id,
                                     std::vector<NetworkRule> rules);
  Task<absl::Status> RemoveNetworkTargets(CallContext context, std::string id,
                                          std::vector<std::string> targets);

  // Text as it came; longer than `max_bytes` is UPSTREAM_PROTOCOL.
  Task<absl::StatusOr<std::string>> Diagnostics(CallContext context, std::string id,
                                                DiagnosticsKind kind, int tail, size_t max_bytes);

  Task<absl::StatusOr<SnapshotRecord>> CreateSnapshot(CallContext context, std::string id,
                                                      std::string name);
  Task<absl::StatusOr<SnapshotRecord>> GetSnapshot(CallContext context, std::string snapshot_id);
  Task<absl::StatusOr<SnapshotPage>> ListSnapshots(CallContext context, std::string sandbox_id,
                                                   int page, int page_size);
  Task<absl::Status> DeleteSnapshot(CallContext context, std::string snapshot_id);

  // Neither needs a key. Version: empty where the server has no such route.
  Task<absl::Status> Health(CallContext context);
  Task<absl::StatusOr<std::string>> Version(CallContext context);

  const BaseUrl& server() const { return options_.server; }
  EventLoop& loop() const { return loop_; }

 private:
  struct Exchange;

  // One exchange with tries, its success statuses sorted out.
  Task<absl::StatusOr<HttpResponse>> Run(const CallContext& context, Exchange exchange);
  Task<absl::StatusOr<HttpResponse>> TryOnce(const CallContext& context, const Exchange& exchange);
  absl::Status UnreadableError(const CallContext& context, const Exchange& exchange,
                               const HttpResponse& response, const absl::Status& problem) const;
  // Run, then `parse` of the body.
  template <class T>
  Task<absl::StatusOr<T>> RunAndParse(const CallContext& context, Exchange exchange,
                                      absl::StatusOr<T> (*parse)(std::string_view));
  Task<absl::Status> RunOnly(const CallContext& context, Exchange exchange);

  EventLoop& loop_;
  Fetcher& fetcher_;
  const LifecycleClientOptions options_;
};

}  // namespace bridge
