// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/sandbox_lister.h — pages of sandboxes, newest first, only those that match.
//
// The filter is sent upstream and checked again here. Each page of the upstream is asked for once
// while nothing changes. What is created between two pages is not seen twice; what is deleted makes
// the next page begin earlier, so that nothing is passed over. Ends whatever the upstream says.
// Loop thread only; the client outlives the task.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/call_context.h"
#include "bridge/opensandbox/labels.h"
#include "bridge/opensandbox/lifecycle_client.h"
#include "bridge/opensandbox/lifecycle_types.h"

namespace bridge {

struct SandboxFilter {
  Labels metadata = {};                   // all of these
  std::vector<SandboxState> states = {};  // any of these; none: any
  std::string request_id = {};            // empty: no condition
};

struct SandboxListRequest {
  SandboxFilter filter = {};
  int page_size = 50;
  std::string page_token = {};
  int skip = 0;  // without a token only
};

struct SandboxList {
  std::vector<SandboxRecord> sandboxes = {};
  std::string next_page_token = {};
  std::optional<int64_t> total = {};
};

// Errors: INVALID_ARGUMENT for page_token, and those of LifecycleClient::List.
Task<absl::StatusOr<SandboxList>> ListSandboxes(LifecycleClient& client, CallContext context,
                                                SandboxListRequest request);

// Memory that a record will take on the wire, about.
size_t EstimatedBytes(const SandboxRecord& record);

}  // namespace bridge
