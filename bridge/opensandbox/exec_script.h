// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_script.h — the shell text by which a stock daemon runs a command exactly.
//
// The daemon's own output path is lossy (it cuts lines), so the command's shell first makes a
// private folder, points its outputs at two files in it and then *becomes* the command. The files
// are fetched byte by byte. Only POSIX sh, and only its built-ins but for mkdir and rm: images may
// have nothing else. Values are quoted here and nowhere else. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/opensandbox/exec_types.h"

namespace bridge {

// One argument is limited to 128 KiB by Linux, its final NUL included.
inline constexpr size_t kMaxScriptBytes = 128 * 1024 - 1;

// Input up to this size travels inside the script; more is uploaded first.
inline constexpr size_t kMaxInlineStdinBytes = 12 * 1024;

// What stays of a command that was cut or could not be started, for who asks for its end later: at
// most about this many traces in a sandbox, the newest ones. Scripts that end or fail to start
// commands remove the others, at most so many at a time.
inline constexpr int kKeptTraces = 256;
inline constexpr int kTracesPerSweep = 64;

// The private folder of one exec and what is in it.
class ExecFolder {
 public:
  // `scratch`: a writable directory of the sandbox. `nonce`: 32 hex digits, unguessable.
  ExecFolder(std::string_view scratch, std::string_view nonce);
  const std::string& path() const { return path_; }
  std::string scratch() const { return path_.substr(0, path_.rfind('/')); }
  std::string out() const { return path_ + "/o"; }
  std::string err() const { return path_ + "/e"; }
  // Decimal process id of the command, which is its group's id too.
  std::string pid() const { return path_ + "/p"; }
  // Input that travels inside the script, until it is open.
  std::string inline_stdin() const { return path_ + "/i"; }
  // There only when the command could not be started: "cwd", or the shell's exit status.
  std::string failed() const { return path_ + "/x"; }
  // A directory that is there once SignalScript sent this signal. Not a file: the folder is the
  // command's own, and a shell that writes a file follows the link that lies in its place.
  std::string sent(int signal) const { return path_ + "/s" + std::to_string(signal); }
  // A directory beside the folder, which it outlives: there once the bridge ended the command for a
  // caller, or saw that one had ended it. What the daemon's word on its end means is then known for
  // as long as the daemon gives it, or until newer ones take its place.
  std::string cut() const { return path_ + ".cut"; }
  // Beside the folder, not in it, since the folder is made by the command's own user.
  std::string uploaded_stdin() const { return path_ + ".in"; }

 private:
  std::string path_;
};

// The command alone, for the lossy route: `exec 'a' 'b'`, or the shell line as it is. `cwd` first.
std::string PlainScript(const ExecSpec& spec);

// What the bridge made in the sandbox before the command starts.
struct ExecPrepared {
  bool folder = false;
  bool stdin = false;  // in uploaded_stdin()
};

// The command with its outputs in `folder`. Exit status 125 with no pid() means that the folder
// could not be made.
std::string RedirectScript(const ExecSpec& spec, const ExecFolder& folder, ExecPrepared prepared);

// Sends a signal to the process group recorded in the folder, and leaves sent(). Exit status 0:
// delivered; the others say why not.
inline constexpr int kSignalNoGroup = 3;   // it has ended
inline constexpr int kSignalNoRecord = 4;  // not written yet, or no number
std::string SignalScript(const ExecFolder& folder, int signal);

// The content of `failed()` as an outcome.
Outcome OutcomeOfFailedStart(std::string_view marker);

}  // namespace bridge
