// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/isolation_script.h"

#include <algorithm>
#include <array>

#include "bridge/base/shell.h"

namespace bridge {

std::string RunMark(std::string_view nonce) { return "sandbox-bridge-run-" + std::string(nonce); }

std::string SessionScript(std::string_view script,
                          const std::vector<std::pair<std::string, std::string>>& env,
                          std::string_view mark) {
  // The session's shell would tell of a script that is killed, with its text.
  std::string text = "exec 8>&2 2>/dev/null; set -m\necho ";
  text += mark;
  text += '\n';
  for (const auto& [name, value] : env) text += name + "=" + ShellQuote(value) + " ";
  // Two of them: one becomes the last program that it runs, and the mark must not go with it. A
  // bash that is not interactive takes no notice of --rcfile.
  text += "bash --noprofile --rcfile ";
  text += mark;
  text += " -c 'bash --noprofile --norc -c \"$1\" bash 2>&8 8>&-; exit $?' bash " +
          ShellQuote(script) + " </dev/null\n";
  text += "sb_status=$?; set +m; exec 2>&8 8>&-; (exit $sb_status)\n";
  return text;
}

std::string EnterWorkspaceScript(std::string_view workspace) {
  return "cd -- " + ShellQuote(workspace) + " 2>/dev/null\n";
}

std::string KillRunScript(std::string_view mark) {
  // Brackets, so that neither this shell nor grep is found.
  const std::string pattern = std::string(mark.substr(0, mark.size() - 1)) + "[" +
                              std::string(mark.substr(mark.size() - 1)) + "]";
  return "r=3\n"
         "for f in $(grep -l '" +
         pattern +
         "' /proc/[0-9]*/cmdline 2>/dev/null); do\n"
         "  { read -r s <\"${f%cmdline}stat\"; } 2>/dev/null || continue\n"
         "  s=${s##*) }; set -- $s\n"
         "  [ \"${3:-0}\" -gt 1 ] && kill -9 \"-$3\" 2>/dev/null && r=0\n"
         "done\n"
         "exit $r\n";
}

std::string MissingDirectoriesScript(const std::vector<std::string>& paths) {
  std::string text;
  for (size_t i = 0; i < paths.size(); ++i) {
    text += "[ -d " + ShellQuote(paths[i]) + " ] || echo " + std::to_string(i) + "\n";
  }
  return text;
}

bool IsShellsOwnVariable(std::string_view name) {
  constexpr std::array<std::string_view, 6> kReadOnly = {"BASHOPTS", "BASH_VERSINFO", "EUID",
                                                         "PPID",     "SHELLOPTS",     "UID"};
  return std::find(kReadOnly.begin(), kReadOnly.end(), name) != kReadOnly.end();
}

}  // namespace bridge
