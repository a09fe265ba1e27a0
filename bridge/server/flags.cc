// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/flags.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/base/version.h"

ABSL_FLAG(std::string, listen, "127.0.0.1:50051",
          "Where to serve gRPC: HOST:PORT, [IPv6]:PORT or unix:/PATH, several separated by commas. "
          "Port 0 takes a free one and logs it.");
ABSL_FLAG(bool, insecure_public, false,
          "Serve on an address that other machines reach without TLS or without asking who calls.");
ABSL_FLAG(std::string, upstream, "",
          "The OpenSandbox server: its URL, or 'local' for the one that comes with the bridge.");
ABSL_FLAG(
    std::string, local_isolation, "",
    "How --upstream=local walls sandboxes off: overlay, bwrap, none; empty: the better of the "
    "first two that works here.");
ABSL_FLAG(std::string, local_image_dir, "",
          "Unpacked images for --upstream=local: DIR/python:3.12 and so on.");
ABSL_FLAG(std::string, local_state_dir, "",
          "Where --upstream=local records its sandboxes; empty: a private folder that goes away.");
ABSL_FLAG(bool, local_keep_sandboxes, false,
          "Sandboxes of --upstream=local outlive the bridge; the next one with the same "
          "--local_state_dir finds them.");
ABSL_FLAG(std::string, upstream_ca_file, "",
          "Certificates (PEM) to trust for the upstream instead of the system's.");
ABSL_FLAG(bool, use_server_proxy, false,
          "Reach sandboxes through the OpenSandbox server's proxy, where this machine cannot reach "
          "them.");
ABSL_FLAG(bool, upstream_proxy_from_env, false,
          "Reach the upstream as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say.");
ABSL_FLAG(std::string, api_key_file, "",
          "File with the OpenSandbox key. Read again when it changes. The key itself may be in the "
          "environment as SANDBOX_BRIDGE_API_KEY.");
ABSL_FLAG(bool, forward_api_keys, false,
          "Callers may send their own OpenSandbox key in metadata 'open-sandbox-api-key'.");
ABSL_FLAG(std::string, tls_cert_file, "", "Certificate chain (PEM). Read again when it changes.");
ABSL_FLAG(std::string, tls_key_file, "", "Private key (PEM) of the certificate.");
ABSL_FLAG(std::string, client_ca_file, "",
          "Certificates (PEM) of which one must have signed the certificate of every caller.");
ABSL_FLAG(std::string, auth_tokens_file, "",
          "File with lines TENANT:SHA256 of the bearer tokens that are accepted; TENANT * sees all "
          "sandboxes. Read again when it changes.");
ABSL_FLAG(std::string, admin_listen, "",
          "HOST:PORT for /metrics, /healthz and /readyz over HTTP. Empty: none.");
ABSL_FLAG(std::string, health_listen, "",
          "HOST:PORT for gRPC health alone, without TLS and tokens, for probes that have neither. "
          "Empty: only where everything else is served.");
ABSL_FLAG(absl::Duration, grace, absl::Seconds(20),
          "How long running calls may take to end after SIGTERM.");
ABSL_FLAG(
    absl::Duration, drain_delay, absl::ZeroDuration(),
    "How long calls are still taken after SIGTERM while health says NOT_SERVING, so that load "
    "balancers can notice.");
ABSL_FLAG(std::string, log_level, "info", "debug, info, warning, error or off.");
ABSL_FLAG(std::string, log_calls, "failed",
          "Which calls get a line in the log: none, failed (not by the caller's doing) or all.");
ABSL_FLAG(bool, reflection, true, "Serve gRPC server reflection.");
ABSL_FLAG(bool, channelz, false, "Serve gRPC channelz; on local addresses only.");
ABSL_FLAG(int64_t, max_streams, 8192, "Streaming calls at once; 0: no limit.");
ABSL_FLAG(int64_t, max_calls, 4096, "Unary calls at once; 0: no limit.");
ABSL_FLAG(int64_t, max_call_bytes, int64_t{512} << 20,
          "Bytes that requests and waiting output may hold at once; 0: no limit.");
ABSL_FLAG(int64_t, max_tenant_streams, 0, "The same for each tenant.");
ABSL_FLAG(int64_t, max_tenant_calls, 0, "The same for each tenant.");
ABSL_FLAG(int64_t, max_tenant_call_bytes, 0, "The same for each tenant.");
ABSL_FLAG(int64_t, grpc_memory_bytes, int64_t{1} << 30,
          "Bytes that gRPC may buffer for all connections; 0: no limit.");
