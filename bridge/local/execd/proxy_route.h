// SPDX-License-Identifier: Apache-2.0
//
// local/execd/proxy_route.h — `/proxy/{port}/…`: whatever listens on the sandbox's own loopback,
// WebSockets and this daemon itself included. Nothing is buffered.
//
// Unlike the real daemon's it keeps no connection open afterwards (that one runs out of descriptors
// after some ten thousand requests), and it does not ask for compressed answers.
#pragma once

#include <string>
#include <string_view>

#include "bridge/local/http/router.h"

namespace bridge::local::execd {

// The target that the backend gets: what follows the port, "/" at least; "%2F" is decoded, all
// other escapes and the query stay as they are.
std::string ProxyTarget(std::string_view raw_path, std::string_view raw_query);

// `own_port` stands for this daemon, wherever it listens.
void AddProxyRoute(http::Router& router, int own_port);

}  // namespace bridge::local::execd
