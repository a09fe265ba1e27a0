// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_script.h"

#include "bridge/base/shell.h"

namespace bridge {
namespace {

// `t COMMAND...` runs a tool; if it fails the script ends with the status that its words mean. They
// are the C library's, the same for coreutils and busybox. `p DIRECTORY` makes one with its
// parents, one by one, and says in $k which of them it made itself: a "y" for the last one and so
// on upwards, an "n" where somebody else was faster. `absent PATH` says why there is nothing. `say
// LINE` answers: what a daemon's commands print passes through its disk, and does not arrive when
// that is full.
constexpr char kTry[] = R"(LC_ALL=C; export LC_ALL
say() {
  echo "$1" 2>/dev/null || exit 15
}
fail() {
  [ $? != 127 ] || exit 127
  case "$1" in
    *'No such file'*) exit 10;;
    *'s a directory'*) exit 11;;
    *'ot a directory'*) exit 12;;
    *'ermission denied'*|*'not permitted'*|*'ead-only'*) exit 13;;
    *'ile exists'*) exit 14;;
    *'o space left'*|*'uota exceeded'*) exit 15;;
    *'nvalid user'*|*'nknown user'*|*'nvalid group'*|*'nknown group'*) exit 16;;
    *'not empty'*) exit 18;;
    *'rite non-directory'*) exit 12;;
    *'ame too long'*) exit 21;;
    *'oo many levels of symbolic links'*) exit 22;;
    *'esource busy'*|*'ext file busy'*) exit 23;;
    *'nvalid option'*|*'nrecognized option'*) exit 127;;
  esac
  say
  exit 1
}
t() {
  o=$("$@" 2>&1) || fail "$o"
}
absent() {
  o=$(stat -L "$1" 2>&1) || fail "$o"
  say
  exit 10
}
p() {
  b=$1 w=
  until [ -z "$b" ] || [ -d "$b" ]; do
    w=/${b##*/}$w b=${b%/*}
  done
  while [ -n "$w" ]; do
    w=${w#/}
    n=$b/${w%%/*}
    w=${w#"${w%%/*}"}
    o=$(mkdir "$n" 2>&1) && b=$n k=y$k && continue
    case "$?$o" in
      127*) exit 127;;
      *'ile exists'*) [ -d "$n" ] || unusable "$n"; b=$n k=n$k;;
      *) fail "$o";;
    esac
  done
}
unusable() {
  case $(stat -L "$1" 2>&1) in
    *'oo many levels of symbolic links'*) exit 22;;
  esac
  exit 12
}
)";

// `back` takes away what `p` made, as far as it is empty: $b is the last one, $k as above.
constexpr char kBack[] = R"(back() {
  while [ -n "$k" ]; do
    case $k in
      y*) rmdir "$b" 2>/dev/null;;
    esac
    b=${b%/*} k=${k#?}
  done
}
)";
constexpr char kBackOnFailure[] = "trap '[ $? = 0 ] || back' EXIT\n";

// What is at "$y" was put aside, beside "$s", where it belongs.
constexpr char kPutBack[] = R"(is() { [ -e "$1" ] || [ -h "$1" ]; }
put_back() { ! is "$y" || mv -nT "$y" "$s"; }
)";

// Puts "$s" at "$d". What is on another file system is first copied to "$x", which is beside "$d",
// so that it appears in one step. Before anything is replaced, `leave` finds out whether the source
// can be removed: of a directory with something in it rmdir tells, before it is copied; anything
// else is put aside when it is. Where nothing is to be replaced, `new=1`, no tool is trusted with a
// look of its own: a hard link and a new directory cannot take the place of anything, and a rename
// takes that of an empty directory only. File systems without hard links are left to `mv -n`.
constexpr char kMove[] = R"sh(tree() { [ -d "$1" ] && [ ! -h "$1" ]; }
unlink_ours() { [ ! "$f" -ef "$d" ] || rm -f "$d"; }
m() {
  o=$("$@" 2>&1) || {
    c=$?
    case "$o" in
      *'of itself'*|*'nvalid argument'*) c=20;;
      *'not replacing'*) c=14;;
    esac
    [ -z "$undo" ] || $undo "$d" 2>/dev/null
    [ $c = 127 ] || [ $c -lt 10 ] || exit $c
    (exit $c)
    fail "$o"
  }
}
full() { tree "$s" && [ -n "$(ls -A "$s")" ]; }
leave() {
  if full; then
    o=$(rmdir "$s" 2>&1) && return
  else
    o=$(mv -fT "$s" "$y" 2>&1) && return
  fi
  case "$?$o" in
    127*) exit 127;;
    *'not empty'*) return;;
    *busy*) exit 23;;
  esac
  exit 24
}
is "$s" || absent "$s"
f=$s undo=
if [ "$(stat -c %d "$s" 2>/dev/null)" != "$(stat -c %d "${d%/*}/" 2>/dev/null)" ]; then
  trap 'c=$?; put_back; rm -rf "$x"; [ $c = 0 ] || back' EXIT
  ! full || leave
  t cp -aT "$s" "$x"
  f=$x
  full || leave
fi
if [ -z "$new" ]; then
  ! tree "$d" || exit 11
  ! is "$d" || say replaced
  m mv -fT "$f" "$d"
elif tree "$f"; then
  t mkdir "$d"
  undo=rmdir
  m mv -fT "$f" "$d"
elif ln -T "$f" "$d" 2>/dev/null; then
  undo=unlink_ours
  { [ ! -h "$f" ] && [ ! "$f" -ef "$d" ]; } || m rm -f "$f"
else
  ! is "$d" || exit 14
  m mv -nT "$f" "$d"
  ! is "$f" || exit 14
fi
if [ "$f" != "$s" ]; then
  o=$s
  ! is "$y" || o=$y
  rm -rf "$o" 2>/dev/null || exit 25
fi
)sh";

// The end of a write with a condition: `look` (see Look) judges what is there now, for an upload
// takes its time, and "$f" comes to "$d". Scripts that do so take turns by a lock on the directory,
// which ends with the script, however that ends. One that has waited for some 5 s gives up. Where
// there is no flock, or the directory cannot be read, there are no turns. `flock -n` says nothing
// when somebody else has the lock, and why when there is none to be had.
constexpr char kReplaceInTurn[] = R"(turn() {
  n=0
  while o=$(flock -n 9 2>&1); [ "$?$o" = 1 ]; do
    [ $n -lt 80 ] || exit 27
    if sleep 0.05 2>/dev/null; then n=$((n + 1)); else sleep 1; n=$((n + 16)); fi
  done
}
replace() {
  { [ -f "$d" ] && [ ! -h "$d" ]; } || exit 26
  look
  t mv -f "$f" "$d"
}
in_turn() {
  turn
  replace
}
b=${d%/*}/
if [ -r "$b" ]; then in_turn 9<"$b"; else replace; fi
)";

// Behind readlink, which says nothing.
std::string OrNothingThere(const std::string& quoted) {
  return " || { [ $? != 127 ] || exit 127; absent " + quoted + "; }\n";
}

// chmod does not know a path that begins with a dash; ours are absolute. With five digits it also
// takes a directory's set-group-id bit away, which with fewer it keeps.
std::string Octal(unsigned mode) {
  std::string digits = "0";
  for (int shift = 9; shift >= 0; shift -= 3)
    digits += static_cast<char>('0' + ((mode >> shift) & 7));
  return digits;
}

std::string ParentOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : std::string(path.substr(0, slash));
}

// "owner:group", "owner" or ":group"; empty: nothing to change.
std::string Ownership(std::string_view owner, std::string_view group) {
  std::string text(owner);
  if (!group.empty()) text += ":" + std::string(group);
  return text;
}

std::string Missing(const std::string& quoted) {
  return "[ -e " + quoted + " ] || [ -h " + quoted + " ] || absent " + quoted + "\n";
}

// The function that ends the script unless "$d" is what the write expects.
std::string Look(const FileWrite& write) {
  if (!write.if_sha256.empty()) {
    return "look() {\n  o=$(sha256sum 2>&1 <\"$d\") || fail \"$o\"\n  [ \"${o%% *}\" = " +
           write.if_sha256 + " ] || exit 26\n}\n";
  }
  const auto text = [&write](const char* format) {
    return "'" + absl::FormatTime(format, write.if_modified_at, absl::UTCTimeZone()) + "'";
  };
  // Some tell whole seconds only: daemons of 1.1.0, older busyboxes, file systems. What is one
  // here or there says no more than the second.
  const std::string second = text("%E4Y-%m-%d %H:%M:%S");
  const bool whole =
      write.if_modified_at == absl::FromUnixSeconds(absl::ToUnixSeconds(write.if_modified_at));
  const std::string expected = whole ? second + "*"
                                     : text("%E4Y-%m-%d %H:%M:%E9S") + "*|" + second + "|" +
                                           second + "' '*|" + second + ".000000000*";
  return "look() {\n  o=$(TZ=UTC0 stat -c %y \"$d\" 2>&1) || fail \"$o\"\n  case $o in\n    " +
         expected + ") ;;\n    *) exit 26;;\n  esac\n}\n";
}

// A name of the bridge's own in the directory of `path`, quoted.
std::string Beside(std::string_view path, std::string_view nonce, std::string_view ending) {
  const std::string parent = ParentOf(path);
  return ShellQuote((parent == "/" ? "" : parent) + "/.sandbox-bridge-" + std::string(nonce) +
                    std::string(ending));
}

// Sets what kMove works with.
std::string MovePlaces(const FileMove& move, std::string_view nonce) {
  return "s=" + ShellQuote(move.source) + "\nd=" + ShellQuote(move.destination) +
         "\nx=" + Beside(move.destination, nonce, ".tmp") +
         "\ny=" + Beside(move.source, nonce, ".old") + "\n" + kPutBack;
}

}  // namespace

bool RoutesTakeLiterally(std::string_view path) { return path.find('$') == std::string_view::npos; }

std::string ReserveScript(std::string_view temporary) {
  return std::string(kTry) + "umask 077\nt touch " + ShellQuote(temporary) + "\n";
}

std::string MakeParentsScript(std::string_view directory) {
  return std::string(kTry) + kBack + kBackOnFailure + "p " + ShellQuote(directory) +
         "\nsay \"$k\"\n";
}

std::string RemoveParentsScript(std::string_view directory, std::string_view made) {
  return std::string(kBack) + "b=" + ShellQuote(directory) + " k=" + ShellQuote(made) + "\nback\n";
}

FileAlias::FileAlias(std::string_view scratch, std::string_view nonce)
    : folder(std::string(scratch) + "/.sandbox-bridge-" + std::string(nonce)) {}

std::string LinkScript(const FileAlias& alias, std::string_view path) {
  return std::string(kTry) + "t mkdir -m 700 " + ShellQuote(alias.folder) + "\nt ln -s " +
         ShellQuote(path) + " " + ShellQuote(alias.path()) + "\n";
}

std::string CopyScript(const FileAlias& alias, std::string_view path, int64_t max_bytes) {
  return std::string(kTry) + "p=" + ShellQuote(path) + "\nf=" + ShellQuote(alias.path()) +
         "\nt mkdir -m 700 " + ShellQuote(alias.folder) + "\no=$({ head -c " +
         std::to_string(max_bytes) + R"( "$p" > "$f"; } 2>&1) || fail "$o"
stat -c %s "$f" || fail
)";
}

std::string ListScript(const FileAlias& alias, std::string_view path, int depth) {
  return std::string(kTry) + "p=" + ShellQuote(path) + "\nf=" + ShellQuote(alias.path()) +
         "\nt mkdir -m 700 " + ShellQuote(alias.folder) +
         "\no=$({ find \"$p\" -mindepth 1 -maxdepth " + std::to_string(depth) +
         R"( -print0 > "$f.n"; } 2>&1) || fail "$o"
o=$({ sort -z "$f.n" > "$f.s"; } 2>&1) || fail "$o"
o=$({ xargs -0 -r stat -c '//%f %s %Y %U %u %G %g %n' < "$f.s" > "$f"; } 2>&1) || case $o in
  *'o space left'*|*'uota exceeded'*) exit 15;;
esac
stat -c %s "$f" || fail
)";
}

std::string RemoveAliasScript(const FileAlias& alias) {
  return "rm -rf " + ShellQuote(alias.folder) + "\n";
}

std::string CommitScript(const FileWrite& write, std::string_view temporary,
                         std::string_view target, const std::optional<FileInfo>& keep) {
  const std::string from = ShellQuote(temporary);
  const std::string to = ShellQuote(target);
  std::string owner = write.owner;
  std::string group = write.group;
  if (keep && owner.empty()) owner = keep->owner;
  if (keep && group.empty()) group = keep->group;
  std::string script = std::string(kTry) + "f=" + from + "\ntrap 'rm -f \"$f\"' EXIT\n";
  if (const std::string ownership = Ownership(owner, group); !ownership.empty()) {
    script += "t chown -h -- " + ShellQuote(ownership) + " \"$f\"\n";
  }
  // After chown, which takes away the set-uid bit.
  const unsigned mode = write.mode.value_or(keep ? keep->mode : 0644);
  script += "t chmod " + Octal(mode) + " \"$f\"\n";
  if (write.if_absent) return script + "t ln \"$f\" " + to + "\n";
  if (!write.if_sha256.empty() || write.if_modified_at != absl::InfinitePast()) {
    return script + "d=" + to + "\n" + Look(write) + kReplaceInTurn;
  }
  return script + "[ ! -d " + to + " ] || exit 11\nt mv -f \"$f\" " + to + "\n";
}

std::string StatScript(std::string_view path) {
  const std::string quoted = ShellQuote(path);
  return std::string(kTry) + Missing(quoted) + "stat -c '%f\n%s\n%Y\n%U\n%u\n%G\n%g' " + quoted +
         " 2>/dev/null || fail\n[ ! -h " + quoted + " ] || readlink " + quoted + " || fail\n";
}

std::string ResolveScript(std::string_view path) {
  const std::string quoted = ShellQuote(path);
  return std::string(kTry) + "readlink -f " + quoted + OrNothingThere(quoted);
}

std::string ReadLinkScript(std::string_view path) {
  const std::string quoted = ShellQuote(path);
  return std::string(kTry) + "readlink " + quoted + OrNothingThere(quoted);
}

std::string MakeDirectoryScript(std::string_view path, bool parents, std::optional<unsigned> mode,
                                std::string_view owner, std::string_view group) {
  const std::string quoted = ShellQuote(path);
  std::string script = std::string(kTry) + kBack + "[ ! -d " + quoted + " ] || exit 0\n";
  if (parents) script += kBackOnFailure + ("p " + ShellQuote(ParentOf(path))) + "\n";
  // What does not become as asked goes again; a repeat would take it for one that is.
  script += "t mkdir " + quoted + "\nq=" + quoted + "\ntrap 'rmdir \"$q\"; back' EXIT\n";
  if (const std::string ownership = Ownership(owner, group); !ownership.empty()) {
    script += "t chown -h -- " + ShellQuote(ownership) + " " + quoted + "\n";
  }
  return script + "[ ! -h " + quoted + " ] || exit 19\nt chmod " + Octal(mode.value_or(0755)) +
         " " + quoted + "\nsay created\ntrap - EXIT\n";
}

std::string RemoveScript(std::string_view path, bool recursive) {
  const std::string quoted = ShellQuote(path);
  std::string script = std::string(kTry) + Missing(quoted);
  if (recursive) return script + "t rm -rf " + quoted + "\n";
  return script + "if [ -d " + quoted + " ] && [ ! -h " + quoted + " ]; then t rmdir " + quoted +
         "; else t rm -f " + quoted + "; fi\n";
}

std::string MoveScript(const FileMove& move, std::string_view nonce) {
  std::string script = std::string(kTry) + kBack + MovePlaces(move, nonce) +
                       "new=" + (move.overwrite ? "" : "1") + "\n";
  if (move.create_parents) {
    script +=
        kBackOnFailure + Missing("\"$s\"") + "p " + ShellQuote(ParentOf(move.destination)) + "\n";
  }
  return script + kMove;
}

std::string UndoMoveScript(const FileMove& move, std::string_view nonce) {
  return MovePlaces(move, nonce) + "put_back\nrm -rf \"$x\"\n";
}

std::string SetAttributesScript(std::string_view path, const AttributeChange& change) {
  const std::string quoted = ShellQuote(path);
  // Looked at first: chmod cannot be told not to follow everywhere.
  const std::string check = change.follow_symlink
                                ? "[ -e " + quoted + " ] || absent " + quoted + "\n"
                                : Missing(quoted) + "[ ! -h " + quoted + " ] || exit 19\n";
  std::string script = std::string(kTry) + check;
  const std::string itself = change.follow_symlink ? " " : " -h ";
  if (const std::string ownership = Ownership(change.owner, change.group); !ownership.empty()) {
    script += "t chown" + itself + "-- " + ShellQuote(ownership) + " " + quoted + "\n";
  }
  if (change.mode) script += "t chmod " + Octal(*change.mode) + " " + quoted + "\n";
  if (change.modified_at != absl::InfinitePast()) {
    // The form that both coreutils and busybox read, to the second.
    const std::string stamp =
        absl::FormatTime("%Y-%m-%d %H:%M:%S", change.modified_at, absl::UTCTimeZone());
    script += "TZ=UTC0 t touch" + itself + "-c -d " + ShellQuote(stamp) + " " + quoted + "\n";
  }
  return script;
}

}  // namespace bridge
