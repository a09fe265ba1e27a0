// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/unsupported.h"

#include <algorithm>

#include "bridge/base/error.h"
#include "grpcpp/support/byte_buffer.h"

namespace bridge {
namespace {

// One name for all of them: what callers invent must not become a label of a metric.
constexpr Method kUnknown = StreamingMethod("unknown");

// "/sandbox.bridge.v1.FileService/Stat" → "FileService/Stat"; anything else as it is, if it is a
// name.
std::string FeatureOf(std::string_view path) {
  constexpr std::string_view kPackage = "/sandbox.bridge.v1.";
  if (path.substr(0, kPackage.size()) == kPackage) path.remove_prefix(kPackage.size());
  const bool is_name = path.size() <= 100 && std::all_of(path.begin(), path.end(), [](char c) {
                         return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                                (c >= 'a' && c <= 'z') || c == '/' || c == '.' || c == '_';
                       });
  return is_name ? std::string(path) : "unknown";
}

}  // namespace

absl::Status UnsupportedFeature(std::string_view feature) {
  return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                   "this bridge does not offer " + std::string(feature),
                   {.metadata = {{"feature", std::string(feature)}}});
}

grpc::ServerGenericBidiReactor* UnsupportedMethods::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  return Unsupported<Bidi<grpc::ByteBuffer, grpc::ByteBuffer>>(host_, loop_, context, kUnknown,
                                                               FeatureOf(context->method()));
}

}  // namespace bridge
