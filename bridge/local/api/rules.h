// SPDX-License-Identifier: Apache-2.0
//
// local/api/rules.h — the small grammars of the lifecycle API: label names and values, resource
// quantities, times, image references. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "bridge/local/api/failure.h"

namespace bridge::local::api {

inline constexpr std::string_view kReservedPrefix = "opensandbox.io/";

// Kubernetes label rules. What is wrong with the first bad entry, or nothing. (An entry with a
// reserved prefix is refused too, in the words of a create request.)
std::optional<Failure> CheckLabels(const std::map<std::string, std::string>& labels);
bool IsLabelKey(std::string_view key);
bool IsLabelValue(std::string_view value);
// ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$
bool IsDnsLabel(std::string_view name);
inline constexpr std::string_view kDnsLabelPattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

// "500m", "0.25", "2" → thousandths of a CPU. Nothing when malformed or not positive.
std::optional<int64_t> ParseCpuMillis(std::string_view text);
// "512Mi", "256M", "268435456" → bytes. Whole numbers only, as the real server has it.
std::optional<int64_t> ParseMemoryBytes(std::string_view text);

// Could this name an image? "BAD IMAGE" and 5000 letters could not.
bool IsImageReference(std::string_view uri);

// "2026-11-29T16:46:38.281345Z", and without a fraction where it is zero.
std::string FormatTime(absl::Time time);
// Docker's form: as many digits of the fraction as are needed, up to nine.
std::string FormatDockerTime(absl::Time time);
// Docker's form in logs: always nine.
std::string FormatLogTime(absl::Time time);

// A point in time as the real server takes it: ISO 8601 with or without a zone (UTC then), or Unix
// seconds as a number. What is wrong goes to `errors`.
std::optional<absl::Time> ParseTimeField(const Json& value, const Json& loc,
                                         ValidationErrors& errors);

// "10m", "1h", "30s" or ISO time: how far back logs should go. Nothing when it is neither.
std::optional<absl::Time> ParseSince(std::string_view text, absl::Time now);

// A query such as "team=core&run=7" (the value of the list's `metadata` parameter).
std::optional<Failure> ParseMetadataFilter(std::string_view text,
                                           std::map<std::string, std::string>* filter);

}  // namespace bridge::local::api
