// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/pty_frames.h"

#include <signal.h>

#include <array>
#include <utility>

#include "bridge/local/execd/go_text.h"

namespace bridge::local::execd {

std::string PtyErrorFrame(std::string_view message, std::string_view code) {
  std::string out = "{\"type\":\"error\",\"error\":";
  AppendGoJsonString(out, message);
  out += ",\"code\":";
  AppendGoJsonString(out, code);
  return out + "}\n";
}

std::string PtyReplayFrame(int64_t offset, std::string_view bytes) {
  std::string out(1, kReplayTag);
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(offset >> shift);
  return out.append(bytes);
}

int PtySignalNumber(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, int>, 5> kSignals = {
      {{"SIGINT", SIGINT},
       {"SIGTERM", SIGTERM},
       {"SIGKILL", SIGKILL},
       {"SIGQUIT", SIGQUIT},
       {"SIGHUP", SIGHUP}}};
  for (const auto& [known, number] : kSignals) {
    if (name == known) return number;
  }
  return 0;
}

}  // namespace bridge::local::execd
