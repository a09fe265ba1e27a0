// SPDX-License-Identifier: Apache-2.0
//
// cli/text.h — durations, times and tables for people; text from afar made harmless for a terminal.
// Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sandbox/bridge/v1/common.pb.h"

namespace bridge::cli {

// "30s", "1.5h", "1h30m", "250ms"; a bare number means seconds. Positive, at most ten years.
absl::StatusOr<absl::Duration> ParseDuration(std::string_view text);

// "250ms", "1.5s", "3m10s", "2h", "5d": at most two units.
std::string DurationText(double seconds);

// Control characters and bytes that are not UTF-8 as "\x1b"; a line end as "\n" written out. What
// a server says must not move the cursor of the person who reads it.
std::string Printable(std::string_view text);

// Columns two spaces apart, each as wide as its widest cell; the last one is not padded.
std::string Table(const std::vector<std::vector<std::string>>& rows);

// What a command did: "ended with exit code 3", "was killed by SIGKILL", "could not be started: no
// such program".
std::string OutcomeText(const sandbox::bridge::v1::Outcome& outcome);

// Of a command that ended with its output still open (ExecEvent.Drained.still_open).
inline constexpr std::string_view kStillOpenNote =
    "a process that the command left behind may print more, which is not shown";

// The exit code that a shell would see; see exit_code.h.
int OutcomeExitCode(const sandbox::bridge::v1::Outcome& outcome);

}  // namespace bridge::cli
