// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

extern char** environ;

namespace bridge::local::execd {
namespace {

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool IsName(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name) {
    const bool ok =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!ok) return false;
  }
  return true;
}

bool IsExecutableFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

}  // namespace

EnvMap ParseEnvFile(std::string_view text) {
  EnvMap out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    const std::string_view name = Trim(line.substr(0, equals));
    if (!IsName(name)) continue;
    std::string_view value = Trim(line.substr(equals + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front()) {
      value = value.substr(1, value.size() - 2);
    }
    out[std::string(name)] = std::string(value);
  }
  return out;
}

EnvMap OwnEnvironment() {
  EnvMap out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=', 1);
    if (equals == std::string_view::npos) continue;
    out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

EnvMap BaseEnvironment() {
  EnvMap env = OwnEnvironment();
  const auto file = env.find("EXECD_ENVS");
  if (file == env.end() || file->second.empty()) return env;
  std::ifstream in(file->second, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return env;
  for (auto& [name, value] : ParseEnvFile(text.str())) env[name] = value;
  return env;
}

std::vector<std::string> EnvList(const EnvMap& env) {
  std::vector<std::string> out;
  out.reserve(env.size());
  for (const auto& [name, value] : env) out.push_back(name + "=" + value);
  return out;
}

std::optional<std::string> LookPath(std::string_view name, std::string_view path) {
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string_view::npos) return std::string(name);
  while (true) {
    const size_t end = path.find(':');
    std::string candidate(path.substr(0, end));
    candidate.append(candidate.empty() ? "./" : "/").append(name);
    if (IsExecutableFile(candidate)) return candidate;
    if (end == std::string_view::npos) return std::nullopt;
    path.remove_prefix(end + 1);
  }
}

Shell FindShell() {
  const char* own = getenv("PATH");
  const std::string_view path = own != nullptr ? std::string_view(own) : kDefaultPath;
  if (const auto bash = LookPath("bash", path)) return {*bash, "bash"};
  return {LookPath("sh", path).value_or("/bin/sh"), "sh"};
}

}  // namespace bridge::local::execd
