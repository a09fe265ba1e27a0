// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/call_context.h — what one downstream call brings along to every upstream request it
// causes. A plain value, copied into tasks that outlive the call (with a deadline of their own).
#pragma once

#include <string>

#include "absl/time/time.h"

namespace bridge {

struct CallContext {
  // The OpenSandbox key in force: the caller's own, else the bridge's. Empty: none. Secret. Goes to
  // the lifecycle server and to URLs on that server only, never to a direct endpoint.
  std::string api_key = {};
  // W3C trace context, passed on as it came. Empty: none.
  std::string traceparent = {};
  // Whose sandboxes the caller may see. Empty: tenants are not in use.
  std::string tenant = {};
  // Instant on the loop's clock (EventLoop::Now()) after which nobody waits for the answer.
  absl::Duration deadline = absl::InfiniteDuration();
};

}  // namespace bridge
