// SPDX-License-Identifier: Apache-2.0
//
// cli/failure.h — what went wrong, in two lines: what happened, and what to do about it.
//
// A failure comes from the bridge (reason, message and details of errors.proto, advice from the one
// catalogue), from the way to the bridge, or from sbx itself. The last two use reasons of their
// own:
//   BRIDGE_UNREACHABLE  no connection        BAD_SETTING  address, token or CA file
//   USAGE               the command line     LOCAL        something on this machine
// Pure values, any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"

namespace bridge::cli {

struct Failure {
  std::string reason;
  std::string message;
  std::string advice;  // one or more sentences; never empty
  std::map<std::string, std::string> metadata = {};
  std::optional<double> retry_after_seconds = {};
  bool retryable = false;
};

// `where` is the bridge's address, for when it cannot be reached. `status` must not be OK.
Failure FailureOf(const grpc::Status& status, std::string_view where);

Failure UsageFailure(std::string_view command, std::string_view message);
Failure UsageFailure(std::string_view command, const absl::Status& status);
Failure SettingFailure(const absl::Status& status);
Failure LocalFailure(std::string_view message, std::string_view advice);
Failure LocalFailure(const absl::Status& status, std::string_view advice);

// "sbx: REASON: message\n     advice\n", without control characters from afar.
std::string FailureText(const Failure& failure);

// {"error":{…}} on one line.
std::string FailureJson(const Failure& failure);

}  // namespace bridge::cli
