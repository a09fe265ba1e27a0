// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/resource_usage.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/lifecycle_codec.h"

namespace bridge {
namespace {

constexpr absl::Duration kReadTimeout = absl::Seconds(10);
// Samples come every two seconds.
constexpr absl::Duration kSilence = absl::Seconds(15);
constexpr size_t kMaxSampleBytes = 64 << 10;

absl::StatusOr<ResourceSample> Parse(std::string_view text) {
  absl::StatusOr<ResourceSample> sample = ParseResourceSample(text);
  if (sample.ok()) return sample;
  return MakeError(
      ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
      "what the sandbox's daemon answered to /metrics " + std::string(sample.status().message()));
}

}  // namespace

Task<absl::StatusOr<ResourceSample>> ReadResourceUsage(DaemonClient& client, CallContext context,
                                                       std::string sandbox_id,
                                                       std::string incarnation) {
  CO_ASSIGN_OR_RETURN(std::shared_ptr<Daemon> daemon,
                      co_await client.directory().Resolve(context, sandbox_id, incarnation));
  HttpRequest request = client.Request(context, *daemon, "GET", "/metrics", kReadTimeout);
  CO_ASSIGN_OR_RETURN(const HttpResponse response,
                      co_await client.Fetch(context, daemon, std::move(request), kMaxSampleBytes));
  if (response.status != 200) co_return DaemonError(response, "read its resource usage");
  co_return Parse(response.body);
}

ResourceWatch::ResourceWatch(DaemonClient& client, CallContext context, std::string sandbox_id,
                             std::string incarnation)
    : client_(client),
      context_(std::move(context)),
      sandbox_id_(std::move(sandbox_id)),
      incarnation_(std::move(incarnation)),
      parser_(kMaxSampleBytes) {}

Task<absl::Status> ResourceWatch::Open() {
  CO_ASSIGN_OR_RETURN(daemon_,
                      co_await client_.directory().Resolve(context_, sandbox_id_, incarnation_));
  HttpRequest request = client_.EndlessRequest(context_, *daemon_, "GET", "/metrics/watch");
  request.idle_timeout = kSilence;
  transfer_ = std::make_unique<Transfer>(client_.http(), std::move(request));
  const absl::StatusOr<HttpHead> head = co_await transfer_->Head();
  if (!head.ok()) {
    co_return co_await client_.directory().Explain(context_, sandbox_id_, head.status());
  }
  if (head->status == 200) co_return absl::OkStatus();
  absl::StatusOr<std::string> body = co_await transfer_->ReadAll(kMaxSampleBytes);
  HttpResponse response = AnswerOf(*std::move(head));
  if (body.ok()) response.body = *std::move(body);
  co_return DaemonError(response, "watch its resource usage");
}

Task<absl::StatusOr<ResourceSample>> ResourceWatch::Next() {
  std::string_view text;
  while (true) {
    if (parser_.Next(&text)) co_return Parse(text);
    CO_RETURN_IF_ERROR(parser_.status());
    const bool more = co_await transfer_->Read(&chunk_);
    if (!more) co_return co_await Ended();
    parser_.Feed(chunk_);
  }
}

Task<absl::Status> ResourceWatch::Ended() {
  const bool cancelled = co_await Cancelled();
  if (cancelled)
    co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "the watch was cancelled");
  absl::Status failure = transfer_->result();
  if (failure.ok()) {
    failure = MakeError(ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE,
                        "the sandbox's daemon ended the stream of measurements");
  }
  co_return co_await client_.directory().Explain(context_, sandbox_id_, failure);
}

}  // namespace bridge
