// SPDX-License-Identifier: Apache-2.0
//
// local/execd/environment.h — the environment of children: this program's own, then the file that
// EXECD_ENVS names (read anew for each child), then what the request adds. Any thread; this
// program's environment must not change after start.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bridge::local::execd {

using EnvMap = std::map<std::string, std::string>;

// Lines NAME=VALUE. Empty lines, lines that begin with "#", and anything else (also "export A=b")
// are skipped; one pair of quotes around a value is taken off.
EnvMap ParseEnvFile(std::string_view text);

// This program's environment, as it was given.
EnvMap OwnEnvironment();

// OwnEnvironment() with the EXECD_ENVS file over it.
EnvMap BaseEnvironment();

// "NAME=value" entries, sorted.
std::vector<std::string> EnvList(const EnvMap& env);

// Where a program is, as exec's lookup finds it: `name` itself when it holds a slash, else the
// first executable file of that name in `path` (the value of a PATH; an empty element is the
// working directory). Nothing when there is none.
std::optional<std::string> LookPath(std::string_view name, std::string_view path);

// bash if this program's PATH has it, else sh: the path and the name, {"/usr/bin/bash", "bash"}.
struct Shell {
  std::string path;
  std::string name;
};
Shell FindShell();

}  // namespace bridge::local::execd
