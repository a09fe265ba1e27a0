// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/api/create_request.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>
#include <utility>

#include "bridge/local/api/fields.h"
#include "bridge/local/api/rules.h"

namespace bridge::local::api {
namespace {

constexpr std::string_view kEgressPrefix = "OPENSANDBOX_EGRESS_";
// Those of the prefix that a request may set.
constexpr std::string_view kEgressKeys[] = {
    "OPENSANDBOX_EGRESS_CREDENTIAL_VAULT_REQUIRE_SCOPED_MATCH",
    "OPENSANDBOX_EGRESS_CREDENTIAL_VAULT_REQUIRE_TLS",
    "OPENSANDBOX_EGRESS_CREDENTIAL_VAULT_TRUSTED_PROXY_CIDRS",
    "OPENSANDBOX_EGRESS_DENY_WEBHOOK",
    "OPENSANDBOX_EGRESS_DNS_UPSTREAM_TIMEOUT",
    "OPENSANDBOX_EGRESS_LOG_LEVEL",
    "OPENSANDBOX_EGRESS_METRICS_EXTRA_ATTRS",
    "OPENSANDBOX_EGRESS_MITMPROXY_EXTRA_PORTS",
    "OPENSANDBOX_EGRESS_MITMPROXY_SSL_INSECURE",
    "OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT",
    "OPENSANDBOX_EGRESS_POLICY_FILE"};

// Beyond this a deadline can no longer be written as a date.
constexpr int64_t kMaxTimeoutSeconds = int64_t{200} * 365 * 86400;

bool StartsWithSlash(std::string_view path) { return path.starts_with('/'); }

void ParseImage(Fields& fields, CreateRequest* request) {
  std::optional<Fields> image = fields.Object("image");
  if (!image) return;
  request->image = image->String("uri", {.presence = Presence::kRequired}).value_or("");
  if (std::optional<Fields> auth = image->Object("auth")) {
    auth->String("username", {.presence = Presence::kRequired});
    auth->String("password", {.presence = Presence::kRequired});
  }
}

void ParsePlatform(Fields& fields, CreateRequest* request) {
  std::optional<Fields> platform = fields.Object("platform");
  if (!platform) return;
  const auto os = platform->String("os", {.presence = Presence::kRequired});
  const auto arch = platform->String("arch", {.presence = Presence::kRequired});
  request->platform = {os.value_or(""), arch.value_or("")};
}

void ParseLifecycle(Fields& fields, CreateRequest* request) {
  std::optional<Fields> lifecycle = fields.Object("lifecycle");
  if (!lifecycle) return;
  request->has_lifecycle_hooks = true;
  if (std::optional<Fields> hook = lifecycle->Object("preStart")) {
    hook->StringList("command", 1, Presence::kRequired);
    hook->Int("timeoutSeconds", {.at_least = 1, .at_most = 10800});
  }
  for (Fields& hook : lifecycle->Objects("periodic")) {
    hook.String("name", {.presence = Presence::kRequired, .min_length = 1});
    hook.String("schedule", {.presence = Presence::kRequired, .min_length = 1});
    hook.StringList("command", 1, Presence::kRequired);
    hook.Int("timeoutSeconds", {.at_least = 1, .at_most = 300});
  }
}

void ParseNetworkPolicy(Fields& fields, CreateRequest* request) {
  std::optional<Fields> policy = fields.Object("networkPolicy");
  if (!policy) return;
  request->has_network_policy = true;
  policy->String("defaultAction");
  for (Fields& rule : policy->Objects("egress")) {
    rule.String("action", {.presence = Presence::kRequired});
    rule.String("target", {.presence = Presence::kRequired, .min_length = 1});
  }
}

void ParseBackends(Fields& fields, VolumeRequest* volume) {
  int backends = 0;
  if (std::optional<Fields> host = fields.Object("host")) {
    ++backends;
    volume->backend = VolumeRequest::Backend::kHost;
    volume->source = host->String("path", {.presence = Presence::kRequired,
                                           .matches = StartsWithSlash,
                                           .pattern = R"(^(/|[A-Za-z]:[\\/]))"})
                         .value_or("");
  }
  if (std::optional<Fields> named = fields.Object("pvc")) {
    ++backends;
    volume->backend = VolumeRequest::Backend::kNamed;
    volume->source = named
                         ->String("claimName", {.presence = Presence::kRequired,
                                                .max_length = 253,
                                                .matches = IsDnsLabel,
                                                .pattern = kDnsLabelPattern})
                         .value_or("");
    volume->create_if_not_exists = named->Bool("createIfNotExists").value_or(true);
    volume->delete_with_sandbox = named->Bool("deleteOnSandboxTermination").value_or(false);
    named->String("storageClass");
    named->String("storage");
    named->StringList("accessModes");
  }
  if (std::optional<Fields> store = fields.Object("ossfs")) {
    ++backends;
    volume->backend = VolumeRequest::Backend::kObjectStore;
    store->String("bucket", {.presence = Presence::kRequired, .min_length = 3, .max_length = 63});
    store->String("endpoint", {.presence = Presence::kRequired, .min_length = 1});
    store->StringList("options");
    store->String("accessKeyId", {.min_length = 1});
    store->String("accessKeySecret", {.min_length = 1});
  }
  volume->mount_path =
      fields
          .String("mountPath",
                  {.presence = Presence::kRequired, .matches = StartsWithSlash, .pattern = "^/.*"})
          .value_or("");
  volume->read_only = fields.Bool("readOnly").value_or(false);
  volume->sub_path = fields.String("subPath").value_or("");
  if (backends == 1) return;
  fields.Reject(std::string("Exactly one backend (host, pvc, ossfs) must be specified, but ") +
                (backends == 0 ? "none was provided." : "multiple were provided."));
}

void ParseVolumes(Fields& fields, CreateRequest* request) {
  for (Fields& item : fields.Objects("volumes")) {
    if (!item.is_object()) continue;
    VolumeRequest volume;
    volume.name = item.String("name", {.presence = Presence::kRequired,
                                       .max_length = 63,
                                       .matches = IsDnsLabel,
                                       .pattern = kDnsLabelPattern})
                      .value_or("");
    ParseBackends(item, &volume);
    request->volumes.push_back(std::move(volume));
  }
}

// Rules about the request as a whole. The first one that is broken is the answer.
std::string WholeRequestProblem(const CreateRequest& request, const Json& body,
                                bool credential_proxy) {
  const auto has = [&body](const char* name) {
    return body.contains(name) && !body[name].is_null();
  };
  if (request.env.contains("OPENSANDBOX_LIFECYCLE")) {
    return "Environment variable 'OPENSANDBOX_LIFECYCLE' is reserved. Use the lifecycle request "
           "field instead.";
  }
  if (!request.template_id.empty()) {
    std::string clashes;
    for (const char* name :
         {"credentialProxy", "entrypoint", "env", "image", "lifecycle", "platform",
          "resourceLimits", "resourceRequests", "snapshotId", "volumes"}) {
      if (has(name)) clashes += (clashes.empty() ? "" : ", ") + std::string(name);
    }
    if (!clashes.empty()) {
      return "templateId cannot be combined with: " + clashes +
             "; the workload shape is fixed by the template's golden image.";
    }
    return request.timeout_seconds ? "" : "timeout is required when templateId is provided.";
  }
  const bool pool = request.extensions.contains("poolRef");
  if (!pool && request.image.empty() == request.snapshot_id.empty()) {
    return "Exactly one of image or snapshotId must be provided.";
  }
  if (!pool && !request.image.empty() && request.entrypoint.empty()) {
    return "Entrypoint is required when image is provided.";
  }
  if (!pool && !has("resourceLimits")) {
    return "resourceLimits is required when poolRef is not provided.";
  }
  if (credential_proxy && !request.has_network_policy) {
    return "credentialProxy.enabled requires networkPolicy.";
  }
  return "";
}

std::optional<Failure> CheckTimeout(const CreateRequest& request, const CreateLimits& limits) {
  if (!request.timeout_seconds) return std::nullopt;
  const std::string seconds = std::to_string(*request.timeout_seconds) + "s";
  if (*request.timeout_seconds > kMaxTimeoutSeconds) {
    return InvalidParameter("Sandbox timeout " + seconds + " is too large to represent safely.");
  }
  if (limits.max_timeout_seconds && *request.timeout_seconds > *limits.max_timeout_seconds) {
    return InvalidParameter("Sandbox timeout " + seconds + " exceeds configured maximum of " +
                            std::to_string(*limits.max_timeout_seconds) + "s.");
  }
  return std::nullopt;
}

std::optional<Failure> CheckEnv(const CreateRequest& request) {
  for (const auto& [name, value] : request.env) {
    if (!name.starts_with(kEgressPrefix)) continue;
    if (std::find(std::begin(kEgressKeys), std::end(kEgressKeys), name) != std::end(kEgressKeys)) {
      continue;
    }
    std::string allowed;
    for (const std::string_view key : kEgressKeys) {
      allowed += (allowed.empty() ? "'" : ", '") + std::string(key) + "'";
    }
    return InvalidParameter("Environment variable '" + name +
                            "' is not allowed; permitted OPENSANDBOX_EGRESS_ keys: [" + allowed +
                            "]");
  }
  return std::nullopt;
}

std::optional<Failure> CheckExtensions(const CreateRequest& request) {
  if (request.extensions.contains("poolRef")) {
    return CodeFailure(400, "SANDBOX::UNSUPPORTED_POOL_REF",
                       "poolRef is not supported by the Docker provider. Use Kubernetes "
                       "BatchSandbox provider instead.");
  }
  const auto renew = request.extensions.find("access.renew.extend.seconds");
  if (renew == request.extensions.end()) return std::nullopt;
  const std::string& text = renew->second;
  int64_t seconds = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const std::string where = "Invalid extensions[\"access.renew.extend.seconds\"]: ";
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidParameter(where + "must be a decimal integer string, got '" + text + "'.");
  }
  if (seconds < 300 || seconds > 86400) {
    return InvalidParameter(where +
                            "must be between 300 and 86400 seconds (5 minutes to 24 hours "
                            "inclusive), got " +
                            std::to_string(seconds) + ".");
  }
  return std::nullopt;
}

Failure StartFailed(const std::string& why) {
  return CodeFailure(500, "DOCKER::SANDBOX_START_FAILED",
                     "Failed to create or start container: " + why);
}

std::optional<Failure> CheckResources(const CreateRequest& request, const CreateLimits& limits) {
  std::optional<int64_t> cpu;
  std::optional<int64_t> memory;
  for (const auto& [name, value] : request.resource_limits) {
    const bool is_cpu = name == "cpu";
    if (!is_cpu && name != "memory") continue;
    std::optional<int64_t>& number = is_cpu ? cpu : memory;
    number = is_cpu ? ParseCpuMillis(value) : ParseMemoryBytes(value);
    if (!number) {
      return InvalidParameter("Invalid resourceLimits." + name + ": '" + value +
                              "'; must resolve to a positive resource limit.");
    }
  }
  if (cpu && *cpu > int64_t{1000} * limits.cpus) {
    char range[128];
    snprintf(range, sizeof(range),
             "Range of CPUs is from 0.01 to %d.00, as there are only %d CPUs available",
             limits.cpus, limits.cpus);
    return StartFailed(range);
  }
  if (memory && *memory < 6 * 1024 * 1024)
    return StartFailed("Minimum memory limit allowed is 6MB");
  if (request.resource_limits.contains("gpu")) {
    return StartFailed("could not select device driver \"\" with capabilities: [[gpu]]");
  }
  return std::nullopt;
}

std::optional<Failure> CheckPlatform(const CreateRequest& request, const CreateLimits& limits) {
  if (!request.platform) return std::nullopt;
  const auto& [os, arch] = *request.platform;
  if (os != "linux" && os != "windows") {
    return InvalidParameter("Unsupported platform.os '" + os +
                            "'. Supported values: ['linux', 'windows'].");
  }
  if (arch != "amd64" && arch != "arm64") {
    return InvalidParameter("Unsupported platform.arch '" + arch +
                            "'. Supported values: ['amd64', 'arm64'].");
  }
  if (os == "linux" && arch == limits.arch) return std::nullopt;
  return CodeFailure(500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
                     "Failed to pull image " + request.image + ": nothing for " + os + "/" + arch +
                         " on this " + limits.arch + " machine");
}

std::optional<Failure> CheckVolumes(const CreateRequest& request) {
  std::set<std::string> names;
  for (const VolumeRequest& volume : request.volumes) {
    if (!names.insert(volume.name).second) {
      return CodeFailure(
          400, "VOLUME::DUPLICATE_NAME",
          "Duplicate volume name '" + volume.name + "'. Each volume must have a unique name.");
    }
    if (volume.sub_path.starts_with('/')) {
      return CodeFailure(400, "VOLUME::INVALID_SUB_PATH",
                         "SubPath '" + volume.sub_path + "' must be a relative path.");
    }
    const std::string walls = "/" + volume.sub_path + "/";
    if (walls.find("/../") != std::string::npos) {
      return CodeFailure(
          400, "VOLUME::INVALID_SUB_PATH",
          "SubPath '" + volume.sub_path + "' contains path traversal '..' which is not allowed.");
    }
    if (volume.backend == VolumeRequest::Backend::kObjectStore) {
      return CodeFailure(400, "VOLUME::UNSUPPORTED_BACKEND",
                         "Volume '" + volume.name +
                             "': ossfs is not available here; use a host path or a named volume.");
    }
  }
  return std::nullopt;
}

}  // namespace

