// SPDX-License-Identifier: Apache-2.0
//
// Answers of a real lifecycle server 1.1.1 (Docker runtime) and a June execd, by the name of their
// recording in tests/testdata/recordings. Complete ones only.
#pragma once

#include <string_view>

#include "bridge/net/http.h"

namespace bridge {

// Ends the process when there is no such recording, or it was cut.
const HttpResponse& Recorded(std::string_view name);

}  // namespace bridge
