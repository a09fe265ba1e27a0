// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/reply.h — answers with the headers that the real lifecycle server sends, in its
// order. One thread for each exchange.
#pragma once

#include <string>
#include <string_view>

#include "bridge/local/api/failure.h"
#include "bridge/local/http/exchange.h"

namespace bridge::local::lifecycle {

void ReplyJson(http::Exchange& exchange, int status, const api::Json& body,
               const http::Headers& extra = {});
void ReplyText(http::Exchange& exchange, int status, std::string text,
               const http::Headers& extra = {});
// No body: with Content-Length 0, or without it for 204.
void ReplyEmpty(http::Exchange& exchange, int status, const http::Headers& extra = {});
void ReplyFailure(http::Exchange& exchange, const api::Failure& failure);
// 307
void ReplyRedirect(http::Exchange& exchange, const std::string& location);
// To a CORS preflight, which needs no key.
void ReplyPreflight(http::Exchange& exchange);

// Of every answer, behind the content headers: CORS, Vary and X-Request-ID.
void AddCommonHeaders(http::Exchange& exchange, http::Headers& headers);

}  // namespace bridge::local::lifecycle
