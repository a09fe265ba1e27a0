// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/lifecycle_types.h"

#include "bridge/base/ascii.h"
#include "bridge/opensandbox/timestamps.h"

namespace bridge {
namespace {

struct StateWord {
  SandboxState state;
  std::string_view text;
};
constexpr StateWord kStates[] = {
    {SandboxState::kPending, "Pending"},       {SandboxState::kRunning, "Running"},
    {SandboxState::kPausing, "Pausing"},       {SandboxState::kPaused, "Paused"},
    {SandboxState::kResuming, "Resuming"},     {SandboxState::kStopping, "Stopping"},
    {SandboxState::kTerminated, "Terminated"}, {SandboxState::kFailed, "Failed"},
};

struct SnapshotWord {
  SnapshotState state;
  std::string_view text;
};
constexpr SnapshotWord kSnapshotStates[] = {
    {SnapshotState::kCreating, "Creating"},
    {SnapshotState::kReady, "Ready"},
    {SnapshotState::kFailed, "Failed"},
    {SnapshotState::kDeleting, "Deleting"},
};

}  // namespace

SandboxState ParseSandboxState(std::string_view text) {
  for (const StateWord& word : kStates) {
    if (EqualsIgnoreCase(word.text, text)) return word.state;
  }
  return SandboxState::kUnknown;
}

std::string_view SandboxStateText(SandboxState state) {
  for (const StateWord& word : kStates) {
    if (word.state == state) return word.text;
  }
  return "";
}

bool IsFinal(SandboxState state) {
  return state == SandboxState::kTerminated || state == SandboxState::kFailed;
}

SnapshotState ParseSnapshotState(std::string_view text) {
  for (const SnapshotWord& word : kSnapshotStates) {
    if (EqualsIgnoreCase(word.text, text)) return word.state;
  }
  return SnapshotState::kUnknown;
}

std::string IncarnationOf(const SandboxRecord& record) {
  return record.created_at ? FormatTimestamp(*record.created_at) : "0";
}

}  // namespace bridge
