// SPDX-License-Identifier: Apache-2.0
//
// server/options.h — everything that can be set of a server. The flags (flags.cc) are these fields.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bridge/server/call_log.h"
#include "bridge/server/listen_address.h"
#include "bridge/server/services.h"
#include "bridge/server/tls.h"
#include "bridge/service/call_host.h"

namespace bridge {

struct ServerOptions {
  std::vector<ListenAddress> listen = {{.host = "127.0.0.1", .port = 50051}};
  // An address that other machines reach needs TLS and callers who say who they are, unless this
  // says that the network takes care of both.
  bool insecure_public = false;
  TlsFiles tls = {};
  std::string auth_tokens_file = {};  // empty: no tokens wanted
  // Empty: no admin server.
  std::string admin_listen = {};
  // Empty: health is on the addresses above alone.
  std::string health_listen = {};

  ServicesOptions services = {};
  // The bridge's own key: from a file that is read again when it changes, or as it is.
  std::string api_key_file = {};
  std::string api_key = {};  // secret
  bool forward_api_keys = false;

  CallLimits limits = {};
  LogCalls log_calls = LogCalls::kFailed;
  bool reflection = true;
  bool channelz = false;

  // A connection is asked to end after so long, so that load spreads again; then it has the grace.
  absl::Duration max_connection_age = absl::InfiniteDuration();
  absl::Duration max_connection_age_grace = absl::Minutes(10);
  // How long a connection may be silent before the bridge says something on it, so that what stands
  // between (60 s is usual) does not cut it and a peer that is gone is noticed.
  absl::Duration keepalive_time = absl::Seconds(20);
  // What gRPC may hold for all connections together.
  int64_t grpc_memory_bytes = int64_t{1} << 30;
  // How often files are looked at.
  absl::Duration reload_interval = absl::Seconds(10);
};

}  // namespace bridge
