// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/daemon_finder.h — where the daemon of a sandbox really answers.
//
// Asks the server for port 44772, tries execd's own port before its proxy (which costs execd two
// descriptors a request), and believes only a /ping that was answered. Remembers nothing.
// Loop thread only; the object outlives its tasks.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/endpoint.h"
#include "bridge/opensandbox/fetcher.h"
#include "bridge/opensandbox/lifecycle_client.h"

namespace bridge {

struct DaemonFinderOptions {
  // All traffic to sandboxes goes through the OpenSandbox server.
  bool through_server = false;
  // Of one /ping: a paused sandbox accepts the connection and never answers.
  absl::Duration ping_timeout = absl::Seconds(3);
};

class DaemonFinder {
 public:
  DaemonFinder(LifecycleClient& client, Fetcher& fetcher, DaemonFinderOptions options)
      : client_(client), fetcher_(fetcher), options_(options) {}
  DaemonFinder(const DaemonFinder&) = delete;
  DaemonFinder& operator=(const DaemonFinder&) = delete;

  // One try. Errors: what the endpoint route answers; of the /ping
  //   UPSTREAM_UNAUTHENTICATED, UPSTREAM_PERMISSION_DENIED   metadata hop: "server" or "sandbox"
  //   SANDBOX_NOT_FOUND     the server's proxy says so
  //   SANDBOX_UNREACHABLE   everything else; metadata endpoint, upstream_status, upstream_code
  Task<absl::StatusOr<Endpoint>> Find(CallContext context, std::string sandbox_id);

  // One /ping, with the errors above.
  Task<absl::Status> Ping(CallContext context, std::string sandbox_id, Endpoint endpoint);

  bool through_server() const { return options_.through_server; }

 private:
  LifecycleClient& client_;
  Fetcher& fetcher_;
  const DaemonFinderOptions options_;
};

// May the same try succeed a little later, on a sandbox that is starting? No for refused
// credentials, unknown sandboxes and a proxy that has given the sandbox up.
bool MayAnswerLater(const absl::Status& failure);

// "10.0.0.1:44064" of a URL, for messages.
std::string HostOf(const Endpoint& endpoint);

}  // namespace bridge
