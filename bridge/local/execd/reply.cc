// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/reply.h"

#include "bridge/local/execd/event.h"

namespace bridge::local::execd {
void ReplyText(http::Exchange& exchange, int status, std::string_view content_type,
               std::string body) {
  http::Response response;
  response.status = status;
  response.headers.Add("Content-Type", content_type);
  if (body.size() <= kBufferBytes) {
    response.body = std::move(body);
    (void)exchange.Respond(std::move(response));
  } else if (exchange.Start(std::move(response)).ok() && exchange.Write(body).ok()) {
    (void)exchange.Finish();
  }
}

void ReplyJson(http::Exchange& exchange, int status, std::string json) {
  ReplyText(exchange, status, "application/json; charset=utf-8", std::move(json));
}

void ReplyError(http::Exchange& exchange, const ApiError& error) {
  ReplyJson(exchange, error.status, ErrorBody(error.code, error.message));
}

void ReplyEmpty(http::Exchange& exchange) { (void)exchange.Respond({}); }

void ReplyOutcome(http::Exchange& exchange, const std::optional<ApiError>& error) {
  if (error) {
    ReplyError(exchange, *error);
  } else {
    ReplyEmpty(exchange);
  }
}

std::optional<std::string> ReadBody(http::Exchange& exchange) {
  auto body = exchange.ReadAll();
  if (!body.ok()) return std::nullopt;
  return *std::move(body);
}

std::vector<std::string> QueryValues(const http::Exchange& exchange, std::string_view name) {
  std::vector<std::string> out;
  for (const http::QueryParam& param : exchange.request().query) {
    if (param.name == name && !param.bad_escape) out.push_back(param.value);
  }
  return out;
}

std::optional<std::string> QueryValue(const http::Exchange& exchange, std::string_view name) {
  const auto values = QueryValues(exchange, name);
  if (values.empty()) return std::nullopt;
  return values.front();
}

ApiError MissingQuery(std::string_view name) {
  return {400, kMissingQuery, "missing query parameter '" + std::string(name) + "'"};
}

bool HttpEventStream::Send(std::string_view bytes) {
  if (!exchange_.started()) {
    http::Response head;
    head.headers.Add("Cache-Control", "no-cache");
    if (!exchange_.close_after()) head.headers.Add("Connection", "keep-alive");
    head.headers.Add("Content-Type", "text/event-stream");
    head.headers.Add("X-Accel-Buffering", "no");
    if (!exchange_.Start(std::move(head)).ok()) return false;
  }
  return exchange_.Write(bytes).ok();
}

void HttpEventStream::FinishWith(const std::optional<ApiError>& error) {
  if (!error) {
    Finish();
  } else if (!started()) {
    ReplyError(exchange_, *error);
  } else {
    Send(ErrorBody(error->code, error->message));
    Finish();
  }
}

}  // namespace bridge::local::execd
