// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_script.h"

#include "bridge/base/shell.h"

namespace bridge {
namespace {

std::string Exports(const ProcessSpec& spec, const StockUser& user) {
  std::string script;
  const auto add = [&script](const std::string& name, const std::string& value) {
    script += "export " + name + "=" + ShellQuote(value) + "\n";
  };
  if (spec.terminal) add("TERM", "xterm-256color");
  for (const auto& [name, value] : user.env) add(name, value);
  for (const auto& [name, value] : spec.env) add(name, value);
  return script;
}

std::string Program(const ProcessSpec& spec) {
  if (!spec.argv.empty()) {
    std::string line;
    for (const std::string& arg : spec.argv) line += " " + ShellQuote(arg);
    return line;
  }
  if (!spec.shell.empty()) return " \"$BASH\" -c " + ShellQuote(spec.shell);
  return " \"$BASH\"" + std::string(spec.terminal ? " -i" : "");
}

// What the shell can tell before it becomes the program; the rest is the program's own exit status.
std::string Checks(const ProcessSpec& spec) {
  std::string script;
  if (!spec.cwd.empty()) {
    script += "  CDPATH= cd -- " + ShellQuote(spec.cwd) +
              " 2>/dev/null || { echo 124 >\"$__d/f\"; exit 124; }\n  unset OLDPWD\n";
  }
  if (spec.argv.empty()) return script;
  const std::string program = ShellQuote(spec.argv[0]);
  if (spec.argv[0].find('/') == std::string::npos) {
    return script + "  command -v " + program +
           " >/dev/null 2>&1 || { echo 127 >\"$__d/f\"; exit 127; }\n";
  }
  return script + "  [ -e " + program + " ] || { echo 127 >\"$__d/f\"; exit 127; }\n  [ -x " +
         program + " ] && [ ! -d " + program + " ] || { echo 126 >\"$__d/f\"; exit 126; }\n";
}

// Changing users needs a tool of the image; there is no other way on a terminal. Its pipes or its
// terminal become the user's, who could not open /dev/stdout by its name else.
std::string ChangeUser(const StockUser& user) {
  if (!user.uid) return "";
  const std::string uid = std::to_string(*user.uid);
  const std::string gid = user.gid ? std::to_string(*user.gid) : "";
  std::string script =
      "  for __f in 0 1 2; do if [ -p /proc/$BASHPID/fd/$__f ] || [ -t $__f ]; then\n"
      "    chown " +
      uid + " /proc/$BASHPID/fd/$__f 2>/dev/null; fi; done\n";
  script += "  if command -v setpriv >/dev/null 2>&1; then __U='setpriv --reuid=" + uid;
  script += gid.empty() ? " --regid='$(id -g " + uid + ")' --init-groups'"
                        : " --regid=" + gid + " --clear-groups'";
  script += "\n  elif command -v chroot >/dev/null 2>&1; then __U='chroot --userspec=" + uid + ":" +
            gid + " /'\n  else echo 125 >\"$__d/f\"; exit 125; fi\n";
  return script;
}

// Gives the program what the bridge sends: frames "\n=NONCE RUN LENGTH\n" and so many bytes for
// `printf %b` (pty_codec.h); a length of 0 is the end of input. What is for another run, or comes
// after the end, is thrown away. No data looks like a header, so that one who begins to read in the
// midst of a frame, because the feeder of the run before was killed there, finds the next one.
// Signals to the group are for the program.
constexpr char kFeeder[] = R"(feed() {
  trap '' HUP INT QUIT TERM USR1 USR2 ALRM TSTP TTIN TTOU PIPE
  LC_ALL=C
  while IFS=' ' read -r __k __r __c; do
    [ "$__k" = "=$__n" ] || continue
    if [ "$__c" = 0 ]; then
      [ "$__r" != "$1" ] || exec >/dev/null
    elif IFS= read -r -N "$__c" __x && [ "$__r" = "$1" ]; then
      printf %b "$__x"
    fi
  done
}
mkfifo -m 600 "$__d/i" 2>/dev/null
exec 4<&0
)";

// stat_of PID: the fields of its stat behind the name, in $t: state, parent, group, ... A name may
// hold anything, line breaks and ") " too; what is behind it cannot.
constexpr char kStatOf[] = R"(stat_of() {
  t=
  while IFS= read -r l; do t="$t$l "; done 2>/dev/null <"/proc/$1/stat"
  t=${t##*) }
}
)";

// alive FOLDER: the program's pid in $p, 0 unless it runs, its state in $a and its group in $g.
// What was killed together with its wrapper has left its pid behind, which is somebody else's by
// now or will be: a process is known by its pid and its birth.
constexpr char kAlive[] = R"(alive() {
  p=0; b=; a=-
  { [ -e "$1/p" ] && read -r p b; } 2>/dev/null <"$1/p"
  case $p in ''|*[!0-9]*|0|1) p=0; return;; esac
  stat_of "$p"
  set -- $t
  a=${1:--}; g=$3
  [ -n "$t" ] && [ "${b:-${20}}" = "${20}" ] || p=0
}
)";

