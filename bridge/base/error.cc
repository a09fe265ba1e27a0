// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/error.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "bridge/base/error_catalog.h"
#include "google/rpc/error_details.pb.h"

namespace bridge {
namespace {

constexpr char kErrorInfoUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr char kBadRequestUrl[] = "type.googleapis.com/google.rpc.BadRequest";
constexpr std::string_view kPrefix = "ERROR_REASON_";

template <class Message>
bool GetDetail(const absl::Status& status, const char* url, Message* message) {
  const absl::optional<absl::Cord> payload = status.GetPayload(url);
  return payload.has_value() && message->ParseFromString(std::string(*payload));
}

template <class Message>
void SetDetail(absl::Status& status, const char* url, const Message& message) {
  // Through a string_view: clang 19 and Debian's g++ 12 mangle Cord(std::string&&) differently.
  const std::string bytes = message.SerializeAsString();
  status.SetPayload(url, absl::Cord(absl::string_view(bytes)));
}

// Statuses that libraries make have a code only.
ErrorReason ReasonOfCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return ErrorReason::ERROR_REASON_UNSPECIFIED;
    case absl::StatusCode::kCancelled:
      return ErrorReason::ERROR_REASON_CANCELLED;
    case absl::StatusCode::kInvalidArgument:
      return ErrorReason::ERROR_REASON_INVALID_ARGUMENT;
    case absl::StatusCode::kDeadlineExceeded:
      return ErrorReason::ERROR_REASON_DEADLINE_EXCEEDED;
    case absl::StatusCode::kUnavailable:
      return ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE;
    default:
      return ErrorReason::ERROR_REASON_INTERNAL;
  }
}

}  // namespace

absl::Status MakeError(ErrorReason reason, std::string_view message, ErrorDetails details) {
  const CatalogEntry& entry = CatalogEntryOf(reason);
  absl::Status status(entry.code, absl::string_view(message.data(), message.size()));
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(ReasonName(reason)));
  info.set_domain(std::string(kErrorDomain));
  for (auto& [key, value] : details.metadata) (*info.mutable_metadata())[key] = std::move(value);
  SetDetail(status, kErrorInfoUrl, info);
  if (details.retry_after) {
    google::rpc::RetryInfo retry;
    const absl::Duration delay = std::max(*details.retry_after, absl::ZeroDuration());
    const int64_t seconds = absl::ToInt64Seconds(delay);
    retry.mutable_retry_delay()->set_seconds(seconds);
    retry.mutable_retry_delay()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(delay - absl::Seconds(seconds))));
    SetDetail(status, kRetryInfoUrl, retry);
  }
  if (!details.field.empty()) {
    google::rpc::BadRequest bad;
    auto* violation = bad.add_field_violations();
    violation->set_field(std::move(details.field));
    violation->set_description(std::string(message));
    SetDetail(status, kBadRequestUrl, bad);
  }
  return status;
}

absl::Status InvalidField(std::string_view field, std::string_view problem) {
  return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT,
                   std::string(field) + ": " + std::string(problem), {.field = std::string(field)});
}

ErrorReason ReasonOf(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  ErrorReason reason;
  if (GetDetail(status, kErrorInfoUrl, &info) &&
      ErrorReason_Parse(std::string(kPrefix) + info.reason(), &reason)) {
    return reason;
  }
  return ReasonOfCode(status.code());
}

std::map<std::string, std::string> MetadataOf(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  if (!GetDetail(status, kErrorInfoUrl, &info)) return {};
  return {info.metadata().begin(), info.metadata().end()};
}

std::optional<absl::Duration> RetryAfterOf(const absl::Status& status) {
  google::rpc::RetryInfo retry;
  if (!GetDetail(status, kRetryInfoUrl, &retry)) return std::nullopt;
  return absl::Seconds(retry.retry_delay().seconds()) +
         absl::Nanoseconds(retry.retry_delay().nanos());
}

absl::Status WithMetadata(const absl::Status& status, std::string_view key,
                          std::string_view value) {
  google::rpc::ErrorInfo info;
  if (!GetDetail(status, kErrorInfoUrl, &info)) {
    info.set_reason(std::string(ReasonName(ReasonOf(status))));
    info.set_domain(std::string(kErrorDomain));
  }
  (*info.mutable_metadata())[std::string(key)] = std::string(value);
  absl::Status result = status;
  SetDetail(result, kErrorInfoUrl, info);
  return result;
}

absl::Status WithContext(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  absl::Status result(status.code(), std::string(context) + ": " + std::string(status.message()));
  status.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

std::string_view ReasonName(ErrorReason reason) {
  std::string_view name = ErrorReason_Name(reason);
  if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
  return name.empty() ? std::string_view("INTERNAL") : name;
}

const std::vector<std::string>& DetailTypeUrls() {
  static const auto* urls =
      new std::vector<std::string>{kErrorInfoUrl, kRetryInfoUrl, kBadRequestUrl};
  return *urls;
}

}  // namespace bridge
