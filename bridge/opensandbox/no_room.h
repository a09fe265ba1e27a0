// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/no_room.h — a sandbox whose programs have taken every process, thread or byte of
// memory that it may have: nothing more can be started in it until some of them end. Any thread.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace bridge {

// Are these a daemon's words for it (Go's for EAGAIN and ENOMEM)?
bool SaysNoRoom(std::string_view words);

// QUOTA_EXCEEDED.
absl::Status NoRoomError();

}  // namespace bridge
