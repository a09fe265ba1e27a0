// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/signal_names.h"

#include <charconv>

namespace bridge {
namespace {

// Real-time signals as the C libraries of Linux number them for programs: the kernel's 32 and 33
// belong to the thread library and have no portable name.
constexpr int kRtMin = 34;
constexpr int kRtMax = 64;
constexpr std::string_view kPrefix = "SIG";

constexpr std::string_view kNames[] = {
    "",     "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
    "SEGV", "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
    "TTOU", "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "IO",   "PWR",  "SYS",
};

struct Alias {
  std::string_view name;
  int number;
};
constexpr Alias kAliases[] = {{"IOT", 6}, {"CLD", 17}, {"POLL", 29}, {"UNUSED", 31}};

// "+3" → 3, "" → 0.
std::optional<int> Offset(std::string_view text, char sign) {
  if (text.empty()) return 0;
  if (text.front() != sign || text.size() < 2) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<int> RealTime(std::string_view name) {
  std::optional<int> number;
  if (name.substr(0, 5) == "RTMIN") {
    number = Offset(name.substr(5), '+');
    if (number) *number += kRtMin;
  } else if (name.substr(0, 5) == "RTMAX") {
    number = Offset(name.substr(5), '-');
    if (number) *number = kRtMax - *number;
  }
  if (number && (*number < kRtMin || *number > kRtMax)) return std::nullopt;
  return number;
}

}  // namespace

std::optional<int> SignalNumber(std::string_view name) {
  if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
  if (name.empty()) return std::nullopt;
  for (size_t i = 1; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<int>(i);
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.number;
  }
  return RealTime(name);
}

std::string SignalName(int number) {
  if (number < 1 || number > kMaxSignal) return "";
  if (number < static_cast<int>(std::size(kNames))) {
    return std::string(kPrefix) + std::string(kNames[number]);
  }
  if (number < kRtMin) return "SIG" + std::to_string(number);
  if (number == kRtMin) return "SIGRTMIN";
  if (number == kRtMax) return "SIGRTMAX";
  return "SIGRTMIN+" + std::to_string(number - kRtMin);
}

}  // namespace bridge
