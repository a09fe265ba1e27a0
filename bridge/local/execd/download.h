// SPDX-License-Identifier: Apache-2.0
//
// local/execd/download.h — `GET /files/download`, its broken answers included.
#pragma once

#include <string>
#include <string_view>

#include "bridge/local/http/exchange.h"

namespace bridge::local::execd {

void Download(http::Exchange& exchange);

// `attachment; filename="name"`, with a second, escaped form for names that are not ASCII.
std::string ContentDisposition(std::string_view name);

}  // namespace bridge::local::execd
