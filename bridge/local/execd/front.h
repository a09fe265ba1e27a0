// SPDX-License-Identifier: Apache-2.0
//
// local/execd/front.h — what execd does to a request before any route sees it: the Host header, the
// trailing slash, the access token, the unknown route. Any thread.
#pragma once

#include <string>

#include "bridge/local/http/router.h"

namespace bridge::local::execd {

struct Front {
  std::string access_token;  // empty: none is asked for
  bool open_ping = false;    // `GET /ping` needs none

  // True: it has answered. The router has no fallback then to be asked: what it does not know is a
  // 404 in plain text, also a wrong method.
  bool Handle(http::Exchange& exchange, const http::Router& router) const;
};

}  // namespace bridge::local::execd
