// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/sandbox_methods.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "fmt/format.h"
#include "frontends/epp/convert.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/manifest.h"
#include "frontends/epp/record.h"
#include "frontends/epp/template.h"

namespace bridge::epp {
namespace {

// A create's answer must be out before the host gives up, because the host does not remove what it
// gave up on.
constexpr absl::Duration kHostMargin = absl::Seconds(10);
constexpr absl::Duration kRequestMargin = absl::Seconds(1);
// What the bridge may take beyond ready_timeout: the request itself, and a removal.
constexpr absl::Duration kCreateOverhead = absl::Seconds(30);
constexpr absl::Duration kPauseTimeout = absl::Seconds(45);
constexpr absl::Duration kResumeTimeout = absl::Seconds(75);
constexpr absl::Duration kKillTimeout = absl::Seconds(45);
constexpr double kMaxLifetimeSeconds = 10.0 * 365 * 24 * 3600;
constexpr int64_t kDefaultPage = 100;
constexpr int64_t kMaxPage = 100;
constexpr int64_t kMegabyte = 1;

absl::Status ReadResources(const Params& params, v1::SandboxSpec* spec) {
  auto& limits = *spec->mutable_resource_limits();
  ASSIGN_OR_RETURN(const auto cpu, params.Integer("cpu", 1, 4096));
  if (cpu.has_value()) limits["cpu"] = std::to_string(*cpu);
  ASSIGN_OR_RETURN(const auto memory, params.Integer("memory", kMegabyte, int64_t{1} << 30));
  if (memory.has_value()) limits["memory"] = fmt::format("{}Mi", *memory);
  ASSIGN_OR_RETURN(const std::string gpu, params.Text("gpu", ""));
  if (!gpu.empty()) limits["gpu"] = gpu;
  if (params.Has("disk")) {
    return Unsupported("sandbox.disk", "disk: OpenSandbox has no limit for disks");
  }
  return absl::OkStatus();
}

absl::Status ReadMetadata(const Params& params, v1::SandboxSpec* spec) {
  ASSIGN_OR_RETURN(const auto metadata, params.TextMap("metadata"));
  for (const auto& [key, value] : metadata) (*spec->mutable_metadata())[key] = value;
  return absl::OkStatus();
}

// How long a create may take altogether.
absl::StatusOr<absl::Duration> CreateBudget(const Params& params) {
  const absl::Duration most = absl::Milliseconds(manifest::kCallTimeoutMs) - kHostMargin;
  ASSIGN_OR_RETURN(const auto seconds, params.Number("request_timeout"));
  if (!seconds.has_value() || !std::isfinite(*seconds) || *seconds <= 0) return most;
  const absl::Duration asked = absl::Seconds(*seconds);
  return std::min(most, std::max(asked - kRequestMargin, asked / 2));
}

Task<absl::StatusOr<v1::Sandbox>> FetchSandbox(Call& call, std::string sandbox_id) {
  v1::GetSandboxRequest request;
  request.set_sandbox_id(sandbox_id);
  absl::StatusOr<v1::Sandbox> sandbox = co_await CallUnary(
      call.scope(), call.stubs().sandboxes, &v1::SandboxService::Stub::PrepareAsyncGetSandbox,
      std::move(request), call.environment().call_timeout);
  if (!sandbox.ok() && IsUnknownSandbox(sandbox.status())) co_return UnknownSandbox(sandbox_id);
  co_return sandbox;
}

Task<absl::StatusOr<v1::Sandbox>> Resume(Call& call, std::string sandbox_id) {
  v1::ResumeSandboxRequest request;
  request.set_sandbox_id(sandbox_id);
  absl::StatusOr<v1::ResumeSandboxResponse> resumed = co_await CallUnary(
      call.scope(), call.stubs().sandboxes, &v1::SandboxService::Stub::PrepareAsyncResumeSandbox,
      std::move(request), kResumeTimeout);
  if (!resumed.ok()) {
    if (IsUnknownSandbox(resumed.status())) co_return UnknownSandbox(sandbox_id);
    co_return resumed.status();
  }
  if (!resumed->settled()) {
    co_return MakeError(ErrorReason::ERROR_REASON_READY_TIMEOUT,
                        "the sandbox was told to resume and does not run yet; look again later");
  }
  co_return std::move(*resumed->mutable_sandbox());
}

absl::StatusOr<v1::ListSandboxesRequest> MakeListRequest(const Params& params, int64_t limit) {
  v1::ListSandboxesRequest request;
  request.set_page_size(static_cast<int32_t>(std::min(limit, kMaxPage)));
  ASSIGN_OR_RETURN(const std::string status, params.Text("status", ""));
  if (!status.empty()) {
    const auto states = StatesOf(status);
    if (!states.has_value()) return InvalidField("status", "is no status of EPP/1");
    for (const v1::SandboxState state : *states) request.add_states(state);
  }
  const Json* cursor = params.Find("cursor");
  if (cursor != nullptr) {
    ASSIGN_OR_RETURN(*request.mutable_page_token(), AsTextOrNumber(*cursor, "cursor"));
  }
  return request;
}

}  // namespace

absl::StatusOr<absl::Duration> LifetimeOf(const Params& params, const char* field) {
  const Json* value = params.Find(field);
  if (value == nullptr) return InvalidField(field, "is missing");
  if (!value->is_number() && !value->is_string()) return InvalidField(field, "must be seconds");
  ASSIGN_OR_RETURN(const double seconds, AsNumber(*value, field));
  if (!std::isfinite(seconds) || seconds <= 0 || seconds > kMaxLifetimeSeconds) {
    return InvalidField(field, "must be seconds from now, more than 0 and at most ten years");
  }
  return absl::Seconds(std::ceil(seconds));
}

absl::StatusOr<v1::CreateSandboxRequest> MakeCreateRequest(const Params& params,
                                                           const CreateSettings& configured) {
  CreateSettings settings = configured;
  if (const Json* options = params.Find("options"); options != nullptr) {
    if (!options->is_object()) return ProtocolError(kInvalidParams, "options: must be an object");
    ASSIGN_OR_RETURN(settings, WithOptions(configured, *options));
  }
  v1::CreateSandboxRequest request;
  v1::SandboxSpec* spec = request.mutable_spec();
  ASSIGN_OR_RETURN(const std::string name, params.Text("template", "base"));
  spec->set_image(ImageFor(name, settings));
  for (const std::string& word : EntrypointFor(spec->image(), settings)) spec->add_entrypoint(word);
  ASSIGN_OR_RETURN(const auto env, EnvironmentOf(params.Find("envs"), "envs"));
  SetEnv(env, spec->mutable_env());
  RETURN_IF_ERROR(ReadMetadata(params, spec));
  RETURN_IF_ERROR(ReadResources(params, spec));
  absl::Duration lifetime = absl::Seconds(300);
  if (params.Has("timeout")) {
    ASSIGN_OR_RETURN(lifetime, LifetimeOf(params, "timeout"));
  }
  *spec->mutable_ttl() = ToProto(lifetime);
  ASSIGN_OR_RETURN(const bool secure, params.Bool("secure", settings.secure_access));
  spec->set_secure_access(secure);
  spec->set_platform(settings.platform);
  if (settings.network_policy.has_value()) {
    *spec->mutable_network_policy() = *settings.network_policy;
  }
  if (!settings.registry_username.empty()) {
    spec->mutable_image_auth()->set_username(settings.registry_username);
    spec->mutable_image_auth()->set_password(settings.registry_password);
  }
  ASSIGN_OR_RETURN(const absl::Duration budget, CreateBudget(params));
  *request.mutable_ready_timeout() =
      ToProto(std::min(settings.ready_timeout, std::max(budget - absl::Seconds(2), budget / 2)));
  return request;
}

Task<absl::StatusOr<Json>> CreateSandbox(Call& call) {
  absl::StatusOr<v1::CreateSandboxRequest> request =
      MakeCreateRequest(call.params(), call.environment().config.create);
  if (!request.ok()) co_return request.status();
  const absl::Duration ready = absl::Seconds(request->ready_timeout().seconds()) +
                               absl::Nanoseconds(request->ready_timeout().nanos());
  const absl::StatusOr<absl::Duration> budget = CreateBudget(call.params());
  const absl::StatusOr<v1::CreateSandboxResponse> created = co_await CallUnary(
      call.scope(), call.stubs().sandboxes, &v1::SandboxService::Stub::PrepareAsyncCreateSandbox,
      *std::move(request), std::min(*budget, ready + kCreateOverhead));
  if (!created.ok()) co_return created.status();
  const absl::StatusOr<std::string> name = call.params().Text("template", "base");
  Json record = SandboxRecord(created->sandbox(), *name);
  if (created->ttl_clamped()) record["timeout_raised"] = true;
  co_return record;
}

// A handle is for what can be used; what cannot is told now, and not by the first command.
absl::Status Connectable(const v1::Sandbox& sandbox) {
  if (sandbox.state() == v1::SANDBOX_STATE_RUNNING) return absl::OkStatus();
  const std::string state(sandbox.upstream_state().empty() ? StatusWord(sandbox.state())
                                                           : sandbox.upstream_state());
  const bool over = sandbox.state() == v1::SANDBOX_STATE_TERMINATED;
  return MakeError(over ? ErrorReason::ERROR_REASON_SANDBOX_NOT_FOUND
                        : ErrorReason::ERROR_REASON_SANDBOX_NOT_RUNNING,
                   "the sandbox is " + state,
                   {.metadata = {{"sandbox_id", sandbox.sandbox_id()}, {"state", state}}});
}

Task<absl::StatusOr<Json>> ConnectSandbox(Call& call) {
  const absl::StatusOr<std::string> id = call.params().NonEmptyText("sandbox_id");
  if (!id.ok()) co_return id.status();
  absl::StatusOr<v1::Sandbox> sandbox = co_await FetchSandbox(call, *id);
  if (sandbox.ok() && (sandbox->state() == v1::SANDBOX_STATE_PAUSED ||
                       sandbox->state() == v1::SANDBOX_STATE_PAUSING ||
                       sandbox->state() == v1::SANDBOX_STATE_RESUMING)) {
    sandbox = co_await Resume(call, *id);
  }
  if (!sandbox.ok()) co_return sandbox.status();
  if (absl::Status usable = Connectable(*sandbox); !usable.ok()) co_return usable;
  co_return SandboxRecord(*sandbox, "");
}

Task<absl::StatusOr<Json>> GetSandbox(Call& call) {
  const absl::StatusOr<std::string> id = call.params().NonEmptyText("sandbox_id");
  if (!id.ok()) co_return id.status();
  const absl::StatusOr<v1::Sandbox> sandbox = co_await FetchSandbox(call, *id);
  if (!sandbox.ok()) co_return sandbox.status();
  co_return SandboxRecord(*sandbox, "");
}

// One answer is one page of the bridge, or several of which only the last is not empty: the host
// would ask for ever if it got a cursor and no sandbox.
Task<absl::StatusOr<Json>> ListSandboxes(Call& call) {
  const auto limit = call.params().Integer("limit", 0, int64_t{1} << 53);
  if (!limit.ok()) co_return limit.status();
  absl::StatusOr<v1::ListSandboxesRequest> request =
      MakeListRequest(call.params(), std::max<int64_t>(1, limit->value_or(kDefaultPage)));
  if (!request.ok()) co_return request.status();
  Json records = Json::array();
  while (records.empty()) {
    const absl::StatusOr<v1::ListSandboxesResponse> page = co_await CallUnary(
        call.scope(), call.stubs().sandboxes, &v1::SandboxService::Stub::PrepareAsyncListSandboxes,
        *request, call.environment().call_timeout);
    if (!page.ok()) co_return page.status();
    for (const v1::Sandbox& sandbox : page->sandboxes()) {
      records.push_back(SandboxRecord(sandbox, ""));
    }
    request->set_page_token(page->next_page_token());
    if (page->next_page_token().empty()) break;
  }
  Json next = nullptr;
  if (!request->page_token().empty()) next = request->page_token();
  co_return Json{{"sandboxes", std::move(records)}, {"next", std::move(next)}};
}

Task<absl::StatusOr<Json>> KillSandbox(Call& call) {
  const absl::StatusOr<std::string> id = call.params().NonEmptyText("sandbox_id");
  if (!id.ok()) co_return id.status();
  v1::DeleteSandboxRequest request;
  request.set_sandbox_id(*id);
  const absl::StatusOr<v1::DeleteSandboxResponse> deleted = co_await CallUnary(
      call.scope(), call.stubs().sandboxes, &v1::SandboxService::Stub::PrepareAsyncDeleteSandbox,
      std::move(request), kKillTimeout);
  if (!deleted.ok()) {
    if (IsUnknownSandbox(deleted.status())) co_return Json{{"verdict", "already_gone"}};
    co_return deleted.status();
  }
  switch (deleted->verdict()) {
    case v1::DeleteSandboxResponse::VERDICT_CONFIRMED_GONE:
      co_return Json{{"verdict", "confirmed_gone"}};
    case v1::DeleteSandboxResponse::VERDICT_ALREADY_GONE:
      co_return Json{{"verdict", "already_gone"}};
    default:
      co_return Json{{"verdict", "accepted_unconfirmed"}};
  }
}

Task<absl::StatusOr<Json>> SetSandboxTimeout(Call& call) {
  const absl::StatusOr<std::string> id = call.params().NonEmptyText("sandbox_id");
  if (!id.ok()) co_return id.status();
  const absl::StatusOr<absl::Duration> lifetime = LifetimeOf(call.params(), "timeout");
  if (!lifetime.ok()) co_return lifetime.status();
  v1::SetExpirationRequest request;
  request.set_sandbox_id(*id);
  *request.mutable_ttl() = ToProto(*lifetime);
  const absl::StatusOr<v1::SetExpirationResponse> stored = co_await CallUnary(
      call.scope(), call.stubs().sandboxes, &v1::SandboxService::Stub::PrepareAsyncSetExpiration,
      std::move(request), call.environment().call_timeout);
  if (!stored.ok()) {
    if (IsUnknownSandbox(stored.status())) co_return UnknownSandbox(*id);
    co_return stored.status();
  }
  Json result = {{"timeout_raised", stored->clamped()}};
  if (stored->has_expires_at()) result["expires_at"] = TimeText(stored->expires_at());
  co_return result;
}

Task<absl::StatusOr<Json>> PauseSandbox(Call& call) {
  const absl::StatusOr<std::string> id = call.params().NonEmptyText("sandbox_id");
  if (!id.ok()) co_return id.status();
  v1::PauseSandboxRequest request;
  request.set_sandbox_id(*id);
  const absl::StatusOr<v1::PauseSandboxResponse> paused = co_await CallUnary(
      call.scope(), call.stubs().sandboxes, &v1::SandboxService::Stub::PrepareAsyncPauseSandbox,
      std::move(request), kPauseTimeout);
  if (!paused.ok()) {
    if (IsUnknownSandbox(paused.status())) co_return UnknownSandbox(*id);
    co_return paused.status();
  }
  if (!paused->settled()) {
    co_return MakeError(ErrorReason::ERROR_REASON_READY_TIMEOUT,
                        "the sandbox was told to pause and has not settled yet; look again later");
  }
  co_return SandboxRecord(paused->sandbox(), "");
}

Task<absl::StatusOr<Json>> ResumeSandbox(Call& call) {
  const absl::StatusOr<std::string> id = call.params().NonEmptyText("sandbox_id");
  if (!id.ok()) co_return id.status();
  const absl::StatusOr<v1::Sandbox> sandbox = co_await Resume(call, *id);
  if (!sandbox.ok()) co_return sandbox.status();
  co_return SandboxRecord(*sandbox, "");
}

// The same answer serves as a URL and as the descriptor from which the SDK makes an application's
// client; the members after `headers` are for the latter.
Task<absl::StatusOr<Json>> PortUrl(Call& call) {
  const absl::StatusOr<std::string> id = call.params().NonEmptyText("sandbox_id");
  if (!id.ok()) co_return id.status();
  const Json* value = call.params().Find("port");
  const absl::StatusOr<int64_t> port =
      AsInteger(value == nullptr ? Json() : *value, "port", 1, 65535);
  if (!port.ok()) co_return port.status();
  v1::GetEndpointRequest request;
  request.set_sandbox_id(*id);
  request.set_port(static_cast<int32_t>(*port));
  if (call.environment().config.use_server_proxy) {
    request.set_route(v1::ENDPOINT_ROUTE_SERVER_PROXY);
  }
  const absl::StatusOr<v1::Endpoint> endpoint = co_await CallUnary(
      call.scope(), call.stubs().sandboxes, &v1::SandboxService::Stub::PrepareAsyncGetEndpoint,
      std::move(request), call.environment().call_timeout);
  if (!endpoint.ok()) {
    if (IsUnknownSandbox(endpoint.status())) co_return UnknownSandbox(*id);
    co_return endpoint.status();
  }
  Json headers = Json::object();
  for (const auto& header : endpoint->headers()) headers[header.name()] = header.value();
  Json result = {{"url", endpoint->url()},
                 {"headers", std::move(headers)},
                 {"provider_id", manifest::kProviderId},
                 {"sandbox_id", *id},
                 {"port", *port},
                 {"authentication_audience", "gateway"},
                 {"path_mode", "prefix"}};
  if (endpoint->has_expires_at()) result["expires_at"] = TimeText(endpoint->expires_at());
  co_return result;
}

}  // namespace bridge::epp
