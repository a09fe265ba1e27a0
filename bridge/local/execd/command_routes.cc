// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/command_routes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "bridge/local/execd/go_json.h"
#include "bridge/local/execd/reply.h"

namespace bridge::local::execd {
namespace {

using http::Exchange;

void Run(Exchange& exchange, Commands& commands, const Habits& habits) {
  const auto body = ReadBody(exchange);
  if (!body) return;
  RunRequest request;
  if (const auto refusal = ParseRunRequest(*body, habits, &request)) {
    ReplyError(exchange, *refusal);
    return;
  }
  HttpEventStream stream(exchange);
  stream.FinishWith(request.background ? commands.RunBackground(request, stream)
                                       : commands.RunForeground(request, stream));
}

void Status(Exchange& exchange, const Commands& commands) {
  std::string json;
  if (const auto error = commands.Status(exchange.request().param("id"), &json)) {
    ReplyError(exchange, *error);
  } else {
    ReplyJson(exchange, 200, std::move(json));
  }
}

// Sends [logs.begin, logs.end) of an open file.
void SendFile(Exchange& exchange, int fd, int64_t begin, int64_t end) {
  std::string buffer;
  while (begin < end) {
    buffer.resize(static_cast<size_t>(std::min<int64_t>(end - begin, 256 * 1024)));
    const ssize_t n = pread(fd, buffer.data(), buffer.size(), begin);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // it was cut off meanwhile: the client sees an unfinished body
    if (!exchange.Write(std::string_view(buffer).substr(0, n)).ok()) return;
    begin += n;
  }
  (void)exchange.Finish();
}

void Logs(Exchange& exchange, const Commands& commands) {
  // A cursor that is no number counts as none.
  const int64_t cursor = JsonInteger(QueryValue(exchange, "cursor").value_or("")).value_or(0);
  Commands::Logs logs;
  if (const auto error = commands.OpenLogs(exchange.request().param("id"), cursor, &logs)) {
    ReplyError(exchange, *error);
    return;
  }
  http::Response head;
  head.headers.Add("Content-Type", "text/plain; charset=utf-8");
  head.headers.Add("Execd-Commands-Tail-Cursor", std::to_string(logs.end));
  const int64_t size = logs.end - logs.begin;
  if (size <= static_cast<int64_t>(kBufferBytes)) {
    head.body.resize(static_cast<size_t>(size));
    const ssize_t n = pread(logs.fd, head.body.data(), head.body.size(), logs.begin);
    head.body.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    (void)exchange.Respond(std::move(head));
  } else if (exchange.Start(std::move(head)).ok()) {
    SendFile(exchange, logs.fd, logs.begin, logs.end);
  }
  close(logs.fd);
}

void Interrupt(Exchange& exchange, Commands& commands, const CloseSession& close_session) {
  const std::string id = QueryValue(exchange, "id").value_or("");
  if (id.empty()) {
    ReplyError(exchange, MissingQuery("id"));
  } else if (close_session(id)) {
    ReplyEmpty(exchange);
  } else {
    ReplyOutcome(exchange, commands.Interrupt(id));
  }
}

// Without a language the text is a command for the shell; languages need Jupyter, which is not
// here.
void RunCode(Exchange& exchange, Commands& commands) {
  const auto body = ReadBody(exchange);
  if (!body) return;
  const JsonParse parsed = ParseGoJson(*body);
  if (!parsed.error.empty()) {
    ReplyError(exchange, {400, kInvalidBody,
                          "error parsing request, MAYBE invalid body format. " + parsed.error});
    return;
  }
  JsonFields fields(parsed.value, "RunCodeRequest", "model.RunCodeRequest");
  RunRequest request;
  std::string language;
  fields.String("code", &request.command);
  if (const JsonValue* context = fields.Find("context")) {
    JsonFields(*context, "CodeContext", "model.CodeContext").String("language", &language);
  }
  if (!fields.ok()) {
    ReplyError(exchange, {400, kInvalidBody,
                          "error parsing request, MAYBE invalid body format. " + fields.error()});
  } else if (request.command.empty()) {
    ReplyError(exchange,
               {400, kInvalidBody,
                "invalid request, validation error Key: 'RunCodeRequest.Code' Error:Field "
                "validation for 'Code' failed on the 'required' tag"});
  } else if (!language.empty()) {
    ReplyError(exchange, {500, kRuntimeError,
                          "error running codes language runtime server not configured, please "
                          "check your image runtime"});
  } else {
    request.env = BaseEnvironment();
    HttpEventStream stream(exchange);
    stream.FinishWith(commands.RunForeground(request, stream, /*linger=*/false));
  }
}

}  // namespace

void AddCommandRoutes(http::Router& router, Commands& commands, const Habits& habits,
                      CloseSession close_session) {
  const auto interrupt = [&commands, close_session](Exchange& x) {
    Interrupt(x, commands, close_session);
  };
  router.Add("POST", "/command", [&commands, habits](Exchange& x) { Run(x, commands, habits); });
  router.Add("DELETE", "/command", interrupt);
  router.Add("GET", "/command/status/{id}", [&commands](Exchange& x) { Status(x, commands); });
  router.Add("GET", "/command/{id}/logs", [&commands](Exchange& x) { Logs(x, commands); });
  router.Add("POST", "/code", [&commands](Exchange& x) { RunCode(x, commands); });
  router.Add("DELETE", "/code", interrupt);
  router.Add("GET", "/code/contexts", [](Exchange& x) { ReplyJson(x, 200, "[]"); });
  const auto no_runtime = [](Exchange& x) {
    ReplyError(x, {500, kRuntimeError,
                   "error creating code context. language runtime server not configured, please "
                   "check your image runtime"});
  };
  router.Add("POST", "/code/context", no_runtime);
  const auto no_context = [](Exchange& x) {
    ReplyError(x, {404, kContextNotFound, "context " + x.request().param("id") + " not found"});
  };
  router.Add("GET", "/code/contexts/{id}", no_context);
  router.Add("DELETE", "/code/contexts/{id}", no_context);
  router.Add("DELETE", "/code/contexts", [](Exchange& x) { ReplyEmpty(x); });
}

}  // namespace bridge::local::execd
