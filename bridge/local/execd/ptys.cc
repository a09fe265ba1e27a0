// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/ptys.h"

#include "bridge/local/execd/event.h"
#include "bridge/local/execd/file_ops.h"
#include "bridge/local/execd/go_json.h"
#include "bridge/local/execd/reply.h"
#include "bridge/local/execd/uuid.h"

namespace bridge::local::execd {
namespace {

using http::Exchange;

ApiError NotFound(const std::string& id) {
  return {404, kContextNotFound, "pty session " + id + " not found"};
}

constexpr absl::Duration kPingInterval = absl::Seconds(30);
constexpr absl::Duration kSilence = absl::Seconds(60);
constexpr absl::Duration kWriteDeadline = absl::Seconds(10);

}  // namespace

Ptys::Ptys(Processes& processes, const Commands& commands, Habits habits)
    : processes_(processes), commands_(commands), habits_(habits) {}

void Ptys::AddRoutes(http::Router& router) {
  router.Add("POST", "/pty", [this](Exchange& x) { Create(x); });
  router.Add("GET", "/pty/{id}", [this](Exchange& x) { Status(x); });
  router.Add("DELETE", "/pty/{id}", [this](Exchange& x) { Remove(x); });
  router.Add("GET", "/pty/{id}/ws", [this](Exchange& x) { Attach(x); });
}

std::shared_ptr<Pty> Ptys::Find(const std::string& id) const {
  const std::lock_guard lock(mu_);
  const auto it = ptys_.find(id);
  return it == ptys_.end() ? nullptr : it->second;
}

void Ptys::Create(Exchange& exchange) {
  const auto body = ReadBody(exchange);
  if (!body) return;
  const JsonParse parsed = ParseGoJson(*body);
  JsonFields fields(parsed.value, "CreatePTYSessionRequest", "model.CreatePTYSessionRequest");
  PtySpec spec;
  spec.id = RandomUuid();
  fields.String("cwd", &spec.cwd);
  fields.String("command", &spec.command);
  if (parsed.error != "EOF" && (!parsed.error.empty() || !fields.ok())) {
    return ReplyError(exchange, {400, kInvalidBody,
                                 "error parsing request: " +
                                     (parsed.error.empty() ? fields.error() : parsed.error)});
  }
  const std::string answer = "{\"session_id\":\"" + spec.id + "\"}";
  if (!spec.cwd.empty()) {
    std::string error;
    spec.cwd = ResolvePath(spec.cwd, &error);
    if (error.empty()) error = MakeAllDirectories(spec.cwd);
    if (!error.empty()) {
      std::string text = ErrorBody(kRuntimeError,
                                   "error creating pty session: error creating PTY session work "
                                   "directory: " +
                                       error);
      if (habits_.double_pty_error) text += answer;
      return ReplyJson(exchange, 500, std::move(text));
    }
  }
  {
    const std::lock_guard lock(mu_);
    ptys_[spec.id] = std::make_shared<Pty>(processes_, spec);
  }
  ReplyJson(exchange, 201, answer);
}

void Ptys::Status(Exchange& exchange) {
  const std::string& id = exchange.request().param("id");
  if (const auto pty = Find(id)) {
    ReplyJson(exchange, 200, pty->StatusJson());
  } else {
    ReplyError(exchange, NotFound(id));
  }
}

void Ptys::Remove(Exchange& exchange) {
  const std::string id = exchange.request().param("id");
  std::shared_ptr<Pty> pty;
  {
    const std::lock_guard lock(mu_);
    if (const auto it = ptys_.find(id); it != ptys_.end()) {
      pty = it->second;
      ptys_.erase(it);
    }
  }
  if (!pty) return ReplyError(exchange, NotFound(id));
  pty->Kill();
  ReplyEmpty(exchange);
}

void Ptys::Attach(Exchange& exchange) {
  const std::string id = exchange.request().param("id");
  const auto pty = Find(id);
  if (!pty) return ReplyError(exchange, NotFound(id));
  AttachOptions options;
  options.terminal = QueryValue(exchange, "pty").value_or("") != "0";
  options.takeover = QueryValue(exchange, "takeover").value_or("") == "1";
  options.since = JsonInteger(QueryValue(exchange, "since").value_or("")).value_or(0);
  options.ignore_sigint = habits_.idle_children_ignore_sigint && !commands_.Busy();
  if (pty->held() && !options.takeover) {
    return ReplyError(exchange, {409, kAlreadyConnected,
                                 "another client is already connected to pty session " + id});
  }
  if (!exchange.IsWebSocket()) {
    return ReplyText(exchange, 400, "text/plain; charset=utf-8", "Bad Request\n");
  }
  auto socket = exchange.AcceptWebSocket(
      {.ping_interval = kPingInterval, .idle_timeout = kSilence, .write_timeout = kWriteDeadline});
  if (socket.ok()) pty->Attach(**socket, options);
}

}  // namespace bridge::local::execd
