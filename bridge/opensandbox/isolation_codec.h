// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/isolation_codec.h — execd's isolated sessions (/v1/isolated): JSON ↔ values.
// A daemon shows a workspace where it lies and nowhere else; one that shall be seen under another
// path gets a bind beside it, from which the path is read back. Pure; nothing throws; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/opensandbox/isolation_types.h"

namespace bridge {

// The body of POST /v1/isolated/session. Idle times are whole seconds, rounded up.
std::string OpenSessionJson(const IsolatedSessionSpec& spec);
// Its answer. Errors of all parsers: UPSTREAM_PROTOCOL.
absl::StatusOr<IsolatedSession> ParseOpenedSession(std::string_view json);

// GET /v1/isolated/sessions.
absl::StatusOr<std::vector<IsolatedSession>> ParseSessionList(std::string_view json);
// GET /v1/isolated/session/{id}: fills in all but the id.
absl::Status ParseSessionState(std::string_view json, IsolatedSession* session);

// GET /v1/isolated/capabilities.
absl::StatusOr<IsolationInfo> ParseIsolation(std::string_view json);

// The body of POST /v1/isolated/session/{id}/run.
std::string SessionRunJson(std::string_view code);

}  // namespace bridge
