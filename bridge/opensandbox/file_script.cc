// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_script.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/base/shell.h"
#include "bridge/base/utf8.h"

namespace bridge {
namespace {

enum Exit {
  kNotFound = 10,
  kIsADirectory = 11,
  kNotADirectory = 12,
  kDenied = 13,
  kExists = 14,
  kNoSpace = 15,
  kUnknownUser = 16,
  kNotEmpty = 18,
  kNoSuchTool = 127,  // the shell's own word for it
};

// `t COMMAND...` runs a tool; if it fails the script ends with the status that its words mean. They
// are the C library's, the same for coreutils and busybox. `p DIRECTORY` makes one with its
// parents: what "exists" then is in the way.
constexpr char kTry[] = R"(LC_ALL=C; export LC_ALL
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
  esac
  exit 1
}
t() {
  o=$("$@" 2>&1) || fail "$o"
}
p() {
  o=$(mkdir -p "$1" 2>&1) || case "$?$o" in
    127*) exit 127;;
    *'ile exists'*) exit 12;;
    *) fail "$o";;
  esac
}
)";

// Behind readlink, which says nothing.
constexpr char kOrNothingThere[] = " || { [ $? != 127 ] || exit 127; exit 10; }\n";

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
  return "[ -e " + quoted + " ] || [ -h " + quoted + " ] || exit 10\n";
}

template <class Int>
bool ParseNumber(std::string_view text, int base, Int* value) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return !text.empty() && error == std::errc() && at == text.data() + text.size();
}

// From st_mode.
void SetTypeAndMode(unsigned raw, FileInfo* info) {
  constexpr unsigned kTypeMask = 0170000, kDirectory = 0040000, kRegular = 0100000, kLink = 0120000;
  info->type = (raw & kTypeMask) == kDirectory ? FileType::kDirectory
               : (raw & kTypeMask) == kRegular ? FileType::kFile
               : (raw & kTypeMask) == kLink    ? FileType::kSymlink
                                               : FileType::kOther;
  info->type_known = true;
  info->mode = raw & 07777;
  info->special_bits_known = true;
}

// The text up to the next space, which is taken away too.
std::string_view NextWord(std::string_view* text) {
  const size_t space = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, space);
  text->remove_prefix(std::min(space + 1, text->size()));
  return word;
}

// stat's word for an account that has no name is no name.
std::string NameOr(std::string_view name, std::string_view number) {
  return std::string(name == "UNKNOWN" ? number : name);
}

absl::Status Undescribed() {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   "the sandbox's stat described a file in a way that cannot be read");
}

}  // namespace

bool RoutesTakeLiterally(std::string_view path) { return path.find('$') == std::string_view::npos; }

absl::Status FileScriptError(int exit_status, std::string_view what) {
  ErrorReason reason = ErrorReason::ERROR_REASON_UPSTREAM_FAILED;
  std::string_view words = "a tool in the sandbox failed";
  switch (exit_status) {
    case 0:
      return absl::OkStatus();
    case kNotFound:
      reason = ErrorReason::ERROR_REASON_PATH_NOT_FOUND;
      words = "nothing is at the path";
      break;
    case kIsADirectory:
      reason = ErrorReason::ERROR_REASON_IS_A_DIRECTORY;
      words = "a directory is at the path";
      break;
    case kNotADirectory:
      reason = ErrorReason::ERROR_REASON_NOT_A_DIRECTORY;
      words = "a part of the path is no directory";
      break;
    case kDenied:
      reason = ErrorReason::ERROR_REASON_PERMISSION_DENIED;
      words = "the sandbox's user may not do this";
      break;
    case kExists:
      reason = ErrorReason::ERROR_REASON_PATH_EXISTS;
      words = "something is at the path already";
      break;
    case kNoSpace:
      reason = ErrorReason::ERROR_REASON_NO_SPACE;
      words = "the sandbox's disk is full";
      break;
    case kUnknownUser:
      reason = ErrorReason::ERROR_REASON_UNKNOWN_USER;
      words = "the sandbox has no account or group of this name";
      break;
    case kNotEmpty:
      reason = ErrorReason::ERROR_REASON_DIRECTORY_NOT_EMPTY;
      words = "the directory is not empty";
      break;
    case kNoSuchTool:
      return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                       std::string(what) +
                           ": the image lacks a tool that this needs; those of "
                           "coreutils and findutils, or busybox, are enough",
                       {.metadata = {{"feature", "files.tools"}}});
    default:
      break;
  }
  return MakeError(reason, std::string(what) + ": " + std::string(words));
}

