// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/bootstrap_protocol.h"

#include <cstdio>

namespace bridge::local::runtime {
namespace {

constexpr char kEnv = 'e';
constexpr char kExecd = 'x';
constexpr char kEntrypoint = 'a';

void Append(std::string& out, char kind, const std::vector<std::string>& items) {
  for (const std::string& item : items) {
    out.push_back(kind);
    out += item;
    out.push_back('\0');
  }
}

}  // namespace

std::string EncodeSpec(const BootstrapSpec& spec) {
  std::string out;
  Append(out, kEnv, spec.env);
  Append(out, kExecd, spec.execd);
  Append(out, kEntrypoint, spec.entrypoint);
  return out;
}

BootstrapSpec DecodeSpec(std::string_view bytes) {
  BootstrapSpec spec;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\0');
    if (end == std::string_view::npos || end == 0) break;
    std::string item(bytes.substr(1, end - 1));
    switch (bytes.front()) {
      case kEnv:
        spec.env.push_back(std::move(item));
        break;
      case kExecd:
        spec.execd.push_back(std::move(item));
        break;
      case kEntrypoint:
        spec.entrypoint.push_back(std::move(item));
        break;
      default:
        break;
    }
    bytes.remove_prefix(end + 1);
  }
  return spec;
}

std::string StatusLine(const ExitStatus& status) {
  char line[64];
  snprintf(line, sizeof(line), "exit %d %lld\n", status.code, status.unix_nanos);
  return line;
}

bool ParseStatusLine(std::string_view text, ExitStatus* status) {
  if (text.empty() || text.find('\n') == std::string_view::npos) return false;
  return sscanf(std::string(text).c_str(), "exit %d %lld", &status->code, &status->unix_nanos) == 2;
}

}  // namespace bridge::local::runtime
