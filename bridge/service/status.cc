// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/status.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "bridge/base/error.h"
#include "bridge/base/utf8.h"
#include "google/rpc/status.pb.h"

namespace bridge {
namespace {

// gRPC refuses trailers above 8 KiB as a whole, and then the client sees RESOURCE_EXHAUSTED instead
// of the failure. Details are base64 on the wire; a message is percent-encoded, so up to three
// times as long.
constexpr size_t kMaxMessageBytes = 1024;
constexpr size_t kMaxDetailsBytes = 3 * 1024;

std::string Shortened(absl::string_view text) {
  std::string valid = ToValidUtf8(std::string_view(text.data(), text.size()));
  if (valid.size() <= kMaxMessageBytes) return valid;
  return std::string(Utf8Prefix(valid, kMaxMessageBytes - 3)) + "...";
}

absl::Status WithReason(const absl::Status& status) {
  absl::Status result = status;
  if (!status.GetPayload(DetailTypeUrls().front()).has_value()) {
    // The code stays: it is what the library said.
    const absl::Status made = MakeError(ReasonOf(status), "");
    made.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
      result.SetPayload(url, payload);
    });
  }
  return result;
}

// What gRPC says, here or there, of a message that is larger than it may be. What the bridge sends
// is far below any limit, so it is the request.
bool IsTooLarge(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
         status.error_details().empty() &&
         status.error_message().find("message larger than max") != std::string::npos;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const absl::Status complete = WithReason(status);
  google::rpc::Status details;
  details.set_code(static_cast<int>(complete.code()));
  const std::string message = Shortened(complete.message());
  details.set_message(message);
  size_t bytes = message.size();
  for (const std::string& url : DetailTypeUrls()) {  // the ErrorInfo first
    const absl::optional<absl::Cord> payload = complete.GetPayload(url);
    if (!payload.has_value()) continue;
    bytes += payload->size() + url.size();
    if (bytes > kMaxDetailsBytes) break;
    auto* any = details.add_details();
    any->set_type_url(url);
    any->set_value(std::string(*payload));
  }
  return grpc::Status(static_cast<grpc::StatusCode>(complete.code()), message,
                      details.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (IsTooLarge(status)) {
    return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT,
                     "the request is larger than any bridge takes (" + status.error_message() +
                         "); send files and input in parts");
  }
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return result;
  for (const auto& any : details.details()) {
    result.SetPayload(any.type_url(), absl::Cord(absl::string_view(any.value())));
  }
  return result;
}

}  // namespace bridge