// tell FOLDER: the line of RecordScript().
constexpr char kTell[] = R"(tell() {
  alive "$1"
  i=; c=; k=; v=; s=0
  [ ! -e "$1/id" ] || read -r i <"$1/id"
  [ ! -e "$1/n" ] || read -r c k v <"$1/n"
  [ ! -e "$1/s" ] || s=1
  echo "${i:--} $p $a $s ${c:-0} ${k:--} ${v:-0}"
} 2>/dev/null
)";

}  // namespace

std::string ProcessFolder(std::string_view scratch, std::string_view nonce) {
  while (!scratch.empty() && scratch.back() == '/') scratch.remove_suffix(1);
  return std::string(scratch) + "/.sandbox-bridge-p-" + std::string(nonce);
}

// The program's environment is the wrapper's, too. So its variables have names that nobody takes:
// of one that is in both, the wrapper would get the program's value or the program the wrapper's.
std::string ProcessWrapper(const ProcessSpec& spec, const StockUser& user, std::string_view folder,
                           std::string_view nonce) {
  std::string script;
  if (spec.terminal) {
    script += "stty rows " + std::to_string(spec.terminal->rows) + " cols " +
              std::to_string(spec.terminal->columns) + " 2>/dev/null\n";
  }
  script += "__d=" + ShellQuote(folder) + "\n__n=" + std::string(nonce) +
            "\nmkdir -m 711 \"$__d\" 2>/dev/null; mkfifo -m 600 \"$__d/c\" 2>/dev/null\n"
            "exec 3>&2 2>\"$__d/m\"\n"
            "trap : HUP INT QUIT TERM USR1 USR2 ALRM TSTP TTIN TTOU\n"
            // How many marks there are, and the last one, is written after they were printed, in
            // place and by one write, so that a reader finds the one or the other.
            "__N=0; [ ! -e \"$__d/n\" ] || read -r __N __s <\"$__d/n\"; __N=$((10#0$__N))\n"
            "mark() { __M=$(printf '\\036%s:%s:%03d:%06d\\036' \"$__n\" \"$1\" \"$2\" \"$__N\"); "
            "printf %s "
            "\"$__M\"";
  // Pipes are two streams, and the end of both must be known.
  if (!spec.terminal) script += "; printf %s \"$__M\" >&3";
  script +=
      "; __N=$((__N+1)); printf '%06d %s %03d\\n' \"$__N\" \"$1\" \"$2\" "
      "1<>\"$__d/n\"; }\n";
  if (!spec.terminal) script += kFeeder;
  script +=
      Exports(spec, user) +
      // What the daemon starts ignores SIGINT, and only `env` can undo that.
      "__E=\nenv --default-signal=INT true 2>/dev/null && __E='env --default-signal=INT,QUIT'\n"
      "__U=\nwhile :; do\n  : >\"$__d/m\"; rm -f \"$__d/f\" \"$__d\"/k*\n" +
      std::string(spec.terminal
                      ? ""
                      : "  feed $(((__N+1)/2)) <&4 >\"$__d/i\" 2>/dev/null 3>&- &\n  __F=$!\n") +
      "  (\n  exec 2>&3 3>&-\n" + std::string(spec.terminal ? "" : "  exec <\"$__d/i\" 4<&-\n") +
      ChangeUser(user) + Checks(spec) +
      // With its birth, the twentieth field behind the name. Whole from the moment it is there.
      "  __S=; IFS= read -r __S 2>/dev/null </proc/$BASHPID/stat; __S=(${__S##*) })\n"
      "  echo \"$BASHPID ${__S[19]}\" >\"$__d/s\"\n"
      "  ln -f \"$__d/s\" \"$__d/p\" 2>/dev/null || cp \"$__d/s\" \"$__d/p\"\n  exec $__E $__U" +
      Program(spec) +
      "\n  )\n  __s=$?\n  rm -f \"$__d/p\"\n"
      "  [ -e \"$__d/s\" ] || echo 0 >\"$__d/s\"\n" +
      // Lets the daemon empty both pipes first, so that the marks come last in its numbering.
      std::string(spec.terminal ? "" : "  sleep 0.03 2>/dev/null\n") +
      "  if [ -e \"$__d/f\" ]; then mark f \"$__s\"\n"
      "  elif [ \"$__s\" -gt 128 ] && [ -s \"$__d/m\" ]; then\n"
      "    __k=s; [ ! -e \"$__d/k$((__s-128))\" ] || __k=c\n    mark $__k $((__s-128))\n"
      "  else mark e \"$__s\"; fi\n" +
      // Not before: its end would be told where the program's is.
      std::string(spec.terminal ? "" : "  kill -9 \"$__F\" 2>/dev/null; wait \"$__F\"\n") +
      "  __a=; while [ \"$__a\" != \"r$__N\" ]; do read -r __a <\"$__d/c\" || sleep 1; done\n"
      "  mark r 0\ndone\n";
  return script;
}

