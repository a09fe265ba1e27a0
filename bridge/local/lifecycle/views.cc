// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/views.h"

#include <algorithm>
#include <cstdio>

#include "bridge/local/api/rules.h"

namespace bridge::local::lifecycle {
namespace {

constexpr char kContentType[] = "text/plain; charset=utf-8";

Json StatusView(const SandboxRecord& record) {
  if (record.ended) {
    const int code = record.ended->code;
    const std::string at = api::FormatTime(absl::FromUnixNanos(record.ended->unix_nanos));
    if (code == 0) {
      return {{"state", "Terminated"},
              {"reason", "CONTAINER_EXITED"},
              {"message", "Sandbox container exited successfully."},
              {"lastTransitionAt", at}};
    }
    return {{"state", "Failed"},
            {"reason", "CONTAINER_EXITED_ERROR"},
            {"message", "Sandbox container exited with code " + std::to_string(code) + "."},
            {"lastTransitionAt", at}};
  }
  return {
      {"state", record.paused ? "Paused" : "Running"},
      {"reason", record.paused ? "CONTAINER_PAUSED" : "CONTAINER_RUNNING"},
      {"message", record.paused ? "Sandbox container is paused." : "Sandbox container is running."},
      {"lastTransitionAt", api::FormatTime(record.container_at)}};
}

Json PlatformView(const SandboxRecord& record) {
  return {{"os", record.platform->first}, {"arch", record.platform->second}};
}

std::string ContainerState(const SandboxRecord& record) {
  return record.ended ? "exited" : record.paused ? "paused" : "running";
}

std::string Limit(const SandboxRecord& record, const char* name) {
  const auto it = record.resource_limits.find(name);
  return it == record.resource_limits.end() ? "" : it->second;
}

std::string ResourcesText(const SandboxRecord& record) {
  std::string text = "Resources:\n";
  char line[64];
  if (const auto millis = api::ParseCpuMillis(Limit(record, "cpu"))) {
    snprintf(line, sizeof(line), "  CPU:          %.2f cores\n",
             static_cast<double>(*millis) / 1000);
    text += line;
  }
  if (const auto bytes = api::ParseMemoryBytes(Limit(record, "memory"))) {
    text += "  Memory:       " + std::to_string(*bytes >> 20) + " MiB\n";
  }
  snprintf(line, sizeof(line), "  PIDs Limit:   %lld\n",
           static_cast<long long>(runtime::CgroupLimits{}.pids));
  return text + line;
}

std::string LabelsText(const SandboxRecord& record) {
  std::map<std::string, std::string> labels = record.metadata;
  labels["opensandbox.io/id"] = record.id;
  labels["opensandbox.io/embedding-proxy-port"] = std::to_string(record.execd_port);
  labels["opensandbox.io/isolation"] = runtime::IsolationName(record.process.isolation);
  labels["opensandbox.io/root"] =
      record.root == "/" ? "the host's, read as image " + record.image : record.root;
  if (record.expires_at) {
    labels["opensandbox.io/expires-at"] = api::FormatTime(*record.expires_at);
  } else {
    labels["opensandbox.io/manual-cleanup"] = "true";
  }
  if (record.platform) {
    labels["opensandbox.io/platform-os"] = record.platform->first;
    labels["opensandbox.io/platform-arch"] = record.platform->second;
  }
  for (const auto& [key, value] : record.extensions) {
    labels["opensandbox.io/" + key.substr(std::string_view("opensandbox.").size())] = value;
  }
  std::string text = "Labels:\n";
  for (const auto& [key, value] : labels) text += "  " + key + "=" + value + "\n";
  return text;
}

}  // namespace

std::string_view StateOf(const SandboxRecord& record) {
  if (record.ended) return record.ended->code == 0 ? "Terminated" : "Failed";
  return record.paused ? "Paused" : "Running";
}

Json SandboxView(const SandboxRecord& record) {
  Json view = {{"id", record.id}, {"image", {{"uri", record.image}}}};
  if (record.platform) view["platform"] = PlatformView(record);
  view["status"] = StatusView(record);
  if (!record.metadata.empty()) view["metadata"] = record.metadata;
  if (!record.extensions.empty()) view["extensions"] = record.extensions;
  view["entrypoint"] = record.entrypoint;
  if (record.expires_at) view["expiresAt"] = api::FormatTime(*record.expires_at);
  view["createdAt"] = api::FormatTime(record.container_at);
  return view;
}

Json PendingView(const SandboxRecord& record) {
  Json view = SandboxView(record);
  view["status"] = {{"state", "Pending"},
                    {"reason", "CONTAINER_STARTING"},
                    {"message", "Sandbox container is starting."},
                    {"lastTransitionAt", api::FormatTime(record.container_at)}};
  return view;
}

Json CreatedView(const SandboxRecord& record, const Json& metadata) {
  const std::string created = api::FormatTime(record.created_at);
  Json view = {{"id", record.id},
               {"status",
                {{"state", "Running"},
                 {"reason", "CONTAINER_RUNNING"},
                 {"message", "Sandbox container started successfully."},
                 {"lastTransitionAt", created}}}};
  if (metadata.is_object() && !metadata.empty()) view["metadata"] = metadata;
  if (!record.extensions.empty()) view["extensions"] = record.extensions;
  if (record.platform) view["platform"] = PlatformView(record);
  if (record.expires_at) view["expiresAt"] = api::FormatTime(*record.expires_at);
  view["createdAt"] = created;
  view["entrypoint"] = record.entrypoint;
  return view;
}

Json PageView(const std::vector<Json>& items, int64_t page, int64_t page_size) {
  const auto total = static_cast<int64_t>(items.size());
  const int64_t pages = (total + page_size - 1) / page_size;
  Json shown = Json::array();
  // `page` may be huge: compare before multiplying.
  if (page <= pages) {
    const int64_t end = std::min(total, page * page_size);
    for (int64_t i = (page - 1) * page_size; i < end; ++i) {
      shown.push_back(items[static_cast<size_t>(i)]);
    }
  }
  return {{"items", shown},
          {"pagination",
           {{"page", page},
            {"pageSize", page_size},
            {"totalItems", total},
            {"totalPages", pages},
            {"hasNextPage", page < pages}}}};
}

std::string EventsText(const SandboxRecord& record) {
  std::string text = "Container:  " + record.hostname + " (sandbox-" + record.id +
                     ")\nStatus:     " + ContainerState(record) +
                     "\nCreated:    " + api::FormatDockerTime(record.container_at) +
                     "\nStarted:    " + api::FormatDockerTime(record.started_at);
  if (record.ended) {
    text +=
        "\nFinished:   " + api::FormatDockerTime(absl::FromUnixNanos(record.ended->unix_nanos)) +
        "\nExit Code:  " + std::to_string(record.ended->code);
  }
  return text;
}

std::string InspectText(const SandboxRecord& record) {
  const bool running = !record.ended;
  const std::string finished =
      running ? "0001-01-01T00:00:00Z"
              : api::FormatDockerTime(absl::FromUnixNanos(record.ended->unix_nanos));
  std::string text = "Container ID:   " + record.hostname + "\nName:           sandbox-" +
                     record.id + "\nImage:          " + record.image +
                     "\nStatus:         " + ContainerState(record) +
                     "\nRunning:        " + (running ? "True" : "False") +
                     "\nPaused:         " + (record.paused ? "True" : "False") +
                     "\nExit Code:      " + std::to_string(running ? 0 : record.ended->code) +
                     "\nStarted At:     " + api::FormatDockerTime(record.started_at) +
                     "\nFinished At:    " + finished + "\n\n";
  text += ResourcesText(record);
  text += "\nNetwork:\n  host: 127.0.0.1\n\nPorts:\n  44772/tcp -> 127.0.0.1:" +
          std::to_string(record.execd_port) + "\n  8080/tcp -> 127.0.0.1:8080\n\n";
  text += LabelsText(record);
  text += "\nEnvironment:";
  for (const auto& [key, value] : record.env) text += "\n  " + key + "=" + value;
  return text;
}

std::string SummaryText(const SandboxRecord& record, std::string_view log_tail) {
  const std::string wide(72, '=');
  const std::string thin(40, '-');
  std::string text =
      wide + "\nSANDBOX DIAGNOSTICS SUMMARY\nSandbox ID: " + record.id + "\n" + wide + "\n";
  const auto section = [&](const char* title, std::string_view body) {
    text += "\n" + thin + "\n" + title + "\n" + thin + "\n" + std::string(body) + "\n";
  };
  section("INSPECT", InspectText(record));
  section("EVENTS", EventsText(record));
  section("LOGS", log_tail);
  return text;
}

std::string LogTail(std::string_view log, size_t tail, std::optional<absl::Time> since) {
  std::vector<std::string_view> lines;
  // Every stamp is as long and in the same zone, so that text compares as time does.
  const std::string first = since ? api::FormatLogTime(*since) : "";
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const size_t size = end == std::string_view::npos ? log.size() : end + 1;
    const std::string_view line = log.substr(0, size);
    log.remove_prefix(size);
    if (line.substr(0, first.size()) >= first) lines.push_back(line);
  }
  std::string text;
  for (size_t i = lines.size() > tail ? lines.size() - tail : 0; i < lines.size(); ++i) {
    text += lines[i];
  }
  return text;
}

Json DiagnosticsView(const SandboxRecord& record, std::string_view kind, std::string_view scope,
                     std::string_view content) {
  Json view = {{"sandboxId", record.id},
               {"kind", kind},
               {"scope", scope},
               {"delivery", "inline"},
               {"contentType", kContentType},
               {"content", content},
               {"contentLength", content.size()},
               {"truncated", false}};
  if (scope == "all") {
    const std::string what = kind == "logs" ? "sandbox container logs" : "runtime events";
    view["warnings"] = {"The current backend only contributes " + what + " to the all scope."};
  }
  return view;
}

}  // namespace bridge::local::lifecycle
