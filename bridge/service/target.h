// SPDX-License-Identifier: Apache-2.0
//
// service/target.h — the sandbox that a request means. Every request about one has the fields
// sandbox_id and expected_incarnation, in a stream those of its first message.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/sandbox_handle.h"
#include "bridge/service/validate.h"

namespace bridge {

// `within`: the path of `request` in what the caller sent ("attach.").
template <class Request>
absl::StatusOr<SandboxTarget> TargetOf(const Request& request, std::string_view within = {}) {
  const std::string path(within);
  RETURN_IF_ERROR(CheckSandboxId(request.sandbox_id(), path + "sandbox_id"));
  RETURN_IF_ERROR(CheckIncarnation(request.expected_incarnation(), path + "expected_incarnation"));
  return SandboxTarget{request.sandbox_id(), request.expected_incarnation()};
}

// A failure of a call about one sandbox names it. OK stays OK.
template <class Request>
absl::Status About(const Request& request, const absl::Status& status) {
  return status.ok() ? status : WithMetadata(status, "sandbox_id", request.sandbox_id());
}

}  // namespace bridge
