// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/reply.h"

#include <random>
#include <utility>

namespace bridge::local::lifecycle {
namespace {

using http::Headers;

std::string NewRequestId() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  char text[33];
  snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(generator()),
           static_cast<unsigned long long>(generator()));
  return text;
}

void Append(Headers& to, const Headers& from) {
  for (const auto& [name, value] : from) to.Add(name, value);
}

void AddRequestId(http::Exchange& exchange, Headers& headers) {
  const auto given = exchange.request().headers.Get("x-request-id");
  headers.Add("x-request-id", given ? std::string(*given) : NewRequestId());
}

// The server adds "date" behind these.
void Send(http::Exchange& exchange, int status, const Headers& extra, std::string content_type,
          std::string body) {
  Headers headers = {{"server", "uvicorn"}};
  Append(headers, extra);
  if (status != 204) headers.Add("content-length", std::to_string(body.size()));
  if (!content_type.empty()) headers.Add("content-type", content_type);
  AddCommonHeaders(exchange, headers);
  (void)exchange.Respond({status, std::move(headers), std::move(body)});
}

}  // namespace

void AddCommonHeaders(http::Exchange& exchange, Headers& headers) {
  if (const auto origin = exchange.request().headers.Get("origin")) {
    headers.Add("access-control-allow-origin", *origin);
    headers.Add("access-control-allow-credentials", "true");
    headers.Add("access-control-expose-headers", "OPEN-SANDBOX-ORIGIN");
  }
  headers.Add("vary", "Origin");
  AddRequestId(exchange, headers);
}

void ReplyJson(http::Exchange& exchange, int status, const api::Json& body, const Headers& extra) {
  // Logs may hold bytes that are no UTF-8.
  Send(exchange, status, extra, "application/json",
       body.dump(-1, ' ', false, api::Json::error_handler_t::replace));
}

void ReplyText(http::Exchange& exchange, int status, std::string text, const Headers& extra) {
  Send(exchange, status, extra, "text/plain; charset=utf-8", std::move(text));
}

void ReplyEmpty(http::Exchange& exchange, int status, const Headers& extra) {
  Send(exchange, status, extra, "", "");
}

void ReplyRedirect(http::Exchange& exchange, const std::string& location) {
  Headers headers = {{"server", "uvicorn"}, {"content-length", "0"}, {"location", location}};
  AddCommonHeaders(exchange, headers);
  (void)exchange.Respond({307, std::move(headers), ""});
}

void ReplyFailure(http::Exchange& exchange, const api::Failure& failure) {
  if (!failure.body.is_null()) return ReplyJson(exchange, failure.status, failure.body);
  // An exception passes by the code that adds the other headers.
  const std::string text = "Internal Server Error";
  (void)exchange.Respond({failure.status,
                          {{"server", "uvicorn"},
                           {"content-length", std::to_string(text.size())},
                           {"content-type", "text/plain; charset=utf-8"}},
                          text});
}

void ReplyPreflight(http::Exchange& exchange) {
  Headers headers = {
      {"server", "uvicorn"},
      {"vary",
       "Origin, Access-Control-Request-Method, Access-Control-Request-Headers, "
       "Access-Control-Request-Private-Network"},
      {"access-control-allow-methods", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY"},
      {"access-control-max-age", "600"},
      {"access-control-allow-credentials", "true"}};
  headers.Add("access-control-allow-origin", exchange.request().headers.Get("origin").value_or(""));
  if (const auto wanted = exchange.request().headers.Get("access-control-request-headers")) {
    headers.Add("access-control-allow-headers", *wanted);
  }
  headers.Add("content-length", "2");
  headers.Add("content-type", "text/plain; charset=utf-8");
  AddRequestId(exchange, headers);
  (void)exchange.Respond({200, std::move(headers), "OK"});
}

}  // namespace bridge::local::lifecycle
