// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_id.h"

#include <algorithm>

#include "bridge/base/error.h"

namespace bridge {
namespace {

bool IsPart(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

absl::Status UnknownProcess() {
  return MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND, "no process of this id");
}

std::string FormatProcessId(const ProcessKey& key) {
  return std::string(key.terminal ? "t." : "p.") + key.session + "." + key.nonce;
}

absl::StatusOr<ProcessKey> ParseProcessId(std::string_view text) {
  const size_t dot = text.rfind('.');
  if (text.size() < 5 || dot == std::string_view::npos || dot < 3) return UnknownProcess();
  const std::string_view session = text.substr(2, dot - 2);
  const std::string_view nonce = text.substr(dot + 1);
  const bool terminal = text.substr(0, 2) == "t.";
  if ((!terminal && text.substr(0, 2) != "p.") || !IsPart(session) || !IsPart(nonce)) {
    return UnknownProcess();
  }
  return ProcessKey{std::string(session), std::string(nonce), terminal};
}

}  // namespace bridge
