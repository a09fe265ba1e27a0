// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/sandbox_validate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/labels.h"
#include "bridge/service/policy_validate.h"
#include "bridge/service/validate.h"
#include "bridge/service/volume_validate.h"
#include "fmt/format.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;
using TextMap = google::protobuf::Map<std::string, std::string>;

constexpr size_t kMaxImageBytes = 1024;
constexpr size_t kMaxMapEntries = 64;
constexpr int kMaxEntrypointWords = 1000;
// Linux refuses to start a program with a longer argument or variable, its end included.
constexpr size_t kMaxArgumentBytes = 128 * 1024 - 1;
constexpr size_t kMaxExtensionBytes = 4096;
constexpr size_t kMaxCredentialBytes = 16 * 1024;
constexpr size_t kMaxRequestIdBytes = 128;

constexpr absl::Duration kMaxWait = absl::Hours(1);
constexpr absl::Duration kDefaultReadyTimeout = absl::Seconds(60);
constexpr absl::Duration kDefaultProofWait = absl::Seconds(20);
constexpr absl::Duration kDefaultPauseWait = absl::Seconds(30);
constexpr absl::Duration kDefaultResumeWait = absl::Seconds(60);
constexpr absl::Duration kDefaultSnapshotWait = absl::Seconds(60);

