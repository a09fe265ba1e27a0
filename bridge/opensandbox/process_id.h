// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/process_id.h — what names a process on every replica. Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace bridge {

// PROCESS_NOT_FOUND, for an id that names none.
absl::Status UnknownProcess();

// The parts of a process's id: where it is.
struct ProcessKey {
  std::string session = {};  // the daemon's
  std::string nonce = {};
  bool terminal = false;
};
std::string FormatProcessId(const ProcessKey& key);
absl::StatusOr<ProcessKey> ParseProcessId(std::string_view text);  // PROCESS_NOT_FOUND

}  // namespace bridge
