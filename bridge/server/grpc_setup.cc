// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/grpc_setup.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "bridge/service/method.h"
#include "grpcpp/ext/channelz_service_plugin.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"

namespace bridge {
namespace {

std::mutex log_mu;
Log* grpc_log = nullptr;  // guarded by log_mu

void OnGrpcLog(gpr_log_func_args* args) {
  if (args->severity != GPR_LOG_SEVERITY_ERROR) return;
  std::lock_guard<std::mutex> lock(log_mu);
  if (grpc_log == nullptr) return;
  grpc_log->Write(LogLevel::kWarning, "grpc", {{"says", args->message}});
}

int Milliseconds(absl::Duration duration) {
  constexpr int64_t kMost = 0x7FFFFFFF;
  return static_cast<int>(std::min(absl::ToInt64Milliseconds(duration), kMost));
}

}  // namespace

void ApplyTransportSettings(const ServerOptions& options, grpc::ServerBuilder& builder) {
  // Without it a second bridge on the same port would quietly take half of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Measured: the probe costs throughput on fast networks, a fixed window of 1 MiB serves as well.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 20);
  // A vanished peer is noticed within half a minute even while nothing is written.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive_time));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // Clients may do the same every 10 s, with or without calls; half of it, for clocks that jitter.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  // Above our own limits, so that the caller is refused in words instead of being queued in
  // silence.
  const auto& limits = options.limits.global;
  if (limits.streams > 0 && limits.calls > 0) {
    const int64_t streams = std::min<int64_t>(limits.streams + limits.calls + 100, 1 << 30);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(streams));
  }
  if (options.max_connection_age != absl::InfiniteDuration()) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                               Milliseconds(options.max_connection_age));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                               Milliseconds(options.max_connection_age_grace));
  }
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxReceivedBytes));
  if (options.grpc_memory_bytes > 0) {
    grpc::ResourceQuota quota("bridge");
    quota.Resize(static_cast<size_t>(options.grpc_memory_bytes));
    builder.SetResourceQuota(quota);
  }
  // For reflection and channelz, which the library has in its synchronous form only.
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
}

void EnableExtraServices(bool reflection, bool channelz) {
  static std::mutex mu;
  static bool reflecting = false, channelling = false;
  std::lock_guard<std::mutex> lock(mu);
  grpc::EnableDefaultHealthCheckService(true);
  if (reflection && !std::exchange(reflecting, true)) {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  }
  if (channelz && !std::exchange(channelling, true)) {
    grpc::channelz::experimental::InitChannelzService();
  }
}

void RouteGrpcLog(Log& log) {
  std::lock_guard<std::mutex> lock(log_mu);
  grpc_log = &log;
  gpr_set_log_function(&OnGrpcLog);
}

void SilenceGrpcLog() {
  std::lock_guard<std::mutex> lock(log_mu);
  grpc_log = nullptr;
  gpr_set_log_function(&OnGrpcLog);
}

void StopGrpcLog(const Log& log) {
  std::lock_guard<std::mutex> lock(log_mu);
  if (grpc_log == &log) grpc_log = nullptr;
}

}  // namespace bridge