// A map's keys in one order, so that the first failure is always the same.
std::vector<std::string> SortedKeys(const TextMap& map) {
  std::vector<std::string> keys;
  keys.reserve(map.size());
  for (const auto& [key, value] : map) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

absl::Status CheckSize(std::string_view field, const TextMap& map) {
  if (map.size() <= kMaxMapEntries) return absl::OkStatus();
  return InvalidField(
      field, fmt::format("has {} entries; at most {} are allowed", map.size(), kMaxMapEntries));
}

absl::Status CheckLabels(std::string_view field, const TextMap& labels) {
  RETURN_IF_ERROR(CheckSize(field, labels));
  for (const std::string& key : SortedKeys(labels)) {
    if (const auto problem = LabelKeyProblem(key)) {
      return InvalidField(KeyField(field, key), "the key " + *problem);
    }
    if (const auto problem = LabelValueProblem(labels.at(key))) {
      return InvalidField(KeyField(field, key), "the value " + *problem);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckImage(std::string_view image) {
  RETURN_IF_ERROR(CheckPlainText("spec.image", image, kMaxImageBytes));
  if (image.empty()) return InvalidField("spec.image", "must not be empty");
  if (image.find(' ') != std::string_view::npos) {
    return InvalidField("spec.image", "must not hold blanks");
  }
  if (image.front() == '-') return InvalidField("spec.image", "must not begin with '-'");
  return absl::OkStatus();
}

absl::Status CheckSource(const v1::SandboxSpec& spec) {
  switch (spec.source_case()) {
    case v1::SandboxSpec::SOURCE_NOT_SET:
      return InvalidField("spec.source", "needs one of image, snapshot_id and template_id");
    case v1::SandboxSpec::kImage:
      RETURN_IF_ERROR(CheckImage(spec.image()));
      break;
    case v1::SandboxSpec::kSnapshotId:
      RETURN_IF_ERROR(CheckId("spec.snapshot_id", spec.snapshot_id()));
      break;
    case v1::SandboxSpec::kTemplateId:
      RETURN_IF_ERROR(CheckId("spec.template_id", spec.template_id()));
      break;
  }
  if (!spec.has_image_auth()) return absl::OkStatus();
  if (spec.source_case() != v1::SandboxSpec::kImage) {
    return InvalidField("spec.image_auth", "is for an image only");
  }
  const v1::ImageAuth& auth = spec.image_auth();
  if (auth.username().empty()) {
    return InvalidField("spec.image_auth.username", "must not be empty");
  }
  if (auth.password().empty()) {
    return InvalidField("spec.image_auth.password", "must not be empty");
  }
  RETURN_IF_ERROR(CheckPlainText("spec.image_auth.username", auth.username(), kMaxCredentialBytes));
  return CheckPlainText("spec.image_auth.password", auth.password(), kMaxCredentialBytes);
}

// A template has its shape; what else is asked for would be ignored.
absl::Status CheckTemplateAlone(const v1::SandboxSpec& spec) {
  if (spec.source_case() != v1::SandboxSpec::kTemplateId) return absl::OkStatus();
  const struct {
    bool given;
    const char* field;
  } kOthers[] = {
      {spec.entrypoint_size() > 0, "spec.entrypoint"},
      {spec.env_size() > 0, "spec.env"},
      {!spec.resource_limits().empty(), "spec.resource_limits"},
      {!spec.resource_requests().empty(), "spec.resource_requests"},
      {!spec.platform().empty(), "spec.platform"},
      {spec.secure_access(), "spec.secure_access"},
      {spec.volumes_size() > 0, "spec.volumes"},
      {spec.lifetime_case() == v1::SandboxSpec::kNever, "spec.never"},
  };
  for (const auto& other : kOthers) {
    if (other.given) return InvalidField(other.field, "cannot be combined with template_id");
  }
  return absl::OkStatus();
}

absl::Status CheckProgram(const v1::SandboxSpec& spec) {
  if (spec.entrypoint_size() > kMaxEntrypointWords) {
    return InvalidField("spec.entrypoint", "has more than 1000 words");
  }
  for (int i = 0; i < spec.entrypoint_size(); ++i) {
    const std::string field = ElementField("spec.entrypoint", static_cast<size_t>(i));
    RETURN_IF_ERROR(CheckText(field, spec.entrypoint(i), kMaxArgumentBytes));
    if (i == 0 && spec.entrypoint(i).empty()) return InvalidField(field, "must not be empty");
  }
  RETURN_IF_ERROR(CheckEnv("spec.env", spec.env()));
  for (int i = 0; i < spec.env_size(); ++i) {
    const v1::EnvVar& variable = spec.env(i);
    if (variable.name().size() + 1 + variable.value().size() > kMaxArgumentBytes) {
      return InvalidField(ElementField("spec.env", static_cast<size_t>(i), "value"),
                          "is longer than Linux takes (128 KiB with its name)");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLifetime(const v1::SandboxSpec& spec) {
  if (spec.lifetime_case() == v1::SandboxSpec::kNever && !spec.never()) {
    return InvalidField("spec.never", "must be true");
  }
  if (spec.lifetime_case() != v1::SandboxSpec::kTtl) return absl::OkStatus();
  return CheckDuration("spec.ttl", spec.ttl(), absl::Nanoseconds(1), kMaxTtl).status();
}

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}
bool HasNonZero(std::string_view text) {
  return text.find_first_of("123456789") != std::string_view::npos;
}

// "2", "0.25", "500m".
bool IsCpu(std::string_view text) {
  if (text.size() > 20 || !HasNonZero(text)) return false;
  if (text.back() == 'm') return AllDigits(text.substr(0, text.size() - 1));
  const size_t point = text.find('.');
  if (point == std::string_view::npos) return AllDigits(text);
  return AllDigits(text.substr(0, point)) && AllDigits(text.substr(point + 1));
}

absl::Status CheckResources(std::string_view field, const TextMap& resources) {
  for (const std::string& key : SortedKeys(resources)) {
    const std::string& value = resources.at(key);
    if (key == "cpu") {
      if (!IsCpu(value)) return InvalidField(KeyField(field, key), "must be like 2, 0.5 or 500m");
    } else if (key == "memory") {
      if (!IsByteQuantity(value)) {
        return InvalidField(KeyField(field, key), "must be a whole number like 512Mi or 2Gi");
      }
    } else if (key == "gpu") {
      const bool number = value.size() <= 4 && AllDigits(value) && HasNonZero(value);
      if (value != "all" && !number) {
        return InvalidField(KeyField(field, key), "must be a number or all");
      }
    } else {
      return InvalidField(KeyField(field, key), "is none of cpu, memory and gpu");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlatform(std::string_view platform) {
  for (const char* known : {"", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}) {
    if (platform == known) return absl::OkStatus();
  }
  return InvalidField("spec.platform", "must be like linux/amd64 or linux/arm64");
}

absl::Status CheckExtensions(const TextMap& extensions) {
  RETURN_IF_ERROR(CheckSize("spec.extensions", extensions));
  for (const std::string& key : SortedKeys(extensions)) {
    const std::string field = KeyField("spec.extensions", key);
    if (key.empty()) return InvalidField(field, "the key must not be empty");
    RETURN_IF_ERROR(CheckPlainText(field, key, kMaxIdBytes));
    RETURN_IF_ERROR(CheckPlainText(field, extensions.at(key), kMaxExtensionBytes));
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const v1::SandboxSpec& spec) {
  RETURN_IF_ERROR(CheckSource(spec));
  RETURN_IF_ERROR(CheckTemplateAlone(spec));
  RETURN_IF_ERROR(CheckProgram(spec));
  RETURN_IF_ERROR(CheckLabels("spec.metadata", spec.metadata()));
  RETURN_IF_ERROR(CheckLifetime(spec));
  RETURN_IF_ERROR(CheckResources("spec.resource_limits", spec.resource_limits()));
  RETURN_IF_ERROR(CheckResources("spec.resource_requests", spec.resource_requests()));
  RETURN_IF_ERROR(CheckPlatform(spec.platform()));
  if (spec.has_network_policy()) RETURN_IF_ERROR(CheckPolicy(spec.network_policy()));
  RETURN_IF_ERROR(CheckVolumes("spec.volumes", spec.volumes()));
  return CheckExtensions(spec.extensions());
}

// The field `wait`, which may be zero.
template <class Request>
absl::StatusOr<absl::Duration> WaitField(const Request& request, absl::Duration absent) {
  if (!request.has_wait()) return absent;
  return CheckDuration("wait", request.wait(), absl::ZeroDuration(), kMaxWait);
}

}  // namespace

absl::Status CheckRequestId(std::string_view request_id) {
  if (request_id.size() > kMaxRequestIdBytes) {
    return InvalidField("request_id", "is longer than 128 characters");
  }
  for (const char c : request_id) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') {
      return InvalidField("request_id", "holds a character that is not one of A-Z a-z 0-9 . _ -");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> WaitOf(const v1::CreateSandboxRequest& request) {
  if (!request.has_ready_timeout()) return kDefaultReadyTimeout;
  return CheckDuration("ready_timeout", request.ready_timeout(), absl::Nanoseconds(1), kMaxWait);
}

absl::StatusOr<absl::Duration> WaitOf(const v1::DeleteSandboxRequest& request) {
  if (!request.has_wait_for_proof()) return kDefaultProofWait;
  return CheckDuration("wait_for_proof", request.wait_for_proof(), absl::ZeroDuration(), kMaxWait);
}

absl::StatusOr<absl::Duration> WaitOf(const v1::PauseSandboxRequest& request) {
  return WaitField(request, kDefaultPauseWait);
}

absl::StatusOr<absl::Duration> WaitOf(const v1::ResumeSandboxRequest& request) {
  return WaitField(request, kDefaultResumeWait);
}

absl::StatusOr<absl::Duration> WaitOf(const v1::CreateSnapshotRequest& request) {
  return WaitField(request, kDefaultSnapshotWait);
}

absl::Status CheckCreateSandbox(const v1::CreateSandboxRequest& request) {
  if (!request.has_spec()) return InvalidField("spec", "must be given");
  RETURN_IF_ERROR(CheckSpec(request.spec()));
  RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  return WaitOf(request).status();
}

absl::Status CheckListSandboxes(const v1::ListSandboxesRequest& request) {
  RETURN_IF_ERROR(CheckLabels("metadata", request.metadata()));
  for (int i = 0; i < request.states_size(); ++i) {
    const std::string field = ElementField("states", static_cast<size_t>(i));
    RETURN_IF_ERROR(
        CheckEnum(field, request.states(i), v1::SandboxState_IsValid(request.states(i))));
    if (request.states(i) == v1::SANDBOX_STATE_UNSPECIFIED) {
      return InvalidField(field, "must be a state");
    }
  }
  RETURN_IF_ERROR(CheckPageSize("page_size", request.page_size()).status());
  RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  if (request.skip() < 0) return InvalidField("skip", "must not be negative");
  if (request.skip() > 0 && !request.page_token().empty()) {
    return InvalidField("skip", "cannot be combined with page_token");
  }
  return absl::OkStatus();
}

absl::Status CheckSetExpiration(const v1::SetExpirationRequest& request) {
  switch (request.expiration_case()) {
    case v1::SetExpirationRequest::EXPIRATION_NOT_SET:
      return InvalidField("expiration", "needs ttl or never");
    case v1::SetExpirationRequest::kTtl:
      return CheckDuration("ttl", request.ttl(), absl::Nanoseconds(1), kMaxTtl).status();
    case v1::SetExpirationRequest::kNever:
      return request.never() ? absl::OkStatus() : InvalidField("never", "must be true");
  }
  return InvalidField("expiration", "is of an unknown kind");
}

absl::Status CheckUpdateMetadata(const v1::UpdateMetadataRequest& request) {
  RETURN_IF_ERROR(CheckLabels("set", request.set()));
  const auto& removed = request.delete_();
  if (static_cast<size_t>(removed.size()) > kMaxMapEntries) {
    return InvalidField("delete", "has more than 64 keys");
  }
  for (int i = 0; i < removed.size(); ++i) {
    const std::string field = ElementField("delete", static_cast<size_t>(i));
    if (const auto problem = LabelKeyProblem(removed[i])) {
      return InvalidField(field, "the key " + *problem);
    }
    if (request.set().contains(removed[i])) return InvalidField(field, "is also in set");
  }
  return absl::OkStatus();
}

}  // namespace bridge
