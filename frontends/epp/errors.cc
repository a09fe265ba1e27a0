// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/errors.h"

#include <charconv>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "bridge/base/error.h"
#include "bridge/base/error_catalog.h"
#include "fmt/format.h"

namespace bridge::epp {
namespace {

constexpr char kCodeUrl[] = "sandbox-bridge/epp-code";
constexpr char kRemoteUrl[] = "sandbox-bridge/epp-remote-bridge";
constexpr absl::string_view kAnswered = "answered";
constexpr absl::string_view kUnreachable = "unreachable";

#define R(name) ErrorReason::ERROR_REASON_##name

constexpr std::string_view kKeyAdvice =
    "Set ABX_OPENSANDBOX_API_KEY (or OPEN_SANDBOX_API_KEY) to a key that the OpenSandbox server "
    "accepts, or pass provider_options={\"api_key\": ...}.";
constexpr std::string_view kBridgeTokenAdvice =
    "Set ABX_OPENSANDBOX_BRIDGE_TOKEN to a token that the bridge at bridge_address accepts.";
constexpr std::string_view kBridgeAdvice =
    "Check that a bridge listens at bridge_address (ABX_OPENSANDBOX_BRIDGE_ADDRESS), with https:// "
    "before it if, and only if, that bridge speaks TLS.";
constexpr std::string_view kServerAdvice =
    "Check that the OpenSandbox server runs and that base_url (ABX_OPENSANDBOX_BASE_URL) names it.";
constexpr std::string_view kEndpointAdvice =
    "The sandbox's address cannot be reached from here; use_server_proxy "
    "(ABX_OPENSANDBOX_USE_SERVER_PROXY=true) sends the traffic through the server.";

// docs/errors.md shows the same codes to people.
constexpr EppErrorRow kTable[] = {
    {R(INVALID_ARGUMENT), kConfigError, "", "Correct the named value."},
    {R(CALLER_UNAUTHENTICATED), kAuthenticationError, "E1001", kBridgeTokenAdvice},
    {R(NOT_YOUR_SANDBOX), kAuthenticationError, "E1001", kBridgeTokenAdvice},
    {R(SANDBOX_NOT_FOUND), kNotFound, "E2009", ""},
    {R(PATH_NOT_FOUND), kNotFound, "E4001", ""},
    {R(PROCESS_NOT_FOUND), kNotFound, "", ""},
    {R(SNAPSHOT_NOT_FOUND), kNotFound, "", ""},
    {R(REQUEST_ID_REUSED), kProviderError, "", ""},
    {R(AMBIGUOUS_ASSIGNMENT), kProviderError, "", ""},
    {R(STALE_INCARNATION), kProviderError, "", ""},
    {R(ALREADY_ATTACHED), kProviderError, "", "Another client holds this terminal."},
    {R(CANCELLED), kProviderError, "", ""},
    {R(SANDBOX_NOT_RUNNING), kProviderError, "", ""},
    {R(SANDBOX_FAILED), kProviderError, "", ""},
    {R(SANDBOX_UNREACHABLE), kProviderError, "E5001", kEndpointAdvice, true},
    {R(READY_TIMEOUT), kTimeout, "",
     "Raise ready_timeout (ABX_OPENSANDBOX_READY_TIMEOUT, seconds): pulling a large image takes "
     "longer than starting it."},
    {R(NO_EXPIRY), kProviderError, "", ""},
    {R(IS_A_DIRECTORY), kProviderError, "", ""},
    {R(NOT_A_DIRECTORY), kProviderError, "", ""},
    {R(PERMISSION_DENIED), kProviderError, "E4002", ""},
    {R(PATH_REJECTED), kConfigError, "", ""},
    {R(PATH_EXISTS), kProviderError, "", "Remove what is there first, or choose another name."},
    {R(DIRECTORY_NOT_EMPTY), kProviderError, "", ""},
    {R(FILE_TOO_LARGE), kProviderError, "", "Read or write it in parts; nothing was lost."},
    {R(NO_SPACE), kQuota, "", ""},
    {R(PRECONDITION_FAILED), kProviderError, "", ""},
    {R(UNKNOWN_USER), kConfigError, "", ""},
    {R(QUOTA_EXCEEDED), kQuota, "", ""},
    {R(TOO_MANY_STREAMS), kQuota, "", ""},
    {R(UPSTREAM_UNAVAILABLE), kProviderError, "E5001", kServerAdvice, true},
    {R(UPSTREAM_TIMEOUT), kTimeout, "", kServerAdvice, true},
    {R(UPSTREAM_UNAUTHENTICATED), kAuthenticationError, "E1001", kKeyAdvice, true},
    {R(UPSTREAM_PERMISSION_DENIED), kAuthenticationError, "E1001", kKeyAdvice, true},
    {R(UPSTREAM_PROTOCOL), kProviderError, "", kServerAdvice, true},
    {R(UPSTREAM_FAILED), kProviderError, "", ""},
    {R(UPSTREAM_REJECTED), kProviderError, "", ""},
    {R(CONFLICT), kProviderError, "", ""},
    {R(UNSUPPORTED_FEATURE), kUnsupported, "", "This sandbox cannot do that."},
    {R(SIGNED_ENDPOINT_UNSUPPORTED), kUnsupported, "", ""},
    {R(REPLAY_GAP), kProviderError, "", ""},
    {R(OUTPUT_TRUNCATED), kProviderError, "",
     "Redirect the output to a file and read that, or run the command as a stream."},
    {R(DEADLINE_EXCEEDED), kTimeout, "", ""},
    {R(DRAINING), kProviderError, "E5001", "The bridge is restarting; try again."},
    {R(INTERNAL), kProviderError, "", ""},
};

#undef R

// What a create says when the image is not there: the upstreams have a code of their own for it.
bool IsMissingImage(const std::map<std::string, std::string>& metadata) {
  const auto code = metadata.find("upstream_code");
  return code != metadata.end() && (code->second.find("IMAGE_NOT_FOUND") != std::string::npos ||
                                    code->second.find("IMAGE_PULL") != std::string::npos ||
                                    code->second.find("ImagePull") != std::string::npos);
}

absl::Status WithRemote(absl::Status status, absl::string_view what) {
  status.SetPayload(kRemoteUrl, absl::Cord(what));
  return status;
}

// What the reader can do, who has this bridge or only its address.
std::string_view SuggestionOf(const absl::Status& status, const EppErrorRow& row) {
  const auto remote = status.GetPayload(kRemoteUrl);
  if (remote.has_value() && *remote == kUnreachable) return kBridgeAdvice;
  const bool serves = !row.suggestion.empty() && !(remote.has_value() && row.of_own_bridge);
  return serves ? row.suggestion : CatalogEntryOf(row.reason).advice;
}

std::string Lookup(const std::map<std::string, std::string>& metadata, const char* key) {
  const auto it = metadata.find(key);
  return it == metadata.end() ? "" : it->second;
}

}  // namespace

absl::Span<const EppErrorRow> EppErrorTable() { return kTable; }

const EppErrorRow& EppErrorRowOf(ErrorReason reason) {
  for (const EppErrorRow& row : kTable) {
    if (row.reason == reason) return row;
  }
  return kTable[std::size(kTable) - 1];
}

EppError ToEppError(const absl::Status& status) {
  EppError error;
  error.message = std::string(status.message());
  if (const auto payload = status.GetPayload(kCodeUrl); payload.has_value()) {
    const std::string text(*payload);
    std::from_chars(text.data(), text.data() + text.size(), error.code);
    return error;
  }
  const ErrorReason reason = ReasonOf(status);
  const EppErrorRow& row = EppErrorRowOf(reason);
  const auto metadata = MetadataOf(status);
  error.code = row.code;
  error.sdk_code = row.sdk_code;
  error.suggestion = SuggestionOf(status, row);
  error.feature = Lookup(metadata, "feature");
  if (row.code == kUnsupported && error.feature.empty()) error.feature = "unknown";
  if (IsMissingImage(metadata)) {
    error.code = kNotFound;
    error.sdk_code = "E2001";
    error.suggestion =
        "The template is an image reference; check its spelling, and registry_username and "
        "registry_password for a private registry.";
  }
  if (const std::string leaked = Lookup(metadata, "leaked_sandbox_id"); !leaked.empty()) {
    error.message += fmt::format(
        " (the sandbox {} may still exist: its removal could not be confirmed)", leaked);
  }
  if (const auto delay = RetryAfterOf(status); delay.has_value()) {
    error.message += fmt::format(" (retry after {} s)", absl::ToDoubleSeconds(*delay));
  }
  return error;
}

absl::Status ByRemoteBridge(absl::Status status) {
  return status.ok() ? status : WithRemote(std::move(status), kAnswered);
}

absl::Status RemoteBridgeUnreachable(std::string_view message) {
  return WithRemote(MakeError(ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE, message),
                    kUnreachable);
}

absl::Status ProtocolError(int code, std::string_view message) {
  absl::Status status(absl::StatusCode::kInvalidArgument,
                      absl::string_view(message.data(), message.size()));
  const std::string text = std::to_string(code);
  status.SetPayload(kCodeUrl, absl::Cord(absl::string_view(text)));
  return status;
}

absl::Status Unsupported(std::string_view feature, std::string_view message) {
  return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE, message,
                   {.metadata = {{"feature", std::string(feature)}}});
}

absl::Status TooLarge(std::string_view what, int64_t size, int64_t limit,
                      std::string_view way_out) {
  const std::string how_big = size < 0 ? fmt::format("has more than {} bytes", limit)
                                       : fmt::format("has {} bytes, the most is {}", size, limit);
  return MakeError(ErrorReason::ERROR_REASON_FILE_TOO_LARGE,
                   fmt::format("{} {}; {}", what, how_big, way_out),
                   {.metadata = {{"limit_bytes", std::to_string(limit)}}});
}

bool IsUnknownSandbox(const absl::Status& status) {
  const ErrorReason reason = ReasonOf(status);
  if (reason == ErrorReason::ERROR_REASON_SANDBOX_NOT_FOUND) return true;
  if (reason != ErrorReason::ERROR_REASON_INVALID_ARGUMENT) return false;
  return status.message().substr(0, 11) == "sandbox_id:";
}

absl::Status UnknownSandbox(std::string_view sandbox_id) {
  return MakeError(ErrorReason::ERROR_REASON_SANDBOX_NOT_FOUND,
                   fmt::format("no sandbox has the id {:.128}", sandbox_id));
}

}  // namespace bridge::epp
