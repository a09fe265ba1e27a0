// SPDX-License-Identifier: Apache-2.0
//
// local/execd/reply.h — answers in execd's form. Each function answers the exchange and is its last
// act; what fails because the client has gone is nobody's concern.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bridge/local/execd/api_error.h"
#include "bridge/local/execd/event_stream.h"
#include "bridge/local/http/exchange.h"

namespace bridge::local::execd {

// Longer answers travel chunked: Go's server knows the length only of what fits into its buffer.
inline constexpr size_t kBufferBytes = 2048;

// `application/json`.
void ReplyJson(http::Exchange& exchange, int status, std::string json);

void ReplyText(http::Exchange& exchange, int status, std::string_view content_type,
               std::string body);

void ReplyError(http::Exchange& exchange, const ApiError& error);

// 200, Content-Length 0.
void ReplyEmpty(http::Exchange& exchange);

// An error if there is one, else ReplyEmpty.
void ReplyOutcome(http::Exchange& exchange, const std::optional<ApiError>& error);

// The whole body, or nothing when the client went before it was here.
std::optional<std::string> ReadBody(http::Exchange& exchange);

// The value of a query parameter: the first that is well escaped (badly escaped ones are dropped,
// as Go does). An error with its name when there is none or it is empty.
std::optional<std::string> QueryValue(const http::Exchange& exchange, std::string_view name);
std::vector<std::string> QueryValues(const http::Exchange& exchange, std::string_view name);
ApiError MissingQuery(std::string_view name);

// The event stream of an exchange. The head is sent with the first event, so that an error before
// it can still be an ordinary answer. Finish() after the last.
class HttpEventStream final : public EventStream {
 public:
  explicit HttpEventStream(http::Exchange& exchange) : exchange_(exchange) {}
  bool Send(std::string_view bytes) override;
  bool Sleep(absl::Duration duration) override { return exchange_.Sleep(duration); }
  int client_fd() const override { return exchange_.fd(); }

  bool started() const { return exchange_.started(); }
  void Finish() { (void)exchange_.Finish(); }
  // Answers with `error` if nothing was sent, ends the stream otherwise.
  void FinishWith(const std::optional<ApiError>& error);

 private:
  http::Exchange& exchange_;
};

}  // namespace bridge::local::execd
