// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/record.h"

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace bridge::epp {
namespace {

namespace v1 = sandbox::bridge::v1;

std::string_view BaseName(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  return slash == path.npos || path.size() == 1 ? path : path.substr(slash + 1);
}

std::string_view TypeWord(v1::FileType type) {
  switch (type) {
    case v1::FILE_TYPE_DIRECTORY:
      return "dir";
    case v1::FILE_TYPE_SYMLINK:
      return "symlink";
    case v1::FILE_TYPE_OTHER:
      return "other";
    default:
      return "file";
  }
}

}  // namespace

std::string_view StatusWord(v1::SandboxState state) {
  switch (state) {
    case v1::SANDBOX_STATE_PENDING:
    case v1::SANDBOX_STATE_RESUMING:
      return "creating";
    case v1::SANDBOX_STATE_RUNNING:
      return "running";
    case v1::SANDBOX_STATE_PAUSING:
      return "pausing";
    case v1::SANDBOX_STATE_PAUSED:
      return "paused";
    case v1::SANDBOX_STATE_STOPPING:
      return "stopping";
    case v1::SANDBOX_STATE_TERMINATED:
      return "stopped";
    default:
      return "error";
  }
}

std::optional<std::vector<v1::SandboxState>> StatesOf(std::string_view word) {
  std::vector<v1::SandboxState> states;
  for (int number = v1::SANDBOX_STATE_PENDING; number <= v1::SANDBOX_STATE_UNKNOWN; ++number) {
    const auto state = static_cast<v1::SandboxState>(number);
    if (StatusWord(state) == word) states.push_back(state);
  }
  if (states.empty()) return std::nullopt;
  return states;
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  const absl::Time instant =
      absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", instant, absl::UTCTimeZone());
}

Json SandboxRecord(const v1::Sandbox& sandbox, std::string_view template_name) {
  Json record = {{"sandbox_id", sandbox.sandbox_id()}, {"status", StatusWord(sandbox.state())}};
  const std::string_view shown = template_name.empty() ? sandbox.image() : template_name;
  if (!shown.empty()) record["template"] = shown;
  Json metadata = Json::object();
  for (const auto& [key, value] : sandbox.metadata()) metadata[key] = value;
  record["metadata"] = std::move(metadata);
  if (sandbox.has_created_at()) record["created_at"] = TimeText(sandbox.created_at());
  if (sandbox.has_expires_at()) record["expires_at"] = TimeText(sandbox.expires_at());
  // For people and for other hosts; this one reads no further members.
  if (!sandbox.image().empty()) record["image"] = sandbox.image();
  record["upstream_state"] = sandbox.upstream_state();
  if (!sandbox.state_message().empty()) record["state_message"] = sandbox.state_message();
  return record;
}

Json FileEntry(const v1::FileInfo& info) {
  Json entry = {{"name", BaseName(info.path())}, {"path", info.path()},
                {"type", TypeWord(info.type())}, {"size", info.size_bytes()},
                {"mode", info.mode()},           {"owner", info.owner()},
                {"group", info.group()}};
  if (info.has_modified_at()) entry["mtime"] = TimeText(info.modified_at());
  if (!info.symlink_target().empty()) entry["symlink_target"] = info.symlink_target();
  if (!info.path_bytes().empty()) {
    const std::string& bytes = info.path_bytes();
    entry["path_b64"] = absl::Base64Escape(absl::string_view(bytes));
  }
  return entry;
}

}  // namespace bridge::epp
