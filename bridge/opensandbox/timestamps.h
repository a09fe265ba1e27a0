// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/timestamps.h — instants as OpenSandbox and HTTP write them. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace bridge {

// RFC 3339 as servers really write it: any number of fraction digits, "Z", "z" or an offset with or
// without a colon, "T", "t" or a blank in the middle, and no zone at all (then it is UTC).
std::optional<absl::Time> ParseTimestamp(std::string_view text);

// "2026-11-29T17:46:39.250Z": UTC, no more digits than needed, at most microseconds.
std::string FormatTimestamp(absl::Time time);

// "Sun, 29 Nov 2026 16:46:35 GMT": the one form that HTTP allows to send.
std::optional<absl::Time> ParseHttpDate(std::string_view text);

// A Retry-After header: seconds, or a date, which counts from `server_now` (the Date header of the
// same answer; the two clocks must be the same). Never negative. Nothing for what is neither.
std::optional<absl::Duration> ParseRetryAfter(std::string_view text,
                                              std::optional<absl::Time> server_now);

}  // namespace bridge
