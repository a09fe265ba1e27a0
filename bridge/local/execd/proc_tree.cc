// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/proc_tree.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace bridge::local::execd {

std::optional<ProcStat> ParseProcStat(const std::string& text) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  ProcStat out;
  out.pid = static_cast<pid_t>(std::strtol(text.c_str(), nullptr, 10));
  out.comm = text.substr(open + 1, close - open - 1);
  // Field 3 of proc(5) and what follows it.
  std::istringstream rest(text.substr(close + 1));
  rest >> out.state >> out.ppid >> out.pgid >> out.sid;
  int64_t value = 0;
  for (int field = 7; field <= 24; ++field) {
    if (!(rest >> value)) return std::nullopt;
    if (field == 14 || field == 15) out.cpu_ticks += value;
    if (field == 20) out.threads = value;
    if (field == 22) out.start_ticks = value;
    if (field == 24) out.rss_pages = value;
  }
  return out;
}

std::optional<ProcStat> ReadProcStat(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat", std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return std::nullopt;
  return ParseProcStat(text.str());
}

std::vector<ProcStat> ReadAllProcesses() {
  std::vector<ProcStat> out;
  DIR* directory = opendir("/proc");
  if (directory == nullptr) return out;
  while (const dirent* entry = readdir(directory)) {
    char* end = nullptr;
    const long pid = std::strtol(entry->d_name, &end, 10);
    if (pid <= 0 || *end != '\0') continue;
    if (auto stat = ReadProcStat(static_cast<pid_t>(pid))) out.push_back(std::move(*stat));
  }
  closedir(directory);
  std::sort(out.begin(), out.end(),
            [](const ProcStat& a, const ProcStat& b) { return a.pid < b.pid; });
  return out;
}

std::vector<pid_t> DescendantsOf(pid_t pid) {
  const std::vector<ProcStat> all = ReadAllProcesses();
  std::set<pid_t> family = {pid};
  // Parents may have larger numbers than their children, so look again until nothing is new.
  for (size_t before = 0; before != family.size();) {
    before = family.size();
    for (const ProcStat& process : all) {
      if (family.count(process.ppid) != 0) family.insert(process.pid);
    }
  }
  std::vector<pid_t> out;
  for (const ProcStat& process : all) {
    if (process.pid != pid && process.state != 'Z' && family.count(process.pid) != 0) {
      out.push_back(process.pid);
    }
  }
  return out;
}

}  // namespace bridge::local::execd
