// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/flags.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "bridge/local/http/socket.h"

namespace bridge::local::execd {
namespace {

// Flags of the real daemon that change nothing here; each takes a value.
constexpr std::array<std::string_view, 3> kIgnored = {"log-level", "jupyter-host", "jupyter-token"};

std::optional<int> Number(std::string_view text, int most) {
  int out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (out < 0 || out > most) return std::nullopt;
  return out;
}

// A Go duration: "1s", "200ms", "1m30s".
bool SetLinger(std::string_view text, Flags* flags) {
  absl::Duration linger;
  if (!absl::ParseDuration(std::string(text), &linger) || linger < absl::ZeroDuration()) {
    return false;
  }
  flags->linger = linger;
  return true;
}

// False: the value makes no sense.
bool SetFlag(std::string_view name, const std::string& value, Flags* flags) {
  if (name == "port") {
    const auto port = Number(value, 65535);
    if (!port) return false;
    flags->port = flags->listen_port = *port;
  } else if (name == "access-token") {
    flags->access_token = value;
  } else if (name == "graceful-shutdown-timeout") {
    return SetLinger(value, flags);
  } else if (name == "listen") {
    const auto address = http::ParseHostPort(value);
    if (!address) return false;
    flags->host = address->host;
    flags->listen_port = address->port;
  } else if (name == "listen-fd") {
    const auto fd = Number(value, 1 << 20);
    if (!fd) return false;
    flags->listen_fd = *fd;
  } else if (name == "port-file") {
    flags->port_file = value;
  } else if (name == "extras") {
    if (value != "true" && value != "false") return false;
    flags->habits.extras = value == "true";
  } else if (name == "compat") {
    const auto habits = FindHabits(value);
    if (!habits) return false;
    const bool extras = flags->habits.extras;  // a matter of its own, in whatever order
    flags->habits = *habits;
    flags->habits.extras = extras;
  }
  return true;
}

bool IsKnown(std::string_view name) {
  for (const std::string_view known : {"port", "access-token", "graceful-shutdown-timeout",
                                       "listen", "listen-fd", "port-file", "compat", "extras"}) {
    if (name == known) return true;
  }
  for (const std::string_view ignored : kIgnored) {
    if (name == ignored) return true;
  }
  return false;
}

}  // namespace

FlagResult ParseFlags(int argc, const char* const* argv, Flags* flags) {
  if (const char* token = getenv("EXECD_ACCESS_TOKEN")) flags->access_token = token;
  if (const char* grace = getenv("EXECD_API_GRACE_SHUTDOWN")) {
    SetLinger(grace, flags);  // nonsense is ignored, as by the real daemon
  }
  // In a container nobody gives flags; a sandbox's environment chooses its daemon's habits.
  if (const char* compat = getenv("EXECD_COMPAT"); compat && !SetFlag("compat", compat, flags)) {
    return {"bad value of EXECD_COMPAT", false};
  }
  if (const char* extras = getenv("EXECD_EXTRAS"); extras && !SetFlag("extras", extras, flags)) {
    return {"bad value of EXECD_EXTRAS", false};
  }
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (!argument.starts_with('-') || argument == "-") return {"", true};
    argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    if (!IsKnown(name)) return {"unknown flag --" + std::string(name), false};
    std::string value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < argc) {
      value = argv[++i];
    } else {
      return {"--" + std::string(name) + " needs a value", false};
    }
    if (!SetFlag(name, value, flags)) {
      return {"bad value for --" + std::string(name), false};
    }
  }
  return {};
}

DaemonOptions Flags::ToOptions() const {
  DaemonOptions options;
  options.habits = habits;
  if (linger) options.habits.linger = *linger;
  options.access_token = access_token;
  options.known_port = port;
  options.server.host = host;
  options.server.port = listen_port;
  options.server.listen_fd = listen_fd;
  return options;
}

}  // namespace bridge::local::execd
