// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/lifecycle_codec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "bridge/base/status_macros.h"
#include "bridge/base/utf8.h"
#include "bridge/opensandbox/json.h"
#include "bridge/opensandbox/timestamps.h"
#include "fmt/format.h"

namespace bridge {
namespace {

using nlohmann::json;

absl::Status Problem(std::string_view what) {
  return absl::InvalidArgumentError(absl::string_view(what.data(), what.size()));
}

absl::StatusOr<json> ParseObject(std::string_view text) {
  json value = ParseJson(text);
  if (value.is_discarded()) return Problem("is not JSON");
  if (!value.is_object()) return Problem("is no JSON object");
  return value;
}

// The member, or null when it is absent or null.
const json* Member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string Text(const json& object, const char* key) {
  const json* value = Member(object, key);
  // Protobuf strings must be UTF-8, and JSON parsed without validation of escapes may not be.
  return value != nullptr && value->is_string() ? ToValidUtf8(value->get_ref<const std::string&>())
                                                : std::string();
}

// A member that is an object with the text, or the bare text in some versions.
std::string TextIn(const json& value, const char* key) {
  return value.is_string() ? ToValidUtf8(value.get_ref<const std::string&>()) : Text(value, key);
}

// Labels are strings; a server that writes 1 or true means "1" and "true".
std::map<std::string, std::string> TextMap(const json& object, const char* key) {
  std::map<std::string, std::string> result;
  const json* value = Member(object, key);
  if (value == nullptr || !value->is_object()) return result;
  for (const auto& [name, item] : value->items()) {
    if (item.is_null()) continue;
    result[ToValidUtf8(name)] =
        ToValidUtf8(item.is_string() ? item.get<std::string>()
                                     : item.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  return result;
}

int64_t Integer(const json& object, const char* key, int64_t fallback) {
  const json* value = Member(object, key);
  return value != nullptr && value->is_number_integer() ? value->get<int64_t>() : fallback;
}

double Number(const json& object, const char* key) {
  const json* value = Member(object, key);
  return value != nullptr && value->is_number() ? value->get<double>() : 0.0;
}

// A time as text, or as Unix seconds.
std::optional<absl::Time> AsTime(const json& value) {
  if (value.is_string()) return ParseTimestamp(value.get_ref<const std::string&>());
  if (value.is_number_integer()) return absl::FromUnixSeconds(value.get<int64_t>());
  return std::nullopt;
}

std::optional<absl::Time> TimeOrNothing(const json& object, const char* key) {
  const json* value = Member(object, key);
  return value == nullptr ? std::nullopt : AsTime(*value);
}

// An expiry that cannot be read must not look like "never".
absl::Status ReadExpiry(const json& object, std::optional<absl::Time>* out) {
  const json* value = Member(object, "expiresAt");
  if (value == nullptr) return absl::OkStatus();
  *out = AsTime(*value);
  return *out ? absl::OkStatus() : Problem("holds an expiresAt that is no time");
}

absl::StatusOr<SandboxRecord> ReadSandbox(const json& object) {
  SandboxRecord record;
  record.id = Text(object, "id");
  if (record.id.empty()) return Problem("holds a sandbox without an id");
  if (const json* status = Member(object, "status")) {
    record.state_text = TextIn(*status, "state");
    record.state_reason = Text(*status, "reason");
    record.state_message = Text(*status, "message");
  }
  record.state = ParseSandboxState(record.state_text);
  if (const json* image = Member(object, "image")) {
    record.image = TextIn(*image, "uri");
  }
  record.snapshot_id = Text(object, "snapshotId");
  if (const json* entrypoint = Member(object, "entrypoint"); entrypoint && entrypoint->is_array()) {
    for (const json& word : *entrypoint) {
      if (word.is_string()) record.entrypoint.push_back(ToValidUtf8(word.get<std::string>()));
    }
  }
  record.metadata = TextMap(object, "metadata");
  if (const json* platform = Member(object, "platform")) {
    const std::string os = Text(*platform, "os");
    const std::string arch = Text(*platform, "arch");
    record.platform = os.empty() || arch.empty() ? os + arch : os + "/" + arch;
  }
  record.created_at = TimeOrNothing(object, "createdAt");
  RETURN_IF_ERROR(ReadExpiry(object, &record.expires_at));
  return record;
}

absl::StatusOr<SnapshotRecord> ReadSnapshot(const json& object) {
  SnapshotRecord record;
  record.id = Text(object, "id");
  if (record.id.empty()) return Problem("holds a snapshot without an id");
  record.sandbox_id = Text(object, "sandboxId");
  record.name = Text(object, "name");
  if (const json* status = Member(object, "status")) {
    record.state_text = TextIn(*status, "state");
    record.state_message = Text(*status, "message");
  }
  record.state = ParseSnapshotState(record.state_text);
  record.created_at = TimeOrNothing(object, "createdAt");
  return record;
}

Pagination ReadPagination(const json& object) {
  Pagination result;
  const json* pagination = Member(object, "pagination");
  if (pagination == nullptr) return result;
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  result.page = static_cast<int>(std::min(Integer(*pagination, "page", 0), kMost));
  result.page_size = static_cast<int>(std::min(Integer(*pagination, "pageSize", 0), kMost));
  result.total_items = Integer(*pagination, "totalItems", -1);
  if (const json* next = Member(*pagination, "hasNextPage"); next && next->is_boolean()) {
    result.has_next = next->get<bool>();
  } else {
    result.has_next = result.total_items > int64_t{result.page} * result.page_size;
  }
  return result;
}

// {"items": [...]}, each read by `read`.
template <class Page, class Read>
absl::StatusOr<Page> ReadPage(std::string_view text, Read read) {
  ASSIGN_OR_RETURN(const json object, ParseObject(text));
  const json* items = Member(object, "items");
  if (items == nullptr || !items->is_array()) return Problem("holds no list of items");
  Page page;
  for (const json& item : *items) {
    ASSIGN_OR_RETURN(auto record, read(item));
    page.items.push_back(std::move(record));
  }
  page.pagination = ReadPagination(object);
  return page;
}

PolicyAction ReadAction(const std::string& text) {
  if (text == "allow") return PolicyAction::kAllow;
  if (text == "deny") return PolicyAction::kDeny;
  return PolicyAction::kUnset;
}

std::string_view ActionText(PolicyAction action) {
  return action == PolicyAction::kAllow ? "allow" : "deny";
}

// MiB as a JSON number → bytes.
int64_t Bytes(const json& object, const char* key) {
  constexpr double kMiB = 1024.0 * 1024.0;
  constexpr double kMost = 1e18;  // keeps the conversion defined
  return static_cast<int64_t>(std::llround(std::clamp(Number(object, key) * kMiB, 0.0, kMost)));
}

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json RulesJson(const std::vector<NetworkRule>& rules) {
  json list = json::array();
  for (const NetworkRule& rule : rules) {
    list.push_back({{"action", ActionText(rule.action)}, {"target", rule.target}});
  }
  return list;
}

json VolumeJson(const VolumeSpec& volume) {
  json result = {
      {"name", volume.name}, {"mountPath", volume.mount_path}, {"readOnly", volume.read_only}};
  if (!volume.sub_path.empty()) result["subPath"] = volume.sub_path;
  if (!volume.host_path.empty()) {
    result["host"] = {{"path", volume.host_path}};
    return result;
  }
  json claim = {{"claimName", volume.claim},
                {"createIfNotExists", volume.create_if_missing},
                {"deleteOnSandboxTermination", volume.delete_with_sandbox}};
  if (!volume.storage_class.empty()) claim["storageClass"] = volume.storage_class;
  if (!volume.size.empty()) claim["storage"] = volume.size;
  if (!volume.access_modes.empty()) claim["accessModes"] = volume.access_modes;
  result["pvc"] = std::move(claim);
  return result;
}

void AddSource(const CreateSpec& spec, json* body) {
  if (!spec.template_id.empty()) {
    (*body)["templateId"] = spec.template_id;
    return;
  }
  if (!spec.snapshot_id.empty()) {
    (*body)["snapshotId"] = spec.snapshot_id;
  } else {
    (*body)["image"] = {{"uri", spec.image}};
    if (!spec.image_user.empty() || !spec.image_password.empty()) {
      (*body)["image"]["auth"] = {{"username", spec.image_user}, {"password", spec.image_password}};
    }
  }
  // The server demands both, also where they say nothing.
  (*body)["entrypoint"] = spec.entrypoint;
  (*body)["resourceLimits"] = spec.resource_limits;
}

}  // namespace

std::string CreateSandboxJson(const CreateSpec& spec) {
  json body = json::object();
  AddSource(spec, &body);
  if (spec.ttl) {
    // Whole seconds; a sandbox never lives shorter than asked for.
    body["timeout"] = absl::ToInt64Seconds(absl::Ceil(*spec.ttl, absl::Seconds(1)));
  }
  if (!spec.env.empty()) {
    json env = json::object();
    for (const auto& [name, value] : spec.env) env[name] = value;
    body["env"] = std::move(env);
  }
  if (!spec.metadata.empty()) body["metadata"] = spec.metadata;
  if (!spec.resource_requests.empty()) body["resourceRequests"] = spec.resource_requests;
  if (const size_t slash = spec.platform.find('/'); slash != std::string::npos) {
    body["platform"] = {{"os", spec.platform.substr(0, slash)},
                        {"arch", spec.platform.substr(slash + 1)}};
  }
  if (spec.network_policy) {
    body["networkPolicy"] = {{"defaultAction", ActionText(spec.network_policy->default_action)},
                             {"egress", RulesJson(spec.network_policy->rules)}};
  }
  if (spec.secure_access) body["secureAccess"] = true;
  if (!spec.volumes.empty()) {
    json volumes = json::array();
    for (const VolumeSpec& volume : spec.volumes) volumes.push_back(VolumeJson(volume));
    body["volumes"] = std::move(volumes);
  }
  if (!spec.extensions.empty()) body["extensions"] = spec.extensions;
  return Dump(body);
}

std::string RenewJson(absl::Time expires_at) {
  return Dump({{"expiresAt", FormatTimestamp(expires_at)}});
}

std::string MetadataPatchJson(const std::map<std::string, std::string>& set,
                              const std::vector<std::string>& remove) {
  json patch = json::object();
  for (const auto& [key, value] : set) patch[key] = value;
  for (const std::string& key : remove) patch[key] = nullptr;
  return Dump(patch);
}

std::string CreateSnapshotJson(std::string_view name) {
  json body = json::object();
  if (!name.empty()) body["name"] = std::string(name);
  return Dump(body);
}

std::string NetworkRulesJson(const std::vector<NetworkRule>& rules) {
  return Dump(RulesJson(rules));
}

std::string TargetsJson(const std::vector<std::string>& targets) { return Dump(json(targets)); }

std::string MetadataFilter(const std::map<std::string, std::string>& metadata) {
  std::string result;
  const auto add = [&result](std::string_view text) {
    for (const char c : text) {
      const auto u = static_cast<unsigned char>(c);
      if (absl::ascii_isalnum(u) || std::string_view("-_./").find(c) != std::string_view::npos) {
        result += c;
      } else {
        result += fmt::format("%{:02X}", u);
      }
    }
  };
  for (const auto& [key, value] : metadata) {
    if (!result.empty()) result += '&';
    add(key);
    result += '=';
    add(value);
  }
  return result;
}

absl::StatusOr<SandboxRecord> ParseSandbox(std::string_view text) {
  ASSIGN_OR_RETURN(const json object, ParseObject(text));
  return ReadSandbox(object);
}

absl::StatusOr<SandboxPage> ParseSandboxPage(std::string_view text) {
  return ReadPage<SandboxPage>(text, ReadSandbox);
}

absl::StatusOr<std::optional<absl::Time>> ParseRenewal(std::string_view text) {
  ASSIGN_OR_RETURN(const json object, ParseObject(text));
  std::optional<absl::Time> expires_at;
  RETURN_IF_ERROR(ReadExpiry(object, &expires_at));
  return expires_at;
}

absl::StatusOr<RawEndpoint> ParseEndpointAnswer(std::string_view text) {
  ASSIGN_OR_RETURN(const json object, ParseObject(text));
  RawEndpoint result;
  result.endpoint = Text(object, "endpoint");
  if (result.endpoint.empty()) return Problem("holds no endpoint");
  for (const auto& [name, value] : TextMap(object, "headers")) {
    if (!IsHeaderName(name) || !IsHeaderValue(value)) {
      return Problem("holds an endpoint header that cannot be sent");
    }
    result.headers.Add(name, value);
  }
  return result;
}

absl::StatusOr<SnapshotRecord> ParseSnapshot(std::string_view text) {
  ASSIGN_OR_RETURN(const json object, ParseObject(text));
  return ReadSnapshot(object);
}

absl::StatusOr<SnapshotPage> ParseSnapshotPage(std::string_view text) {
  return ReadPage<SnapshotPage>(text, ReadSnapshot);
}

absl::StatusOr<NetworkPolicyStatus> ParseNetworkPolicy(std::string_view text) {
  ASSIGN_OR_RETURN(const json object, ParseObject(text));
  NetworkPolicyStatus result;
  result.enforcement = Text(object, "enforcementMode");
  const json* policy = Member(object, "policy");
  if (policy == nullptr) return Problem("holds no policy");
  result.policy.default_action = ReadAction(Text(*policy, "defaultAction"));
  const json* rules = Member(*policy, "egress");
  if (rules == nullptr || !rules->is_array()) return result;
  for (const json& rule : *rules) {
    const PolicyAction action = ReadAction(Text(rule, "action"));
    if (action == PolicyAction::kUnset) return Problem("holds a rule with an unknown action");
    result.policy.rules.push_back({.action = action, .target = Text(rule, "target")});
  }
  return result;
}

absl::StatusOr<std::string> ParseDiagnostics(std::string_view text) {
  ASSIGN_OR_RETURN(const json object, ParseObject(text));
  const json* content = Member(object, "content");
  if (content == nullptr || !content->is_string()) return Problem("holds no content");
  return content->get<std::string>();
}

absl::StatusOr<std::string> ParseVersion(std::string_view text) {
  ASSIGN_OR_RETURN(const json object, ParseObject(text));
  return Text(object, "version");
}

absl::StatusOr<ResourceSample> ParseResourceSample(std::string_view text) {
  ASSIGN_OR_RETURN(const json object, ParseObject(text));
  if (Member(object, "cpu_count") == nullptr || Member(object, "mem_total_mib") == nullptr) {
    return Problem("holds no measurement");
  }
  ResourceSample sample;
  sample.cpu_count = Number(object, "cpu_count");
  sample.cpu_used_percent = Number(object, "cpu_used_pct");
  sample.memory_total_bytes = Bytes(object, "mem_total_mib");
  sample.memory_used_bytes = Bytes(object, "mem_used_mib");
  if (const int64_t millis = Integer(object, "timestamp", 0); millis > 0) {
    sample.at = absl::FromUnixMillis(millis);
  }
  return sample;
}

}  // namespace bridge
