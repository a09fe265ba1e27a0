// SPDX-License-Identifier: Apache-2.0
//
// base/signal_names.h — the signals of Linux by number and by name. The numbers are those of x86-64
// and arm64, where OpenSandbox runs, whatever the bridge itself was compiled for. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bridge {

inline constexpr int kMaxSignal = 64;

// "TERM" or "SIGTERM" → 15; "RTMIN+3" → 37, "RTMAX" → 64. Upper case only; nothing for anything
// else.
std::optional<int> SignalNumber(std::string_view name);

// 15 → "SIGTERM", 37 → "SIGRTMIN+3". Empty for what is no signal (0, 65, -1).
std::string SignalName(int number);

}  // namespace bridge
