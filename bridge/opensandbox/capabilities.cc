// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/capabilities.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/json.h"
#include "bridge/opensandbox/remote_command.h"

namespace bridge {
namespace {

using Level = CapabilityLevel;

constexpr absl::Duration kProbeLimit = absl::Seconds(10);

// Tells, line by line: a marker, an empty line if this daemon passes empty lines on, the end of the
// marker, the shell and the sandbox that it runs in, and the first directory that takes a private
// folder. "-" stands for none.
constexpr char kProbeScript[] = R"(printf 'a\n\nb\n'
if [ -n "$BASH_VERSION" ]; then s=bash; else s=sh; fi
echo "$s $OPENSANDBOX_ID"
for d in "${TMPDIR:-/tmp}" /tmp /var/tmp /dev/shm; do
  case $d in /*) ;; *) continue;; esac
  t="$d/.sandbox-bridge-probe-$$"
  if mkdir -m 700 "$t" 2>/dev/null; then rmdir "$t"; echo "$d"; exit 0; fi
done
echo -)";

void TakeFeature(const std::string& name, DaemonCapabilities* found) {
  // "exec" alone will not do: a start that is cut could not be ended.
  if (name == "exec.id") found->exec = true;
  if (name == "exec.ws") found->exec_ws = true;
  if (name == "signal") found->signal = true;
  if (name == "processes") found->processes = true;
  if (name == "file.read") found->file_read = true;
  if (name == "file.write") found->file_write = true;
  if (name == "file.attributes") found->file_attributes = true;
  if (name == "file.move") found->file_move = true;
  if (name == "watch") found->watch = true;
}

// Not our page, or a page that cannot be read: a stock daemon.
void TakeAnnouncement(const HttpResponse& response, DaemonCapabilities* found) {
  if (response.status != 200) return;
  const auto page = ParseJson(response.body);
  if (!page.is_object()) return;
  const auto features = page.find("features");
  if (features == page.end() || !features->is_array()) return;
  for (const auto& feature : *features) {
    if (!feature.is_object()) continue;
    const auto name = feature.find("name");
    if (name != feature.end() && name->is_string()) TakeFeature(name->get<std::string>(), found);
  }
}

// A server on its host's network sends the callers of every sandbox to the one daemon that could
// listen. `told` is the OPENSANDBOX_ID of where the script ran; empty: the upstream sets none.
absl::Status ExpectSandbox(const std::string& sandbox_id, std::string_view told) {
  if (told.empty() || told == sandbox_id) return absl::OkStatus();
  return MakeError(ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE,
                   "at the address of sandbox " + sandbox_id +
                       " another sandbox's daemon answers (on a host network only one can listen); "
                       "nothing was run there",
                   {.metadata = {{"sandbox_id", sandbox_id}}});
}

absl::Status TakeProbeLines(const std::string& sandbox_id, const std::vector<std::string>& lines,
                            DaemonCapabilities* found) {
  // With blank lines: a "\n" b "SHELL ID" DIR; without: a b "SHELL ID" DIR.
  const size_t n = lines.size();
  if ((n != 4 && n != 5) || lines[0] != "a") {
    return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                     "the sandbox's shell does not behave like a shell");
  }
  found->blank_lines = n == 5;
  const std::string& shell = lines[n - 2];
  const size_t space = std::min(shell.find(' '), shell.size());
  found->bash = shell.compare(0, space, "bash") == 0;
  if (lines[n - 1] != "-") found->scratch = lines[n - 1];
  return ExpectSandbox(sandbox_id,
                       std::string_view(shell).substr(std::min(space + 1, shell.size())));
}

}  // namespace

Task<absl::StatusOr<std::shared_ptr<DaemonCapabilities>>> ProbeDaemon(
    DaemonClient& client, CallContext context, std::shared_ptr<Daemon> daemon) {
  if (daemon->probed != nullptr) co_return daemon->probed;
  auto found = std::make_shared<DaemonCapabilities>();
  HttpRequest request = client.Request(context, *daemon, "GET", "/v1/capabilities", kProbeLimit);
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await client.Fetch(context, daemon, std::move(request), 1 << 20));
  TakeAnnouncement(response, found.get());
  // Our own daemon, too: its terminals and file tools are the stock ones.
  std::vector<std::string> lines;
  absl::StatusOr<int> code = co_await RunScript(client, context, daemon, kProbeScript, &lines);
  const ErrorReason reason = ReasonOf(code.status());
  const bool busy = reason == ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT ||
                    reason == ErrorReason::ERROR_REASON_QUOTA_EXCEEDED;
  if (busy) found->unprobed = code.status();
  if (found->own() && (busy || reason == ErrorReason::ERROR_REASON_UPSTREAM_FAILED)) {
    // No shell, or no place for files (an image of one static program), or too busy for one. What
    // our daemon does itself works all the same. Not kept: the next call looks again.
    co_return found;
  }
  CO_RETURN_IF_ERROR(code.status());  // the lines tell, not the exit code
  CO_RETURN_IF_ERROR(TakeProbeLines(daemon->sandbox_id, lines, found.get()));
  daemon->probed = found;
  co_return found;
}

std::vector<Capability> CapabilitiesOf(const DaemonCapabilities& daemon) {
  std::vector<Capability> rows;
  const auto add = [&rows](const char* feature, Level level, const char* note) {
    rows.push_back({feature, level, note});
  };
  const bool own = daemon.own();
  const bool files = !daemon.scratch.empty();
  add("exec.shell", Level::kFull, "");
  add("exec.argv", Level::kFull, "");
  if (own) {
    add("exec.bytes", Level::kFull, "");
  } else if (files) {
    add("exec.bytes", Level::kDegraded,
        "a program that opens its own output anew (>/dev/stderr, not >>) cuts what was printed "
        "before");
  } else {
    add("exec.bytes", Level::kNone, "nothing in the sandbox is writable: output comes as lines");
  }
  if (own) {
    add("exec.live", Level::kFull, "");
    add("exec.stdin", Level::kFull, "");
  } else {
    add("exec.live", Level::kDegraded, "output is fetched at intervals of 10 ms to 1 s");
    add("exec.stdin", files ? Level::kFull : Level::kNone,
        files ? "" : "nothing in the sandbox is writable to hold the input");
  }
  add("exec.timeout", Level::kFull, "");
  if (own || files) {
    add("exec.signal", Level::kFull, "");
    add("exec.attach", Level::kFull, "");
  } else {
    add("exec.signal", Level::kDegraded, "only SIGTERM followed by SIGKILL");
    add("exec.attach", Level::kNone, "no output is kept");
  }
  if (own || files) {
    add("exec.kill_group", Level::kFull, "");
  } else {
    add("exec.kill_group", Level::kDegraded,
        "members of the group that ignore SIGTERM may outlive its leader");
  }
  if (daemon.file_attributes) {
    add("files.attributes", Level::kFull, "");
  } else {
    add("files.attributes", Level::kDegraded,
        "times are set to the second; a link that takes a path's place at the very moment of a "
        "change of mode is followed");
  }
  if (daemon.file_move) {
    add("files.move", Level::kFull, "");
  } else {
    add("files.move", Level::kDegraded,
        "a file has both names for a moment; without hard links, busybox may replace what appears "
        "at the very moment of a move");
  }
  if (daemon.watch) {
    add("files.watch", Level::kFull, "");
  } else {
    add("files.watch", Level::kNone, "the daemon cannot watch directories");
  }
  return rows;
}

std::string DaemonName(const DaemonCapabilities& daemon) {
  return daemon.own() ? "bridge execd" : "stock execd";
}

}  // namespace bridge
