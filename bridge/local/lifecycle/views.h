// SPDX-License-Identifier: Apache-2.0
//
// local/lifecycle/views.h — a sandbox's record as clients see it: the JSON of the API and the texts
// of the diagnostics. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "bridge/local/lifecycle/record.h"

namespace bridge::local::lifecycle {

// "Running", "Paused", "Terminated" or "Failed".
std::string_view StateOf(const SandboxRecord& record);

// The answer to GET, PATCH and (as an item) the list.
Json SandboxView(const SandboxRecord& record);
// The same with the state that a container has before it runs. For fault plans.
Json PendingView(const SandboxRecord& record);
// The answer to POST. `metadata` repeats what was sent.
Json CreatedView(const SandboxRecord& record, const Json& metadata);

Json PageView(const std::vector<Json>& items, int64_t page, int64_t page_size);

std::string EventsText(const SandboxRecord& record);
std::string InspectText(const SandboxRecord& record);
std::string SummaryText(const SandboxRecord& record, std::string_view log_tail);

// The last `tail` lines of a log, not older than `since`. Lines begin with their time.
std::string LogTail(std::string_view log, size_t tail, std::optional<absl::Time> since);

Json DiagnosticsView(const SandboxRecord& record, std::string_view kind, std::string_view scope,
                     std::string_view content);

}  // namespace bridge::local::lifecycle
