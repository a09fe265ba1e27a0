// SPDX-License-Identifier: Apache-2.0
//
// Routes of the sandboxes themselves.
#include <cstdlib>
#include <optional>
#include <set>
#include <string>

#include "bridge/local/api/fields.h"
#include "bridge/local/api/rules.h"
#include "bridge/local/lifecycle/reply.h"
#include "bridge/local/lifecycle/service.h"
#include "bridge/local/lifecycle/views.h"

namespace bridge::local::lifecycle {
namespace {

using api::CodeFailure;
using api::ValidationErrors;

// A query parameter as the framework reads it: of several, the last.
std::optional<int64_t> QueryInt(const http::Request& request, const char* name,
                                const api::IntRule& rule, ValidationErrors& errors) {
  const std::optional<std::string> text = request.QueryLast(name);
  if (!text) return std::nullopt;
  return api::LaxInt(*text, rule, {"query", name}, errors);
}

absl::Duration SecondsOf(const std::string& note) {
  return absl::Seconds(std::strtod(note.c_str(), nullptr));
}

bool HasAll(const std::map<std::string, std::string>& metadata,
            const std::map<std::string, std::string>& filter) {
  for (const auto& [key, value] : filter) {
    const auto it = metadata.find(key);
    if (it == metadata.end() || it->second != value) return false;
  }
  return true;
}

std::set<std::string> StatesAsked(const http::Request& request) {
  std::set<std::string> states;
  for (const std::string& state : request.QueryAll("state")) states.insert(http::AsciiLower(state));
  return states;
}

}  // namespace

Json Service::View(http::Exchange& exchange, const SandboxRecord& record) const {
  const std::string& pending = exchange.note(kNotePending);
  if (!pending.empty() && sandboxes_.Now() < record.container_at + SecondsOf(pending)) {
    return PendingView(record);
  }
  return SandboxView(record);
}

void Service::Create(http::Exchange& exchange) {
  Json body;
  if (!ReadBody(exchange, &body)) return;
  api::CreateRequest request;
  if (auto failure = api::ParseCreateRequest(body, &request))
    return ReplyFailure(exchange, *failure);
  SandboxRecord record;
  if (auto failure = sandboxes_.Create(request, &record)) return ReplyFailure(exchange, *failure);
  Json view = CreatedView(record, request.metadata_as_sent);
  if (!exchange.note(kNotePending).empty()) view["status"] = PendingView(record)["status"];
  ReplyJson(exchange, 202, view);
}

void Service::List(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  ValidationErrors errors;
  const int64_t page = QueryInt(request, "page", {.at_least = 1}, errors).value_or(1);
  const int64_t size =
      QueryInt(request, "pageSize", {.at_least = 1, .at_most = 200}, errors).value_or(20);
  if (!errors.empty()) return ReplyFailure(exchange, errors.ToFailure());
  std::map<std::string, std::string> filter;
  if (auto failure =
          api::ParseMetadataFilter(request.QueryLast("metadata").value_or(""), &filter)) {
    return ReplyFailure(exchange, *failure);
  }
  const std::set<std::string> states = StatesAsked(request);
  const std::string& hide = exchange.note(kNoteHideNew);
  const absl::Time newest =
      hide.empty() ? absl::InfiniteFuture() : sandboxes_.Now() - SecondsOf(hide);
  std::vector<Json> items;
  for (const SandboxRecord& record : sandboxes_.List()) {
    if (record.container_at > newest || !HasAll(record.metadata, filter)) continue;
    Json view = View(exchange, record);
    const std::string state = http::AsciiLower(view["status"]["state"].get<std::string>());
    if (states.empty() || states.contains(state)) items.push_back(std::move(view));
  }
  ReplyJson(exchange, 200, PageView(items, page, size));
}

void Service::Get(http::Exchange& exchange) {
  SandboxRecord record;
  if (auto failure = sandboxes_.Get(exchange.request().param("sandbox_id"), &record)) {
    return ReplyFailure(exchange, *failure);
  }
  ReplyJson(exchange, 200, View(exchange, record));
}

void Service::Delete(http::Exchange& exchange) {
  const std::string id = exchange.request().param("sandbox_id");
  if (!exchange.note(kNoteKeepOnDelete).empty()) return ReplyEmpty(exchange, 204);
  if (auto failure = sandboxes_.Delete(id)) return ReplyFailure(exchange, *failure);
  options_.on_deleted(id);
  ReplyEmpty(exchange, 204);
}

void Service::PatchMetadata(http::Exchange& exchange) {
  Json body;
  if (!ReadBody(exchange, &body)) return;
  ValidationErrors errors;
  if (!body.is_object()) {
    errors.Add("dict_type", {"body"}, "Input should be a valid dictionary", body);
    return ReplyFailure(exchange, errors.ToFailure());
  }
  std::map<std::string, std::optional<std::string>> patch;
  for (const auto& [key, value] : body.items()) {
    if (value.is_null()) {
      patch[key] = std::nullopt;
    } else if (value.is_string()) {
      patch[key] = value.get<std::string>();
    } else {
      errors.Add("string_type", {"body", key}, "Input should be a valid string", value);
    }
  }
  if (!errors.empty()) return ReplyFailure(exchange, errors.ToFailure());
  SandboxRecord record;
  if (auto failure =
          sandboxes_.PatchMetadata(exchange.request().param("sandbox_id"), patch, &record)) {
    return ReplyFailure(exchange, *failure);
  }
  ReplyJson(exchange, 200, View(exchange, record));
}

void Service::Pause(http::Exchange& exchange) {
  if (auto failure = sandboxes_.Pause(exchange.request().param("sandbox_id"))) {
    return ReplyFailure(exchange, *failure);
  }
  ReplyEmpty(exchange, 202);
}

void Service::Resume(http::Exchange& exchange) {
  if (auto failure = sandboxes_.Resume(exchange.request().param("sandbox_id"))) {
    return ReplyFailure(exchange, *failure);
  }
  ReplyEmpty(exchange, 202);
}

void Service::Renew(http::Exchange& exchange) {
  Json body;
  if (!ReadBody(exchange, &body)) return;
  ValidationErrors errors;
  api::Fields fields(body, {"body"}, errors);
  const Json* value = fields.Find("expiresAt", api::Presence::kRequired);
  std::optional<absl::Time> time;
  if (value != nullptr) time = api::ParseTimeField(*value, {"body", "expiresAt"}, errors);
  if (!time) return ReplyFailure(exchange, errors.ToFailure());
  if (auto failure = sandboxes_.Renew(exchange.request().param("sandbox_id"), *time)) {
    return ReplyFailure(exchange, *failure);
  }
  ReplyJson(exchange, 200, {{"expiresAt", api::FormatTime(*time)}});
}

std::string Service::PublicHost(const http::Request& request) const {
  std::string host = options_.public_host;
  if (host.empty()) {
    const std::string given(request.headers.Get("host").value_or("127.0.0.1"));
    const auto address = http::ParseHostPort(given);
    host = address ? address->host : given;
  }
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

void Service::Endpoint(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  ValidationErrors errors;
  const std::optional<int64_t> port =
      api::LaxInt(request.param("port"), {}, {"path", "port"}, errors);
  bool use_server_proxy = false;
  if (const auto text = request.QueryLast("use_server_proxy")) {
    use_server_proxy = api::LaxBool(*text, {"query", "use_server_proxy"}, errors).value_or(false);
  }
  const std::optional<int64_t> expires = QueryInt(request, "expires", {}, errors);
  if (!errors.empty()) return ReplyFailure(exchange, errors.ToFailure());
  if (expires && use_server_proxy) {
    return ReplyFailure(exchange,
                        api::InvalidParameter("use_server_proxy cannot be combined with expires; "
                                              "signed endpoints require the gateway route."));
  }
  if (expires) {
    return ReplyFailure(exchange,
                        CodeFailure(400, "SANDBOX::API_NOT_SUPPORTED",
                                    "Signed routes (expires parameter) are not supported when "
                                    "runtime.type='docker'. Use the Kubernetes runtime for signed "
                                    "routes."));
  }
  if (*port < 1 || *port > 65535) {
    return ReplyFailure(
        exchange, CodeFailure(400, "DOCKER::INVALID_PORT", "Port must be between 1 and 65535."));
  }
  SandboxRecord record;
  if (auto failure = sandboxes_.Get(request.param("sandbox_id"), &record)) {
    return ReplyFailure(exchange, *failure);
  }
  const std::string number = std::to_string(*port);
  std::string endpoint;
  if (use_server_proxy) {
    const char* mount = request.path.starts_with("/v1/") ? "/v1" : "";
    endpoint = std::string(request.headers.Get("host").value_or("")) + mount + "/sandboxes/" +
               record.id + "/proxy/" + number;
  } else if (*port == 8080) {
    endpoint = PublicHost(request) + ":8080";  // the network is the machine's
  } else {
    endpoint = PublicHost(request) + ":" + std::to_string(options_.proxy.execd_port(record)) +
               "/proxy/" + number;
  }
  ReplyJson(exchange, 200, {{"endpoint", endpoint}});
}

}  // namespace bridge::local::lifecycle
