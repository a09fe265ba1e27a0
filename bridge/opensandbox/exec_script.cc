// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_script.h"

#include "bridge/base/shell.h"

namespace bridge {
namespace {

constexpr std::string_view kFolderPrefix = "/.sandbox-bridge-";

// A printf format that prints exactly these bytes, NUL included.
std::string PrintfFormat(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto u = static_cast<unsigned char>(c);
    const bool plain = (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || u == ' ' || u == '_' ||
                       u == '.' || u == '/' || u == ':' || u == ',' || u == '=' || u == '\n';
    if (plain) {
      out += c;
    } else {
      out += '\\';
      out += static_cast<char>('0' + (u >> 6));
      out += static_cast<char>('0' + ((u >> 3) & 7));
      out += static_cast<char>('0' + (u & 7));
    }
  }
  return out;
}

// Removes the oldest traces above kKeptTraces, a bounded number of them. For shells that do not
// become a command, since it uses variables. `ls` sorts by time; without it nothing is removed.
// What a pattern does not match it stands for itself, and counts as one.
std::string SweepLines(const ExecFolder& folder) {
  const std::string most = std::to_string(kTracesPerSweep);
  return "{ s=" + ShellQuote(folder.scratch()) + R"(
set -- "$s"/.sandbox-bridge-*.cut "$s"/.sandbox-bridge-*/x
k=$(($# - )" +
         std::to_string(kKeptTraces) + "))\n[ $k -le " + most + " ] || k=" + most + R"(
[ $k -le 0 ] || ls -atr "$s/" | {
  set --
  while [ $# -lt $k ] && read -r n; do
    case $n in
      .sandbox-bridge-*.cut) ;;
      .sandbox-bridge-*) [ -f "$s/$n/x" ] || continue;;
      *) continue;;
    esac
    set -- "$@" "$s/$n"
  done
  rm -rf "$@"
}; } >/dev/null 2>&1
)";
}

// Becomes the command. A shell line gets a shell of its own, the same that the daemon would take,
// so that nothing of ours is in its text, its line numbers or its variables.
std::string ExecLine(const ExecSpec& spec) {
  if (spec.argv.empty()) return "exec \"${BASH:-/bin/sh}\" -c " + ShellQuote(spec.shell) + "\n";
  std::string line = "exec";
  for (const std::string& arg : spec.argv) line += " " + ShellQuote(arg);
  return line + "\n";
}

// Ends the shell with 127 or 126 and without a word where `exec` would print into the command's
// stderr.
std::string CheckProgram(const ExecSpec& spec) {
  if (spec.argv.empty()) return "";
  const std::string program = ShellQuote(spec.argv[0]);
  if (spec.argv[0].find('/') == std::string::npos) {
    return "command -v " + program + " >/dev/null 2>&1 || exit 127\n";
  }
  return "[ -e " + program + " ] || exit 127\n[ -x " + program + " ] && [ ! -d " + program +
         " ] || exit 126\n";
}

std::string CdLine(const ExecSpec& spec, std::string_view on_failure) {
  if (spec.cwd.empty()) return "";
  // CDPATH would make `cd` print and go elsewhere; OLDPWD would be new in the environment.
  return "CDPATH= cd -- " + ShellQuote(spec.cwd) + " 2>/dev/null || { " + std::string(on_failure) +
         " }\nunset OLDPWD\n";
}

}  // namespace

ExecFolder::ExecFolder(std::string_view scratch, std::string_view nonce) {
  while (!scratch.empty() && scratch.back() == '/') scratch.remove_suffix(1);
  path_ = std::string(scratch) + std::string(kFolderPrefix) + std::string(nonce);
}

std::string PlainScript(const ExecSpec& spec) {
  const std::string cd =
      CdLine(spec, "echo 'the working directory cannot be entered' >&2; exit 126;");
  if (spec.argv.empty() && cd.empty()) return spec.shell;
  return cd + ExecLine(spec);
}

// No variable: one that the environment has, too, would be handed on to the command as it is here.
std::string RedirectScript(const ExecSpec& spec, const ExecFolder& folder, ExecPrepared prepared) {
  const std::string in = ShellQuote(folder.path());
  const std::string failed = ShellQuote(folder.failed());
  std::string script =
      (prepared.folder ? "[ -d " + in + " ]" : "mkdir -m 700 " + in + " 2>/dev/null") +
      // To append: a program that opens /dev/stderr by its name, or has the same file from
      // elsewhere, and one that does not, would overwrite each other.
      " || exit 125\nexec >>" + ShellQuote(folder.out()) + " 2>>" + ShellQuote(folder.err()) +
      " || exit 125\necho $$ >" + ShellQuote(folder.pid()) + "\n";
  if (prepared.stdin) {
    const std::string input = ShellQuote(folder.uploaded_stdin());
    script += "exec <" + input + "\nrm -f " + input + " 2>/dev/null\n";
  } else if (!spec.stdin_bytes.empty()) {
    const std::string input = ShellQuote(folder.inline_stdin());
    script += "printf " + ShellQuote(PrintfFormat(spec.stdin_bytes)) + " >" + input + "\nexec <" +
              input + "\nrm -f " + input + "\n";
  }
  // A shell that could not become the command either runs its exit trap (POSIX) or, with bash's
  // execfail, goes on behind the exec: both leave the status in "x".
  script += "[ -z \"$BASH_VERSION\" ] || shopt -s execfail\nfailed() {\necho \"$1\" >" + failed +
            "\n" + SweepLines(folder) + "}\ntrap 'failed $?' EXIT\n";
  script += CdLine(spec, "trap - EXIT; failed cwd; exit 126;");
  return script + CheckProgram(spec) + ExecLine(spec) +
         "set -- $?\ntrap - EXIT\nfailed $1\nexit $1\n";
}

std::string SignalScript(const ExecFolder& folder, int signal) {
  const std::string no_record = "exit " + std::to_string(kSignalNoRecord);
  // No "--" before the group's number: dash and busybox do not take it.
  return "{ read -r p <" + ShellQuote(folder.pid()) + "; } 2>/dev/null || " + no_record +
         "\ncase $p in ''|*[!0-9]*|1) " + no_record + ";; esac\n" +
         // Before the signal, or the command's end could be seen without its reason.
         "mkdir " + ShellQuote(folder.sent(signal)) + " 2>/dev/null\nkill -" +
         std::to_string(signal) + " \"-$p\" 2>/dev/null\nc=$?\n" + SweepLines(folder) +
         "[ $c = 0 ] || exit " + std::to_string(kSignalNoGroup) + "\n";
}

Outcome OutcomeOfFailedStart(std::string_view marker) {
  using Kind = SpawnFailed::Kind;
  while (!marker.empty() && marker.back() == '\n') marker.remove_suffix(1);
  if (marker == "cwd") return SpawnFailed{Kind::kBadCwd, "the working directory cannot be entered"};
  if (marker == "127") return SpawnFailed{Kind::kNotFound, "no such program"};
  if (marker == "126") return SpawnFailed{Kind::kNotExecutable, "the program cannot be executed"};
  return SpawnFailed{Kind::kOther, "the shell could not become the command"};
}

}  // namespace bridge
