// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/process_list.h — `GET /v1/processes` and `POST /v1/signal` (docs/execd-extras.md).
// Reads /proc anew for each call; any thread.
#pragma once

#include "bridge/local/http/router.h"

namespace bridge::local::execd::extra {

void AddProcessRoutes(http::Router& router);

}  // namespace bridge::local::execd::extra
