// SPDX-License-Identifier: Apache-2.0
//
// local/execd/session_routes.h — `/session…`.
#pragma once

#include "bridge/local/execd/sessions.h"
#include "bridge/local/http/router.h"

namespace bridge::local::execd {

// `sessions` outlives the router.
void AddSessionRoutes(http::Router& router, Sessions& sessions);

}  // namespace bridge::local::execd