std::map<std::string, std::string> CreateRequest::KeptExtensions() const {
  std::map<std::string, std::string> kept;
  for (const auto& [key, value] : extensions) {
    if (key.starts_with("opensandbox.extensions.")) kept[key] = value;
  }
  return kept;
}

std::optional<Failure> ParseCreateRequest(const Json& body, CreateRequest* request) {
  ValidationErrors errors;
  Fields fields(body, {"body"}, errors);
  if (!fields.is_object()) return errors.ToFailure();
  ParseImage(fields, request);
  request->snapshot_id = fields.String("snapshotId").value_or("");
  ParsePlatform(fields, request);
  request->timeout_seconds = fields.Int("timeout", {.at_least = 60});
  request->resource_limits = fields.StringMap("resourceLimits").value_or(request->resource_limits);
  fields.StringMap("resourceRequests");
  request->env = fields.StringMap("env", /*drop_nulls=*/true).value_or(request->env);
  request->metadata = fields.StringMap("metadata").value_or(request->metadata);
  ParseLifecycle(fields, request);
  request->entrypoint = fields.StringList("entrypoint", 1).value_or(request->entrypoint);
  ParseNetworkPolicy(fields, request);
  bool credential_proxy = false;
  if (std::optional<Fields> proxy = fields.Object("credentialProxy")) {
    credential_proxy = proxy->Bool("enabled").value_or(false);
  }
  request->secure_access = fields.Bool("secureAccess").value_or(false);
  ParseVolumes(fields, request);
  request->extensions = fields.StringMap("extensions").value_or(request->extensions);
  request->template_id = fields.String("templateId", {.min_length = 1}).value_or("");
  if (!errors.empty()) return errors.ToFailure();

  if (body.contains("metadata")) request->metadata_as_sent = body["metadata"];
  const std::string problem = WholeRequestProblem(*request, body, credential_proxy);
  if (problem.empty()) return std::nullopt;
  fields.Reject(problem);
  return errors.ToFailure();
}

