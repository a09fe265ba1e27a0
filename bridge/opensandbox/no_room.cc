// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/no_room.h"

#include "bridge/base/error.h"

namespace bridge {

// At the end: what stands before may quote a command.
bool SaysNoRoom(std::string_view words) {
  return words.ends_with("resource temporarily unavailable") ||
         words.ends_with("cannot allocate memory");
}

absl::Status NoRoomError() {
  return MakeError(ErrorReason::ERROR_REASON_QUOTA_EXCEEDED,
                   "the sandbox has no room for another command: it holds as many processes or as "
                   "much memory, or its daemon runs as many commands, as it may; end some of them");
}

}  // namespace bridge
