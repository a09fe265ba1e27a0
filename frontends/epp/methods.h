// SPDX-License-Identifier: Apache-2.0
//
// epp/methods.h — the methods of EPP/1 that the plugin answers: one table. `initialize` and
// `shutdown` are the session's own.
#pragma once

#include <string_view>

#include "absl/types/span.h"
#include "bridge/net/task.h"
#include "frontends/epp/call.h"

namespace bridge::epp {

// What becomes of a call when the conversation ends.
enum class AtEnd {
  kCancel,  // at once: it waits, streams, or must be undone
  kFinish,  // it is short and changes something: it may end by itself
};

struct MethodEntry {
  std::string_view name;
  AtEnd at_end;
  // Answers the call, and may go on afterwards.
  Task<void> (*run)(Call& call);
};

// Null when there is none.
const MethodEntry* FindMethod(std::string_view name);
absl::Span<const MethodEntry> AllMethods();

}  // namespace bridge::epp
