// SPDX-License-Identifier: Apache-2.0
#include "bridge/net/http.h"

#include <utility>

#include "bridge/net/curl_engine.h"
#include "bridge/net/http_transfer.h"

namespace bridge {

HttpClient::HttpClient(EventLoop& loop, HttpClientOptions options)
    : loop_(loop), engine_(std::make_unique<CurlEngine>(loop, std::move(options))) {}

HttpClient::~HttpClient() = default;

Transfer::Transfer(HttpClient& client, HttpRequest request)
    : impl_(std::make_unique<Impl>(client, std::move(request))) {}

Transfer::~Transfer() = default;

Task<absl::StatusOr<HttpHead>> Transfer::Head() { return impl_->Head(); }

Task<bool> Transfer::Read(std::string* chunk) { return impl_->Read(chunk); }

Task<absl::StatusOr<std::string>> Transfer::ReadAll(size_t limit) { return impl_->ReadAll(limit); }

Task<bool> Transfer::Send(std::string_view bytes) {
  return impl_->SendParts(std::vector<std::string_view>(1, bytes));
}

Task<bool> Transfer::SendParts(std::vector<std::string_view> parts) {
  return impl_->SendParts(std::move(parts));
}

void Transfer::CloseSend() { impl_->CloseSend(); }

bool Transfer::done() const { return impl_->done(); }

absl::Status Transfer::result() const { return impl_->result(); }

HttpResponse AnswerOf(HttpHead head) {
  return {.status = head.status, .headers = std::move(head.headers), .host = std::move(head.host)};
}

Task<absl::StatusOr<HttpResponse>> Fetch(HttpClient& client, HttpRequest request,
                                         size_t max_body_bytes) {
  Transfer transfer(client, std::move(request));
  absl::StatusOr<std::string> body = co_await transfer.ReadAll(max_body_bytes);
  if (!body.ok()) co_return std::move(body).status();
  absl::StatusOr<HttpHead> head = co_await transfer.Head();
  if (!head.ok()) co_return std::move(head).status();
  HttpResponse response = AnswerOf(*std::move(head));
  response.body = *std::move(body);
  co_return response;
}

}  // namespace bridge