ABSL_FLAG(absl::Duration, max_connection_age, absl::InfiniteDuration(),
          "Age at which a client is asked to connect again, so that load spreads.");
ABSL_FLAG(absl::Duration, max_connection_age_grace, absl::Minutes(10),
          "How long calls of such a connection may go on.");
ABSL_FLAG(absl::Duration, reload_interval, absl::Seconds(10),
          "How often files are looked at for changes.");

namespace bridge {
namespace {

constexpr std::string_view kEnvPrefix = "SANDBOX_BRIDGE_";
constexpr char kApiKeyEnv[] = "SANDBOX_BRIDGE_API_KEY";

const char* const kFlags[] = {
    "listen",
    "insecure_public",
    "upstream",
    "local_isolation",
    "local_image_dir",
    "local_state_dir",
    "local_keep_sandboxes",
    "upstream_ca_file",
    "upstream_proxy_from_env",
    "use_server_proxy",
    "api_key_file",
    "forward_api_keys",
    "tls_cert_file",
    "tls_key_file",
    "client_ca_file",
    "auth_tokens_file",
    "admin_listen",
    "health_listen",
    "grace",
    "drain_delay",
    "log_level",
    "log_calls",
    "reflection",
    "channelz",
    "max_streams",
    "max_calls",
    "max_call_bytes",
    "max_tenant_streams",
    "max_tenant_calls",
    "max_tenant_call_bytes",
    "grpc_memory_bytes",
    "max_connection_age",
    "max_connection_age_grace",
    "reload_interval",
};

std::string EnvName(std::string_view flag) {
  std::string name(kEnvPrefix);
  for (const char c : flag) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

// Before the command line, so that it wins.
absl::Status ApplyEnvironment() {
  for (const char* name : kFlags) {
    const char* value = std::getenv(EnvName(name).c_str());
    if (value == nullptr || *value == '\0') continue;
    std::string error;
    if (!absl::FindCommandLineFlag(name)->ParseFrom(value, &error)) {
      return InvalidField(name,
                          "environment variable " + EnvName(name) + " cannot be read: " + error);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNotNegative(std::string_view flag, absl::Duration value) {
  return value < absl::ZeroDuration() ? InvalidField(flag, "is negative") : absl::OkStatus();
}

absl::Status CheckNotNegative(std::string_view flag, int64_t value) {
  return value < 0 ? InvalidField(flag, "is negative") : absl::OkStatus();
}

absl::StatusOr<CallLimits> Limits() {
  CallLimits limits;
  limits.global = {.calls = absl::GetFlag(FLAGS_max_calls),
                   .streams = absl::GetFlag(FLAGS_max_streams),
                   .bytes = absl::GetFlag(FLAGS_max_call_bytes)};
  limits.per_tenant = {.calls = absl::GetFlag(FLAGS_max_tenant_calls),
                       .streams = absl::GetFlag(FLAGS_max_tenant_streams),
                       .bytes = absl::GetFlag(FLAGS_max_tenant_call_bytes)};
  RETURN_IF_ERROR(CheckNotNegative("max_calls", limits.global.calls));
  RETURN_IF_ERROR(CheckNotNegative("max_streams", limits.global.streams));
  RETURN_IF_ERROR(CheckNotNegative("max_call_bytes", limits.global.bytes));
  RETURN_IF_ERROR(CheckNotNegative("max_tenant_calls", limits.per_tenant.calls));
  RETURN_IF_ERROR(CheckNotNegative("max_tenant_streams", limits.per_tenant.streams));
  RETURN_IF_ERROR(CheckNotNegative("max_tenant_call_bytes", limits.per_tenant.bytes));
  return limits;
}

absl::Status ReadUpstream(Configuration& configuration) {
  UpstreamOptions& upstream = configuration.server.services.upstream;
  upstream.url = absl::GetFlag(FLAGS_upstream);
  if (upstream.url.empty()) {
    return InvalidField("upstream",
                        "is not set: give the URL of an OpenSandbox server, or 'local' for the one "
                        "that comes with the bridge");
  }
  configuration.local_upstream = upstream.url == "local";
  configuration.local = {.isolation = absl::GetFlag(FLAGS_local_isolation),
                         .image_dir = absl::GetFlag(FLAGS_local_image_dir),
                         .state_dir = absl::GetFlag(FLAGS_local_state_dir),
                         .keep_sandboxes = absl::GetFlag(FLAGS_local_keep_sandboxes)};
  upstream.through_server = absl::GetFlag(FLAGS_use_server_proxy);
  upstream.http.ca_file = absl::GetFlag(FLAGS_upstream_ca_file);
  upstream.http.use_environment_proxy = absl::GetFlag(FLAGS_upstream_proxy_from_env);
  return absl::OkStatus();
}

absl::Status ReadIdentity(ServerOptions& server) {
  server.tls = {.cert_file = absl::GetFlag(FLAGS_tls_cert_file),
                .key_file = absl::GetFlag(FLAGS_tls_key_file),
                .client_ca_file = absl::GetFlag(FLAGS_client_ca_file)};
  server.auth_tokens_file = absl::GetFlag(FLAGS_auth_tokens_file);
  server.api_key_file = absl::GetFlag(FLAGS_api_key_file);
  char* key = std::getenv(kApiKeyEnv);
  if (key != nullptr && *key != '\0') {
    if (!server.api_key_file.empty()) {
      return InvalidField("api_key_file", std::string("is set, and so is ") + kApiKeyEnv +
                                              ": only one of them can be meant");
    }
    server.api_key = key;
    // Neither children nor readers of /proc/PID/environ need to have it.
    explicit_bzero(key, std::strlen(key));
    unsetenv(kApiKeyEnv);
  }
  server.forward_api_keys = absl::GetFlag(FLAGS_forward_api_keys);
  server.insecure_public = absl::GetFlag(FLAGS_insecure_public);
  return absl::OkStatus();
}

absl::Status ReadDurations(Configuration& configuration) {
  DrainOptions& drain = configuration.drain;
  drain.grace = absl::GetFlag(FLAGS_grace);
  drain.drain_delay = absl::GetFlag(FLAGS_drain_delay);
  drain.on_terminal = isatty(STDERR_FILENO) == 1;
  ServerOptions& server = configuration.server;
  server.max_connection_age = absl::GetFlag(FLAGS_max_connection_age);
  server.max_connection_age_grace = absl::GetFlag(FLAGS_max_connection_age_grace);
  server.reload_interval = absl::GetFlag(FLAGS_reload_interval);
  RETURN_IF_ERROR(CheckNotNegative("grace", drain.grace));
  RETURN_IF_ERROR(CheckNotNegative("drain_delay", drain.drain_delay));
  RETURN_IF_ERROR(CheckNotNegative("max_connection_age", server.max_connection_age));
  RETURN_IF_ERROR(CheckNotNegative("max_connection_age_grace", server.max_connection_age_grace));
  if (server.reload_interval < absl::Seconds(1)) {
    return InvalidField("reload_interval", "is under a second");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Configuration> ReadConfiguration(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "A gRPC service (sandbox.bridge.v1) in front of OpenSandbox.\n\n"
      "  sandbox_bridge --upstream=local\n"
      "  sandbox_bridge --upstream=http://opensandbox:8080 --api_key_file=/run/secrets/key");
  // --help lists the flags of this file; by default it lists those of the file with main().
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = [](absl::string_view file) {
    return absl::EndsWith(file, "bridge/server/flags.cc");
  };
  usage.version_string = [] { return absl::StrCat("sandbox_bridge ", kVersion, "\n"); };
  absl::SetFlagsUsageConfig(std::move(usage));
  RETURN_IF_ERROR(ApplyEnvironment());
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    return InvalidField("command line", "has an argument that is no flag; flags begin with --");
  }
  Configuration configuration;
  ServerOptions& server = configuration.server;
  ASSIGN_OR_RETURN(server.listen, ParseListenAddresses(absl::GetFlag(FLAGS_listen), "listen"));
  RETURN_IF_ERROR(ReadUpstream(configuration));
  RETURN_IF_ERROR(ReadIdentity(server));
  RETURN_IF_ERROR(ReadDurations(configuration));
  ASSIGN_OR_RETURN(server.limits, Limits());
  ASSIGN_OR_RETURN(configuration.log_level, ParseLogLevel(absl::GetFlag(FLAGS_log_level)));
  ASSIGN_OR_RETURN(server.log_calls, ParseLogCalls(absl::GetFlag(FLAGS_log_calls)));
  server.admin_listen = absl::GetFlag(FLAGS_admin_listen);
  server.health_listen = absl::GetFlag(FLAGS_health_listen);
  server.reflection = absl::GetFlag(FLAGS_reflection);
  server.channelz = absl::GetFlag(FLAGS_channelz);
  server.grpc_memory_bytes = absl::GetFlag(FLAGS_grpc_memory_bytes);
  return configuration;
}

}  // namespace bridge
