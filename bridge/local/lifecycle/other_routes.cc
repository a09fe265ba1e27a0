// SPDX-License-Identifier: Apache-2.0
//
// Routes about the server itself, and those that only another runtime has.
#include <string>

#include "bridge/local/api/fields.h"
#include "bridge/local/api/rules.h"
#include "bridge/local/lifecycle/reply.h"
#include "bridge/local/lifecycle/service.h"

namespace bridge::local::lifecycle {
namespace {

using api::CodeFailure;
using api::Fields;
using api::Presence;
using api::ValidationErrors;

// The version whose behaviour this server has.
constexpr char kVersion[] = "1.1.1";

Failure PoolsUnsupported() {
  return CodeFailure(501, "KUBERNETES::POOL_NOT_SUPPORTED",
                     "Pool management is only available when runtime.type is 'kubernetes'.");
}

Failure TemplatesUnsupported() {
  return CodeFailure(501, "FSB::API_NOT_SUPPORTED",
                     "Template management requires the kubernetes runtime.");
}

Failure SnapshotsUnsupported() {
  return CodeFailure(501, "SNAPSHOT::NOT_IMPLEMENTED",
                     "Snapshots are not implemented by this runtime.");
}

void ReadCapacity(Fields& fields) {
  std::optional<Fields> capacity = fields.Object("capacitySpec", Presence::kRequired);
  if (!capacity) return;
  for (const char* name : {"bufferMax", "bufferMin", "poolMax", "poolMin"}) {
    capacity->Int(name, {.presence = Presence::kRequired, .at_least = 0});
  }
}

}  // namespace

void Service::Health(http::Exchange& exchange) {
  ReplyJson(exchange, 200, {{"status", "healthy"}});
}

void Service::Version(http::Exchange& exchange) {
  // The one thing that tells this server from the real one.
  const std::string level(runtime::IsolationName(sandboxes_.options().isolation));
  ReplyJson(exchange, 200, {{"version", kVersion}}, {{"local-opensandbox-isolation", level}});
}

void Service::MetricsEvent(http::Exchange& exchange) {
  Json body;
  if (!ReadBody(exchange, &body)) return;
  ValidationErrors errors;
  Fields fields(body, {"body"}, errors);
  const auto type = fields.String("eventType", {.presence = Presence::kRequired});
  if (type && *type != "sandbox.create") {
    errors.Add("literal_error", {"body", "eventType"}, "Input should be 'sandbox.create'", *type,
               {{"expected", "'sandbox.create'"}});
  }
  fields.String("sandboxId");
  fields.String("image");
  fields.Int("createDurationMs", {.presence = Presence::kRequired, .at_least = 0});
  fields.Bool("success", Presence::kRequired);
  if (!errors.empty()) return ReplyFailure(exchange, errors.ToFailure());
  ReplyEmpty(exchange, 204);
}

void Service::NetworkPolicy(http::Exchange& exchange) {
  SandboxRecord record;
  if (auto failure = sandboxes_.Get(exchange.request().param("sandbox_id"), &record)) {
    return ReplyFailure(exchange, *failure);
  }
  // No sandbox here has the sidecar that would answer.
  ReplyFailure(exchange, CodeFailure(502, "BACKEND_CONNECTION_FAILED",
                                     "Could not connect to the backend sandbox 127.0.0.1:18080: "
                                     "All connection attempts failed"));
}

void Service::CreateSnapshot(http::Exchange& exchange) {
  SandboxRecord record;
  if (auto failure = sandboxes_.Get(exchange.request().param("sandbox_id"), &record)) {
    return ReplyFailure(exchange, *failure);
  }
  NoSnapshots(exchange);
}

void Service::NoSnapshots(http::Exchange& exchange) {
  ReplyFailure(exchange, SnapshotsUnsupported());
}

void Service::CreatePool(http::Exchange& exchange) {
  Json body;
  if (!ReadBody(exchange, &body)) return;
  ValidationErrors errors;
  Fields fields(body, {"body"}, errors);
  fields.String("name", {.presence = Presence::kRequired,
                         .max_length = 253,
                         .matches = api::IsDnsLabel,
                         .pattern = api::kDnsLabelPattern});
  fields.AnyObject("template", Presence::kRequired);
  ReadCapacity(fields);
  ReplyFailure(exchange, errors.empty() ? PoolsUnsupported() : errors.ToFailure());
}

void Service::UpdatePool(http::Exchange& exchange) {
  Json body;
  if (!ReadBody(exchange, &body)) return;
  ValidationErrors errors;
  Fields fields(body, {"body"}, errors);
  ReadCapacity(fields);
  ReplyFailure(exchange, errors.empty() ? PoolsUnsupported() : errors.ToFailure());
}

void Service::NoPools(http::Exchange& exchange) { ReplyFailure(exchange, PoolsUnsupported()); }

void Service::CreateTemplate(http::Exchange& exchange) {
  Json body;
  if (!ReadBody(exchange, &body)) return;
  ValidationErrors errors;
  Fields fields(body, {"body"}, errors);
  fields.String("image", {.presence = Presence::kRequired, .min_length = 1});
  fields.StringMap("resourceLimits");
  fields.StringList("entrypoint", 1);
  fields.StringMap("env");
  fields.StringMap("metadata");
  fields.String("publish", {.presence = Presence::kRequired, .min_length = 1});
  ReplyFailure(exchange, errors.empty() ? TemplatesUnsupported() : errors.ToFailure());
}

void Service::NoTemplates(http::Exchange& exchange) {
  ReplyFailure(exchange, TemplatesUnsupported());
}

}  // namespace bridge::local::lifecycle
