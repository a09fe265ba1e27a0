// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics: JSON when a scope is asked for, else the text of old.
#include <string>

#include "bridge/local/api/fields.h"
#include "bridge/local/api/rules.h"
#include "bridge/local/lifecycle/reply.h"
#include "bridge/local/lifecycle/service.h"
#include "bridge/local/lifecycle/views.h"

namespace bridge::local::lifecycle {
namespace {

constexpr int64_t kDefaultTail = 100;
const http::Headers kDeprecated = {{"deprecation", "true"}};

// The number of a query parameter, or its default. Answers 422 and returns nothing if it is bad.
std::optional<int64_t> Bounded(http::Exchange& exchange, const char* name, int64_t fallback,
                               int64_t most) {
  const std::optional<std::string> text = exchange.request().QueryLast(name);
  if (!text) return fallback;
  api::ValidationErrors errors;
  const std::optional<int64_t> number =
      api::LaxInt(*text, {.at_least = 1, .at_most = most}, {"query", name}, errors);
  if (!number) ReplyFailure(exchange, errors.ToFailure());
  return number;
}

Failure UnsupportedScope(const std::string& kind, const std::string& scope, const char* supported) {
  return api::CodeFailure(400, "DIAGNOSTICS_SCOPE_UNSUPPORTED",
                          "Unsupported " + kind + " diagnostics scope '" + scope +
                              "'. Supported scopes: " + supported + ", all.");
}

}  // namespace

void Service::DiagnosticsLogs(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  const std::optional<int64_t> tail = Bounded(exchange, "tail", kDefaultTail, 10000);
  if (!tail) return;
  const std::optional<std::string> scope = request.QueryLast("scope");
  if (scope && *scope != "container" && *scope != "all") {
    return ReplyFailure(exchange, UnsupportedScope("logs", *scope, "container"));
  }
  SandboxRecord record;
  if (auto failure = sandboxes_.Get(request.param("sandbox_id"), &record)) {
    return ReplyFailure(exchange, *failure);
  }
  // An unreadable `since` is ignored.
  const std::optional<absl::Time> since =
      api::ParseSince(request.QueryLast("since").value_or(""), sandboxes_.Now());
  std::string text = LogTail(sandboxes_.ReadLog(record.id), static_cast<size_t>(*tail), since);
  if (!scope) return ReplyText(exchange, 200, std::move(text), kDeprecated);
  ReplyJson(exchange, 200, DiagnosticsView(record, "logs", *scope, text));
}

void Service::DiagnosticsEvents(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  if (!Bounded(exchange, "limit", 50, 500)) return;
  const std::optional<std::string> scope = request.QueryLast("scope");
  if (scope && *scope != "runtime" && *scope != "all") {
    return ReplyFailure(exchange, UnsupportedScope("events", *scope, "runtime"));
  }
  SandboxRecord record;
  if (auto failure = sandboxes_.Get(request.param("sandbox_id"), &record)) {
    return ReplyFailure(exchange, *failure);
  }
  if (!scope) return ReplyText(exchange, 200, EventsText(record), kDeprecated);
  ReplyJson(exchange, 200, DiagnosticsView(record, "events", *scope, EventsText(record)));
}

void Service::DiagnosticsInspect(http::Exchange& exchange) {
  SandboxRecord record;
  if (auto failure = sandboxes_.Get(exchange.request().param("sandbox_id"), &record)) {
    return ReplyFailure(exchange, *failure);
  }
  ReplyText(exchange, 200, InspectText(record));
}

void Service::DiagnosticsSummary(http::Exchange& exchange) {
  const std::optional<int64_t> tail = Bounded(exchange, "tail", 50, 10000);
  if (!tail || !Bounded(exchange, "event_limit", 20, 500)) return;
  SandboxRecord record;
  if (auto failure = sandboxes_.Get(exchange.request().param("sandbox_id"), &record)) {
    return ReplyFailure(exchange, *failure);
  }
  const std::string logs =
      LogTail(sandboxes_.ReadLog(record.id), static_cast<size_t>(*tail), std::nullopt);
  ReplyText(exchange, 200, SummaryText(record, logs));
}

}  // namespace bridge::local::lifecycle
