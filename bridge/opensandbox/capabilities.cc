// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/capabilities.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/remote_command.h"

namespace bridge {
namespace {

using Level = CapabilityLevel;

constexpr absl::Duration kProbeLimit = absl::Seconds(10);

// Tells, line by line: a marker, an empty line if this daemon passes empty lines on, the end of the
// marker, the shell, and the first directory that takes a private folder. "-" stands for none.
constexpr char kProbeScript[] = R"(printf 'a\n\nb\n'
if [ -n "$BASH_VERSION" ]; then echo bash; else echo sh; fi
for d in "${TMPDIR:-/tmp}" /tmp /var/tmp /dev/shm; do
  case $d in /*) ;; *) continue;; esac
  t="$d/.sandbox-bridge-probe-$$"
  if mkdir -m 700 "$t" 2>/dev/null; then rmdir "$t"; echo "$d"; exit 0; fi
done
echo -)";

void TakeFeature(const std::string& name, DaemonCapabilities* found) {
  if (name == "exec") found->exec = true;
  if (name == "exec.ws") found->exec_ws = true;
  if (name == "signal") found->signal = true;
  if (name == "processes") found->processes = true;
  if (name == "file.read") found->file_read = true;
  if (name == "file.write") found->file_write = true;
  if (name == "watch") found->watch = true;
}

// Not our page, or a page that cannot be read: a stock daemon.
void TakeAnnouncement(const HttpResponse& response, DaemonCapabilities* found) {
  if (response.status != 200) return;
  const auto page = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  if (!page.is_object()) return;
  const auto features = page.find("features");
  if (features == page.end() || !features->is_array()) return;
  for (const auto& feature : *features) {
    if (!feature.is_object()) continue;
    const auto name = feature.find("name");
    if (name != feature.end() && name->is_string()) TakeFeature(name->get<std::string>(), found);
  }
}

absl::Status TakeProbeLines(const std::vector<std::string>& lines, DaemonCapabilities* found) {
  // With blank lines: a "\n" b SHELL DIR; without: a b SHELL DIR.
  const size_t n = lines.size();
  if ((n != 4 && n != 5) || lines[0] != "a") {
    return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                     "the sandbox's shell does not behave like a shell");
  }
  found->blank_lines = n == 5;
  found->bash = lines[n - 2] == "bash";
  if (lines[n - 1] != "-") found->scratch = lines[n - 1];
  return absl::OkStatus();
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
  if (found->own() && ReasonOf(code.status()) == ErrorReason::ERROR_REASON_UPSTREAM_FAILED) {
    // No shell, or no place for files (an image of one static program). What our daemon does itself
    // works all the same. Not kept: the next call looks again.
    co_return found;
  }
  CO_RETURN_IF_ERROR(code.status());  // the lines tell, not the exit code
  CO_RETURN_IF_ERROR(TakeProbeLines(lines, found.get()));
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
  if (own || files) {
    add("exec.bytes", Level::kFull, "");
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