std::string ReserveScript(std::string_view temporary, bool create_parents) {
  const std::string quoted = ShellQuote(temporary);
  std::string script = kTry;
  if (create_parents) script += "p " + ShellQuote(ParentOf(temporary)) + "\n";
  return script + "umask 077\nt touch " + quoted + "\n";
}

FileAlias::FileAlias(std::string_view scratch, std::string_view nonce)
    : folder(std::string(scratch) + "/.sandbox-bridge-" + std::string(nonce)) {}

std::string LinkScript(const FileAlias& alias, std::string_view path, bool create) {
  std::string script = kTry;
  if (create) script += "p " + ShellQuote(path) + "\n";
  return script + "t mkdir -m 700 " + ShellQuote(alias.folder) + "\nt ln -s " + ShellQuote(path) +
         " " + ShellQuote(alias.path()) + "\n";
}

std::string CopyScript(const FileAlias& alias, std::string_view path, int64_t max_bytes) {
  return std::string(kTry) + "p=" + ShellQuote(path) + "\nf=" + ShellQuote(alias.path()) +
         "\nt mkdir -m 700 " + ShellQuote(alias.folder) + "\no=$({ head -c " +
         std::to_string(max_bytes) + R"( "$p" > "$f"; } 2>&1) || fail "$o"
stat -c %s "$f"
)";
}

std::string ListScript(const FileAlias& alias, std::string_view path, int depth) {
  return std::string(kTry) + "p=" + ShellQuote(path) + "\nf=" + ShellQuote(alias.path()) +
         "\nt mkdir -m 700 " + ShellQuote(alias.folder) +
         "\no=$({ find \"$p\" -mindepth 1 -maxdepth " + std::to_string(depth) +
         R"( -print0 > "$f.n"; } 2>&1) || fail "$o"
o=$({ sort -z "$f.n" > "$f.s"; } 2>&1) || fail "$o"
xargs -0 -r stat -c '//%f %s %Y %U %u %G %g %n' < "$f.s" > "$f" 2>/dev/null
stat -c %s "$f"
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
    script += "t chown " + ShellQuote(ownership) + " \"$f\"\n";
  }
  // After chown, which takes away the set-uid bit.
  const unsigned mode = write.mode.value_or(keep ? keep->mode : 0644);
  script += "t chmod " + Octal(mode) + " \"$f\"\n";
  if (write.if_absent) return script + "t ln \"$f\" " + to + "\n";
  return script + "[ ! -d " + to + " ] || exit 11\nt mv -f \"$f\" " + to + "\n";
}

std::string StatScript(std::string_view path) {
  const std::string quoted = ShellQuote(path);
  return std::string(kTry) + Missing(quoted) + "stat -c '%f\n%s\n%Y\n%U\n%u\n%G\n%g' " + quoted +
         " 2>/dev/null || exit\n[ ! -h " + quoted + " ] || readlink " + quoted + "\n";
}

absl::StatusOr<FileInfo> ParseStatLines(const std::vector<std::string>& lines,
                                        std::string_view path) {
  unsigned raw = 0;
  int64_t seconds = 0;
  FileInfo info;
  info.path = std::string(path);
  const bool ok = lines.size() >= 7 && ParseNumber(lines[0], 16, &raw) &&
                  ParseNumber(lines[1], 10, &info.size) && ParseNumber(lines[2], 10, &seconds);
  if (!ok) return Undescribed();
  SetTypeAndMode(raw, &info);
  info.modified_at = absl::FromUnixSeconds(seconds);
  info.owner = NameOr(lines[3], lines[4]);
  info.group = NameOr(lines[5], lines[6]);
  // A target with a line break comes as several lines.
  for (size_t i = 7; i < lines.size(); ++i) {
    if (!info.symlink_target.empty()) info.symlink_target += '\n';
    info.symlink_target += lines[i];
  }
  return info;
}