std::optional<Failure> CheckCreateRequest(const CreateRequest& request,
                                          const CreateLimits& limits) {
  if (auto failure = CheckTimeout(request, limits)) return failure;
  if (auto failure = CheckLabels(request.metadata)) return failure;
  if (auto failure = CheckEnv(request)) return failure;
  if (auto failure = CheckExtensions(request)) return failure;
  if (request.secure_access) {
    return InvalidParameter(
        "secureAccess is not supported when runtime.type='docker'. Use the Kubernetes runtime to "
        "create secured sandboxes.");
  }
  if (request.has_lifecycle_hooks) {
    return InvalidParameter("lifecycle hooks are not supported by the Docker provider.");
  }
  if (!request.snapshot_id.empty()) {
    return CodeFailure(404, "SNAPSHOT::NOT_FOUND",
                       "Snapshot " + request.snapshot_id + " not found");
  }
  if (request.entrypoint.empty()) {
    return CodeFailure(400, "DOCKER::INVALID_ENTRYPOINT",
                       "Entrypoint must contain at least one command.");
  }
  if (auto failure = CheckResources(request, limits)) return failure;
  if (auto failure = CheckVolumes(request)) return failure;
  if (request.has_network_policy) {
    // As the real server on Docker's host network, which is what sandboxes here have.
    return InvalidParameter(
        "networkPolicy is not supported on the host network, which sandboxes here share; omit it.");
  }
  if (!IsImageReference(request.image)) {
    return CodeFailure(500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
                       "Failed to inspect image " + request.image + ": invalid reference format");
  }
  return CheckPlatform(request, limits);
}

}  // namespace bridge::local::api
