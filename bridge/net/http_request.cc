// SPDX-License-Identifier: Apache-2.0
//
// The half of Transfer::Impl that turns an HttpRequest into options of a curl handle.
#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "bridge/base/error.h"
#include "bridge/net/http_transfer.h"
#include "bridge/net/url.h"

namespace bridge {
namespace {

constexpr long kLongUploadBuffer = 512 * 1024;
// A kept-alive connection that was idle for longer is not used for what must not be sent twice:
// servers close idle ones after 5 s and more, and a request that meets the close is lost.
constexpr long kMaxIdleSecondsOfNonRepeatable = 3;
// Longer than any task lives. curl's own default would be five minutes.
constexpr absl::Duration kForEver = absl::Hours(24 * 365);

template <class T>
void Set(void* easy, CURLoption option, T value) {
  if (curl_easy_setopt(easy, option, value) != CURLE_OK) std::abort();
}

void Append(void** list, const std::string& line) {
  curl_slist* longer = curl_slist_append(static_cast<curl_slist*>(*list), line.c_str());
  if (longer == nullptr) std::abort();  // out of memory
  *list = longer;
}

// The framing of the body is this file's business.
bool IsFramingHeader(std::string_view name) {
  return SameHeaderName(name, "Content-Length") || SameHeaderName(name, "Transfer-Encoding") ||
         SameHeaderName(name, "Expect");
}

bool IsHttpUrl(const std::string& url) {
  const std::optional<UrlParts> parts = ParseUrl(url);
  return parts && (parts->scheme == "http" || parts->scheme == "https") && !parts->host.empty();
}

}  // namespace

absl::Status Transfer::Impl::Prepare() {
  if (!IsHttpUrl(request_.url)) {
    return CurlStatus({.code = CURLE_URL_MALFORMAT, .url = request_.url});
  }
  if (!IsHeaderName(request_.method)) {
    return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT, "not a method of HTTP");
  }
  const absl::Status headers = PrepareHeaders();
  if (!headers.ok()) return headers;
  Set(easy_, CURLOPT_URL, request_.url.c_str());
  Set(easy_, CURLOPT_ERRORBUFFER, error_text_);
  Set(easy_, CURLOPT_BUFFERSIZE, static_cast<long>(request_.receive_buffer));
  // The loop's timer is the one that counts. curl divides its own among several addresses.
  const absl::Duration connect = std::min(request_.connect_timeout, kForEver);
  Set(easy_, CURLOPT_CONNECTTIMEOUT_MS,
      std::max(1L, static_cast<long>(absl::ToInt64Milliseconds(connect))));
  if (!MaySendAgain()) Set(easy_, CURLOPT_MAXAGE_CONN, kMaxIdleSecondsOfNonRepeatable);
  PrepareBody();
  PrepareCallbacks();
  return absl::OkStatus();
}

absl::Status Transfer::Impl::PrepareHeaders() {
  for (const HttpHeaders::Field& field : request_.headers) {
    if (!IsHeaderName(field.name)) {
      return MakeError(ErrorReason::ERROR_REASON_INVALID_ARGUMENT,
                       "the name of an HTTP header holds a character that cannot travel");
    }
    if (!IsHeaderValue(field.value)) {
      return MakeError(
          ErrorReason::ERROR_REASON_INVALID_ARGUMENT,
          fmt::format("the value of the HTTP header {} holds a control character", field.name));
    }
    if (IsFramingHeader(field.name)) continue;
    Append(&header_list_, field.value.empty() ? field.name + ";"  // how curl spells an empty one
                                              : fmt::format("{}: {}", field.name, field.value));
  }
  if (!request_.headers.Has("Content-Type")) Append(&header_list_, "Content-Type:");
  Append(&header_list_, "Expect:");  // no round trip for "100 Continue"
  if (request_.upload && !request_.upload_bytes) {
    Append(&header_list_, "Transfer-Encoding: chunked");
  }
  Set(easy_, CURLOPT_HTTPHEADER, static_cast<curl_slist*>(header_list_));
  return absl::OkStatus();
}

void Transfer::Impl::PrepareBody() {
  const std::string& method = request_.method;
  if (request_.upload) {
    Set(easy_, CURLOPT_POST, 1L);
    Set(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
        static_cast<curl_off_t>(request_.upload_bytes.value_or(-1)));
    Set(easy_, CURLOPT_READFUNCTION, &OnSend);
    Set(easy_, CURLOPT_READDATA, this);
    if (request_.upload_bytes.value_or(INT64_MAX) > kLongUploadBuffer / 8) {
      Set(easy_, CURLOPT_UPLOAD_BUFFERSIZE, kLongUploadBuffer);
    }
  } else if (!request_.body.empty() || method == "POST" || method == "PUT" || method == "PATCH") {
    Set(easy_, CURLOPT_POST, 1L);
    Set(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    Set(easy_, CURLOPT_POSTFIELDS, request_.body.data());  // ours, and stays where it is
  } else if (method == "HEAD") {
    Set(easy_, CURLOPT_NOBODY, 1L);
  } else {
    Set(easy_, CURLOPT_HTTPGET, 1L);
  }
  Set(easy_, CURLOPT_CUSTOMREQUEST, method.c_str());
}

void Transfer::Impl::PrepareCallbacks() {
  Set(easy_, CURLOPT_PREREQFUNCTION, &OnConnected);
  Set(easy_, CURLOPT_PREREQDATA, this);
  Set(easy_, CURLOPT_HEADERFUNCTION, &OnHeader);
  Set(easy_, CURLOPT_HEADERDATA, this);
  Set(easy_, CURLOPT_WRITEFUNCTION, &OnBody);
  Set(easy_, CURLOPT_WRITEDATA, this);
}

bool Transfer::Impl::MaySendAgain() const {
  if (request_.upload) return false;  // what was sent is gone
  if (request_.resend != Resend::kIdempotent) return request_.resend == Resend::kAlways;
  for (const std::string_view method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}) {
    if (request_.method == method) return true;
  }
  return false;
}

}  // namespace bridge