absl::StatusOr<FileInfo> ParseListRecord(std::string_view record) {
  FileInfo info;
  unsigned raw = 0;
  int64_t seconds = 0;
  if (!record.starts_with("//")) return Undescribed();
  record.remove_prefix(2);
  const bool ok = ParseNumber(NextWord(&record), 16, &raw) &&
                  ParseNumber(NextWord(&record), 10, &info.size) &&
                  ParseNumber(NextWord(&record), 10, &seconds);
  const std::string_view owner = NextWord(&record);
  info.owner = NameOr(owner, NextWord(&record));
  const std::string_view group = NextWord(&record);
  info.group = NameOr(group, NextWord(&record));
  if (!ok || !record.starts_with("/")) return Undescribed();
  SetTypeAndMode(raw, &info);
  info.modified_at = absl::FromUnixSeconds(seconds);
  info.path = EscapeNonUtf8(record);
  if (info.path != record) info.path_bytes = std::string(record);
  return info;
}

std::string ResolveScript(std::string_view path) {
  return "readlink -f " + ShellQuote(path) + kOrNothingThere;
}

std::string ReadLinkScript(std::string_view path) {
  return "readlink " + ShellQuote(path) + kOrNothingThere;
}

std::string MakeDirectoryScript(std::string_view path, bool parents, std::optional<unsigned> mode,
                                std::string_view owner, std::string_view group) {
  const std::string quoted = ShellQuote(path);
  std::string script = std::string(kTry) + "[ ! -d " + quoted + " ] || exit 0\n";
  if (parents) script += "p " + ShellQuote(ParentOf(path)) + "\n";
  script += "t mkdir " + quoted + "\n";
  if (const std::string ownership = Ownership(owner, group); !ownership.empty()) {
    script += "t chown " + ShellQuote(ownership) + " " + quoted + "\n";
  }
  return script + "t chmod " + Octal(mode.value_or(0755)) + " " + quoted + "\necho created\n";
}

std::string RemoveScript(std::string_view path, bool recursive) {
  const std::string quoted = ShellQuote(path);
  std::string script = std::string(kTry) + Missing(quoted);
  if (recursive) return script + "t rm -rf " + quoted + "\n";
  return script + "if [ -d " + quoted + " ] && [ ! -h " + quoted + " ]; then t rmdir " + quoted +
         "; else t rm -f " + quoted + "; fi\n";
}

std::string MoveScript(std::string_view source, std::string_view destination, bool overwrite,
                       bool create_parents) {
  const std::string from = ShellQuote(source);
  const std::string to = ShellQuote(destination);
  std::string script = std::string(kTry) + Missing(from);
  if (create_parents) script += "p " + ShellQuote(ParentOf(destination)) + "\n";
  script += "r=\nif [ -e " + to + " ] || [ -h " + to + " ]; then\n";
  script += overwrite
                ? "  if [ -d " + to + " ] && [ ! -h " + to + " ]; then exit 11; fi\n  r=replaced\n"
                : std::string("  exit 14\n");
  return script + "fi\nt mv -f " + from + " " + to + "\necho $r\n";
}

std::string SetAttributesScript(std::string_view path, std::optional<unsigned> mode,
                                std::string_view owner, std::string_view group,
                                absl::Time modified_at) {
  const std::string quoted = ShellQuote(path);
  std::string script = std::string(kTry) + Missing(quoted);
  if (const std::string ownership = Ownership(owner, group); !ownership.empty()) {
    script += "t chown " + ShellQuote(ownership) + " " + quoted + "\n";
  }
  if (mode) script += "t chmod " + Octal(*mode) + " " + quoted + "\n";
  if (modified_at != absl::InfinitePast()) {
    // The form that both coreutils and busybox read, to the second.
    const std::string stamp =
        absl::FormatTime("%Y-%m-%d %H:%M:%S", modified_at, absl::UTCTimeZone());
    script += "TZ=UTC0 t touch -c -d " + ShellQuote(stamp) + " " + quoted + "\n";
  }
  return script;
}

}  // namespace bridge