std::string RegisterScript(std::string_view folder, std::string_view process_id) {
  return "d=" + ShellQuote(folder) + "\nmkdir -m 711 \"$d\" 2>/dev/null\necho " +
         ShellQuote(process_id) + " >\"$d/id\"\n";
}

std::string RestartScript(std::string_view folder, int marks) {
  const std::string number = std::to_string(marks);
  // Open for both, which neither waits for a reader nor is killed when there is none any more; and
  // until the line was taken, or it would be lost with the last one who holds the pipe.
  return "d=" + ShellQuote(folder) + "\nwaits() { m=; read -r m k <\"$d/n\"; [ \"${m:-0}\" -le " +
         number +
         " ]; } 2>/dev/null\n[ -p \"$d/c\" ] || exit 3\nwaits || exit 0\n"
         "exec 5<>\"$d/c\"\necho r" +
         number +
         " >&5\ni=0\nwhile waits; do\n  [ $i -lt 300 ] || exit 3\n"
         "  sleep 0.01 2>/dev/null || { sleep 1; i=$((i+99)); }\n  i=$((i+1))\ndone\nexit 0\n";
}

std::string AwaitStartScript(std::string_view folder) {
  const std::string started = ShellQuote(std::string(folder) + "/s");
  return "i=0\nwhile [ ! -s " + started +
         " ] && [ $i -lt 100 ]; do sleep 0.01 2>/dev/null || sleep 1; i=$((i+1)); done\n"
         "read -r p b 2>/dev/null <" +
         started + " && echo \"$p\"\n";
}

std::string RecordScript(std::string_view folder) {
  return std::string(kStatOf) + kAlive + kTell + "tell " + ShellQuote(folder) + "\n";
}

std::string SignalProcessScript(std::string_view folder, int signal, bool group) {
  const std::string number = std::to_string(signal);
  // Noted before it is sent, or the end could be told without its reason.
  std::string script = std::string(kStatOf) + kAlive + "d=" + ShellQuote(folder) +
                       "\nalive \"$d\"\n[ \"$p\" != 0 ] || exit 3\n: >\"$d/k" + number + "\"\n";
  if (!group) return script + "kill -" + number + " \"$p\" 2>/dev/null || exit 3\n";
  // The wrapper leads the group and must live to tell the end.
  return script +
         "k=3\nfor q in /proc/[0-9]*; do\n"
         "  q=${q#/proc/}\n  [ \"$q\" != \"$g\" ] || [ \"$q\" = \"$p\" ] || continue\n"
         "  stat_of \"$q\"; set -- $t\n"
         "  [ \"$3\" = \"$g\" ] && kill -" +
         number + " \"$q\" 2>/dev/null && k=0\ndone\nexit $k\n";
}

std::string SignalPidScript(int64_t pid, int signal, bool group) {
  std::string script =
      std::string(kStatOf) + "p=" + std::to_string(pid) + "\n[ $p != \"$PPID\" ] || exit 13\n";
  if (group) {
    script += R"(stat_of $p
set -- $t
p=${3:-$p}
stat_of "$PPID"
set -- $t
case $p in 0|1|"$3") exit 13;; esac
p=-$p
)";
  }
  return script + "o=$(kill -" + std::to_string(signal) +
         " \"$p\" 2>&1) && exit 0\n"
         "case \"$o\" in *'ermitted'*|*'ermission'*) exit 13;; esac\nexit 3\n";
}

std::string EndSessionScript(std::string_view folder) {
  return std::string(kStatOf) + kAlive + "d=" + ShellQuote(folder) + R"(
alive "$d"
[ "$p" != 0 ] || exit 0
: >"$d/k9"
stat_of "$p"
set -- $t
s=$4
kill -STOP "$p" 2>/dev/null
i=0
while [ $i -lt 20 ]; do
  i=$((i+1)); k=0
  for q in /proc/[0-9]*; do
    q=${q#/proc/}
    [ "$q" != "$s" ] && [ "$q" != "$p" ] || continue
    stat_of "$q"
    set -- $t
    [ "$4" = "$s" ] && [ "$1" != Z ] && kill -9 "$q" 2>/dev/null && k=1
  done
  [ $k = 1 ] || break
done
kill -9 "$p" 2>/dev/null
exit 0
)";
}

std::string ListOwnScript(std::string_view scratch) {
  return std::string(kStatOf) + kAlive + kTell + "for d in " + ShellQuote(scratch) +
         "/.sandbox-bridge-p-*; do\n  [ ! -e \"$d/id\" ] || tell \"$d\"\ndone\n";
}

std::string ListAllScript() {
  return std::string(kStatOf) +
         "for d in /proc/[0-9]*; do\n  stat_of \"${d#/proc/}\"\n  [ -n \"$t\" ] || continue\n"
         "  set -- $t\n  u=\n"
         "  while read -r k v w; do [ \"$k\" = Uid: ] && u=$v && break; done 2>/dev/null "
         "<\"$d/status\"\n"
         "  echo \"=${d#/proc/} $2 $3 $1 $u\"\n  od -An -v -tx1 \"$d/cmdline\" 2>/dev/null\ndone\n";
}

}  // namespace bridge
