// SPDX-License-Identifier: Apache-2.0
//
// local/execd/command_routes.h — `/command…` and, as far as it goes without Jupyter, `/code…`.
#pragma once

#include <functional>

#include "bridge/local/execd/commands.h"
#include "bridge/local/http/router.h"

namespace bridge::local::execd {

// Closes the session of that id; false when there is none. `DELETE /command` tries it first.
using CloseSession = std::function<bool(const std::string& id)>;

// Both outlive the router.
void AddCommandRoutes(http::Router& router, Commands& commands, const Habits& habits,
                      CloseSession close_session);

}  // namespace bridge::local::execd
