// SPDX-License-Identifier: Apache-2.0
//
// base/error_catalog.h — the one table of failures: reason → code, fault, retry, advice.
// docs/errors.md is generated from it; the frontends render the same reasons.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "sandbox/bridge/v1/errors.pb.h"

namespace bridge {

using sandbox::bridge::v1::ErrorReason;

// Whose doing it is, and so who can mend it.
enum class Fault { kCaller, kSandbox, kUpstream, kBridge };

struct CatalogEntry {
  ErrorReason reason;
  absl::StatusCode code;  // the same numbers as gRPC's
  Fault fault;
  bool retryable;           // the same call may succeed later, unchanged
  std::string_view advice;  // one line: what to do
};

// All entries in the order of errors.proto, without _UNSPECIFIED.
absl::Span<const CatalogEntry> ErrorCatalog();

// The entry of a reason; INTERNAL's for a reason that is not in the table.
const CatalogEntry& CatalogEntryOf(ErrorReason reason);

std::string_view FaultName(Fault fault);  // "CALLER"

}  // namespace bridge
