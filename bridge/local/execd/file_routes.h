// SPDX-License-Identifier: Apache-2.0
//
// local/execd/file_routes.h — `/files…` and `/directories…`, where wanted also below
// /v1/filesystem/{uid}/{gid}, with that user's rights.
#pragma once

#include "bridge/local/execd/habits.h"
#include "bridge/local/http/router.h"

namespace bridge::local::execd {

void AddFileRoutes(http::Router& router, const Habits& habits);

}  // namespace bridge::local::execd
