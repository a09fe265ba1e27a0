// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/daemon_client.h — requests to a sandbox's daemon: headers, timeouts, small answers.
// The one place that knows which headers a request to a daemon carries. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/sandbox_directory.h"

namespace bridge {

// A query parameter's value, percent-encoded but for what is unreserved. Any bytes.
std::string QueryEscape(std::string_view text);

// The exchange failed, rather than the daemon: nobody answered, and nobody has looked why.
bool IsTransportFailure(const absl::Status& status);

class DaemonClient {
 public:
  // Both outlive this.
  DaemonClient(HttpClient& http, SandboxDirectory& directory)
      : http_(http), directory_(directory) {}

  HttpClient& http() { return http_; }
  EventLoop& loop() { return http_.loop(); }
  SandboxDirectory& directory() { return directory_; }

  // A request to `target` ("/files/info?path=%2Fa") with the endpoint's headers, the key where the
  // way leads through the server, and the trace. `limit` bounds the whole exchange, as does the
  // call's deadline; infinite for transfers.
  HttpRequest Request(const CallContext& context, const Daemon& daemon, std::string_view method,
                      std::string_view target, absl::Duration limit) const;
  // The same for an answer that goes on for as long as the call does. Nothing bounds it: the call's
  // deadline ends the call, which kills what runs, and must not cut the answer before it.
  HttpRequest EndlessRequest(const CallContext& context, const Daemon& daemon,
                             std::string_view method, std::string_view target) const;

  // One exchange with a small answer, whatever its status. A failure of the transport is explained
  // (see SandboxDirectory::Explain).
  Task<absl::StatusOr<HttpResponse>> Fetch(CallContext context, std::shared_ptr<Daemon> daemon,
                                           HttpRequest request, size_t max_body_bytes);

  // A failure of a transfer, which is nobody's answer, explained in the same way. Any other status
  // as it is, OK too.
  Task<absl::Status> Explained(CallContext context, std::shared_ptr<Daemon> daemon,
                               absl::Status status);

  // OK when an answer is the daemon's own. The OpenSandbox server's proxy also answers itself, with
  // codes that no daemon has: the sandbox ended, or its daemon cannot be reached; then the failure
  // is explained like one of the transport. `response` must outlive the task. Fetch() does this
  // itself.
  Task<absl::Status> ExpectDaemons(CallContext context, std::shared_ptr<Daemon> daemon,
                                   const HttpResponse* response);

  // The whole of a small file, or PATH_NOT_FOUND.
  Task<absl::StatusOr<std::string>> ReadSmallFile(CallContext context,
                                                  std::shared_ptr<Daemon> daemon, std::string path,
                                                  size_t max_bytes);

 private:
  HttpClient& http_;
  SandboxDirectory& directory_;
};

// A daemon's error answer as a failure: by its status first, then by its code. `what` says in a few
// words what was asked ("start a command"). Metadata: upstream_status, upstream_code,
// upstream_request_id, hop, endpoint; RetryInfo from Retry-After. Never quotes a body: its words
// may repeat the command, the environment or the content that the daemon was sent.
absl::Status DaemonError(const HttpResponse& response, std::string_view what);

// UPSTREAM_PROTOCOL: a success that is no daemon's. `what` begins the message ("a command").
absl::Status UnexpectedContentType(std::string_view what);

}  // namespace bridge
