// SPDX-License-Identifier: Apache-2.0
//
// epp/errors.h — failures as EPP/1 says them: from the bridge's reasons, by one table.
//
// The plugin fails with absl::Status values like the rest of the product; here, and nowhere else,
// they become JSON-RPC errors. What only the protocol knows (a method that does not exist, a line
// that is no JSON) is made by ProtocolError() and passes through unchanged.
//
// Pure values: any thread.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "sandbox/bridge/v1/errors.pb.h"

namespace bridge::epp {

using sandbox::bridge::v1::ErrorReason;

// JSON-RPC's own codes, and EPP/1's.
inline constexpr int kParseError = -32700;
inline constexpr int kInvalidRequest = -32600;
inline constexpr int kMethodNotFound = -32601;
inline constexpr int kInvalidParams = -32602;
inline constexpr int kProviderError = -32000;
inline constexpr int kAuthenticationError = -32001;
inline constexpr int kNotFound = -32002;
inline constexpr int kUnsupported = -32003;
inline constexpr int kQuota = -32004;
inline constexpr int kTimeout = -32005;
inline constexpr int kConfigError = -32006;

struct EppError {
  int code = kProviderError;
  std::string message = {};
  std::string sdk_code = {};    // "E2009"; empty: the code's own class
  std::string suggestion = {};  // shown in place of the host's built-in hint
  std::string feature = {};     // for kUnsupported
};

struct EppErrorRow {
  ErrorReason reason;
  int code;
  std::string_view sdk_code;
  // What the user of an SDK can do. Empty: the catalogue's advice serves.
  std::string_view suggestion;
  // It is about settings of the plugin's own bridge, which one that runs elsewhere does not have.
  bool of_own_bridge = false;
};

// One row a reason, in the order of errors.proto.
absl::Span<const EppErrorRow> EppErrorTable();
const EppErrorRow& EppErrorRowOf(ErrorReason reason);

// `status` must not be OK.
EppError ToEppError(const absl::Status& status);

// The same failure, told by a bridge that runs elsewhere. OK stays OK.
absl::Status ByRemoteBridge(absl::Status status);
// That bridge itself could not be reached.
absl::Status RemoteBridgeUnreachable(std::string_view message);

// An error with a JSON-RPC code of its own.
absl::Status ProtocolError(int code, std::string_view message);

// E8004: `feature` is the word that the host prints, "process.stdin".
absl::Status Unsupported(std::string_view feature, std::string_view message);

// An answer that does not fit into one line. `size` may be -1: unknown.
absl::Status TooLarge(std::string_view what, int64_t size, int64_t limit, std::string_view way_out);

// Is this how the bridge says that no such sandbox exists? An id of a form that no sandbox has
// counts: the caller has it from somewhere, and it names nothing.
bool IsUnknownSandbox(const absl::Status& status);
absl::Status UnknownSandbox(std::string_view sandbox_id);

}  // namespace bridge::epp
