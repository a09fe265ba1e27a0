// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/extra_routes.h — everything of docs/execd-extras.md on a router: what it says of
// itself, execs, signals, processes, one-step writes, watches.
#pragma once

#include <string>

#include "bridge/local/execd/extra/execs.h"
#include "bridge/local/http/router.h"

namespace bridge::local::execd::extra {

// `execs` outlives the router. `compat` is the version that the stock routes imitate.
void AddExtraRoutes(http::Router& router, Execs& execs, std::string compat);

}  // namespace bridge::local::execd::extra
