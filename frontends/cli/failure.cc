// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/failure.h"

#include <fmt/format.h>

#include <utility>

#include "bridge/base/error_catalog.h"
#include "frontends/cli/json.h"
#include "frontends/cli/text.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "sandbox/bridge/v1/errors.pb.h"

namespace bridge::cli {
namespace {

constexpr std::string_view kReasonPrefix = "ERROR_REASON_";

// For a reason that this build does not know and for failures without one.
constexpr std::string_view kGeneralAdvice =
    "Run `sbx doctor`; the bridge's log line of this call says more.";

const CatalogEntry* EntryOf(const std::string& reason) {
  ErrorReason value = ErrorReason::ERROR_REASON_UNSPECIFIED;
  if (!sandbox::bridge::v1::ErrorReason_Parse(fmt::format("{}{}", kReasonPrefix, reason), &value) ||
      value == ErrorReason::ERROR_REASON_UNSPECIFIED) {
    return nullptr;
  }
  return &CatalogEntryOf(value);
}

void ReadDetails(const std::string& serialized, Failure& failure) {
  google::rpc::Status rich;
  if (!rich.ParseFromString(serialized)) return;
  for (const google::protobuf::Any& detail : rich.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::RetryInfo retry;
    if (detail.UnpackTo(&info)) {
      failure.reason = info.reason();
      failure.metadata.insert(info.metadata().begin(), info.metadata().end());
    } else if (detail.UnpackTo(&retry)) {
      failure.retry_after_seconds =
          static_cast<double>(retry.retry_delay().seconds()) + retry.retry_delay().nanos() * 1e-9;
    }
  }
}

// gRPC says "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to
// connect to remote host: Connection refused"; the end of it is what people need.
std::string_view ConnectError(std::string_view message) {
  constexpr std::string_view kBeforeCause = "remote host: ";
  const size_t at = message.rfind(kBeforeCause);
  return at == std::string_view::npos ? message : message.substr(at + kBeforeCause.size());
}

// What gRPC says where one side speaks TLS and the other does not; among other things.
bool MayLackTls(std::string_view message) {
  return message.find("Socket closed") != std::string_view::npos ||
         message.find("reset by peer") != std::string_view::npos ||
         message.find("handshake") != std::string_view::npos;
}

// What gRPC says, here or there, of a message that is larger than it may be. What the bridge sends
// is far below any limit, so it is the request.
bool IsTooLarge(std::string_view message) {
  return message.find("message larger than max") != std::string_view::npos;
}

// A failure that gRPC made on this side, or that something between us and the bridge made.
Failure WithoutReason(const grpc::Status& status, std::string_view where) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return {
          .reason = "BRIDGE_UNREACHABLE",
          .message = fmt::format("no answer from a bridge at {}: {}", where,
                                 ConnectError(status.error_message())),
          .advice =
              MayLackTls(status.error_message())
                  ? "Something answered there and broke off: it has ended, or one side speaks TLS "
                    "and the other does not (https:// before the address turns it on)."
                  : "Start one (`sandbox_bridge --upstream=local`), or name yours with --bridge "
                    "or SANDBOX_BRIDGE_ADDRESS.",
          .retryable = true};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {.reason = "DEADLINE_EXCEEDED",
              .message = fmt::format("the bridge at {} did not answer in time", where),
              .advice = "Look whether the bridge is overloaded or stuck; `sbx doctor` measures it.",
              .retryable = true};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {.reason = "UNSUPPORTED_FEATURE",
              .message = fmt::format("the bridge at {} does not know this call", where),
              .advice = "Use a bridge as new as this sbx; `sbx doctor` shows its version."};
    case grpc::StatusCode::CANCELLED:  // by the other side: who is interrupted does not ask here
      return {
          .reason = "BRIDGE_UNREACHABLE",
          .message = fmt::format("the bridge at {}, or a proxy before it, ended the call without "
                                 "a reason",
                                 where),
          .advice = "It may be shutting down; look what was done, and try again.",
          .retryable = true};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      if (!IsTooLarge(status.error_message())) break;
      return {.reason = "INVALID_ARGUMENT",
              .message = fmt::format("the request is larger than the bridge at {} takes", where),
              .advice = "Send files and input in parts: `sbx cp`, or a pipe into `sbx exec`."};
    default:
      break;
  }
  return {.reason = fmt::format("GRPC_{}", static_cast<int>(status.error_code())),
          .message = status.error_message(),
          .advice = std::string(kGeneralAdvice)};
}

}  // namespace

Failure FailureOf(const grpc::Status& status, std::string_view where) {
  Failure failure;
  ReadDetails(status.error_details(), failure);
  if (failure.reason.empty()) return WithoutReason(status, where);
  failure.message = status.error_message();
  const CatalogEntry* entry = EntryOf(failure.reason);
  failure.advice = entry != nullptr ? std::string(entry->advice) : std::string(kGeneralAdvice);
  failure.retryable = entry != nullptr && entry->retryable;
  if (failure.retry_after_seconds) {
    failure.advice += fmt::format(" Try again in {}.", DurationText(*failure.retry_after_seconds));
  }
  const auto leaked = failure.metadata.find("leaked_sandbox_id");
  if (leaked != failure.metadata.end()) {
    failure.advice += fmt::format(" A sandbox was left behind: sbx rm {}", leaked->second);
  }
  return failure;
}

Failure UsageFailure(std::string_view command, std::string_view message) {
  return {.reason = "USAGE",
          .message = std::string(message),
          .advice = command.empty() ? std::string("See `sbx --help`.")
                                    : fmt::format("See `sbx {} --help`.", command)};
}

Failure UsageFailure(std::string_view command, const absl::Status& status) {
  return UsageFailure(command, std::string(status.message()));
}

Failure SettingFailure(const absl::Status& status) {
  return {.reason = "BAD_SETTING",
          .message = std::string(status.message()),
          .advice = "Correct the option or the environment variable; `sbx --help` lists them."};
}

Failure LocalFailure(std::string_view message, std::string_view advice) {
  return {.reason = "LOCAL", .message = std::string(message), .advice = std::string(advice)};
}

Failure LocalFailure(const absl::Status& status, std::string_view advice) {
  return LocalFailure(std::string(status.message()), advice);
}

std::string FailureText(const Failure& failure) {
  return fmt::format("sbx: {}: {}\n     {}\n", failure.reason, Printable(failure.message),
                     Printable(failure.advice));
}

std::string FailureJson(const Failure& failure) {
  Json error = {{"reason", failure.reason},
                {"message", TextOrEscaped(failure.message)},
                {"advice", TextOrEscaped(failure.advice)},
                {"retryable", failure.retryable}};
  if (failure.retry_after_seconds) error["retry_after_seconds"] = *failure.retry_after_seconds;
  error["metadata"] = Json::object();
  for (const auto& [key, value] : failure.metadata) {
    error["metadata"][TextOrEscaped(key)] = TextOrEscaped(value);
  }
  return JsonLine(Json{{"error", std::move(error)}});
}

}  // namespace bridge::cli
