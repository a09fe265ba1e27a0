// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_codec.h"

#include <simdjson.h>

#include <nlohmann/json.hpp>

#include "absl/time/time.h"
#include "bridge/base/error.h"
#include "bridge/opensandbox/multipart.h"

namespace bridge {
namespace {

using Json = nlohmann::json;
namespace od = simdjson::ondemand;

// What Go writes for each byte that is not UTF-8.
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

absl::Status Malformed() {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   "the sandbox's daemon described a file in a way that cannot be read");
}

FileType TypeOf(std::string_view name) {
  if (name == "file") return FileType::kFile;
  if (name == "directory") return FileType::kDirectory;
  if (name == "symlink") return FileType::kSymlink;
  return FileType::kOther;
}

absl::Time TimeOf(std::string_view text) {
  absl::Time time;
  std::string ignored;
  const absl::string_view stamp(text.data(), text.size());
  if (!absl::ParseTime(absl::RFC3339_full, stamp, &time, &ignored)) return absl::InfinitePast();
  return time;
}

}  // namespace

absl::Status ParseFileInfo(std::string_view json, FileInfo* info) {
  *info = {};
  thread_local od::parser parser;
  thread_local std::string padded;
  padded.reserve(json.size() + simdjson::SIMDJSON_PADDING);
  padded.assign(json);
  od::document document;
  od::object object;
  if (parser.iterate(padded.data(), json.size(), padded.capacity()).get(document) ||
      document.get_object().get(object)) {
    return Malformed();
  }
  for (auto field : object) {
    std::string_view key, text;
    int64_t number = 0;
    if (field.unescaped_key().get(key)) return Malformed();
    if (key == "path") {
      if (field.value().get_string().get(text)) return Malformed();
      info->path.assign(text);
    } else if (key == "type") {
      if (!field.value().get_string().get(text)) info->type = TypeOf(text);
    } else if (key == "size") {
      if (!field.value().get_int64().get(number)) info->size = number;
    } else if (key == "mode") {
      if (field.value().get_int64().get(number)) continue;
      info->mode = ModeFromDigits(static_cast<int>(number)).value_or(0);
    } else if (key == "modified_at") {
      if (!field.value().get_string().get(text)) info->modified_at = TimeOf(text);
    } else if (key == "owner") {
      if (!field.value().get_string().get(text)) info->owner.assign(text);
    } else if (key == "group") {
      if (!field.value().get_string().get(text)) info->group.assign(text);
    }
  }
  if (info->path.empty()) return Malformed();
  info->path_inexact = info->path.find(kReplacement) != std::string::npos;
  return absl::OkStatus();
}

absl::StatusOr<FileInfo> ParseFileInfoOf(std::string_view json, const std::string& path) {
  const Json files = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!files.is_object()) return Malformed();
  const auto file = files.find(path);
  if (file == files.end() || !file->is_object()) return Malformed();
  FileInfo info;
  const absl::Status status =
      ParseFileInfo(file->dump(-1, ' ', false, Json::error_handler_t::replace), &info);
  if (!status.ok()) return status;
  info.path = path;
  info.path_inexact = false;  // it was addressed, so it is known
  return info;
}

absl::StatusOr<int64_t> ParseFileSize(std::string_view json, const std::string& path) {
  const absl::StatusOr<FileInfo> info = ParseFileInfoOf(json, path);
  if (!info.ok()) return info.status();
  return info->size;
}

std::string MakeDirectoryJson(const std::string& path, std::optional<unsigned> mode) {
  Json options = Json::object();
  if (mode) options["mode"] = ModeDigits(*mode);
  const Json body = {{path, std::move(options)}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string MoveJson(const std::string& source, const std::string& destination) {
  const Json body = Json::array({{{"src", source}, {"dest", destination}}});
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<FileWritten> ParseFileWritten(std::string_view json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Malformed();
  const auto size = object.find("size");
  const auto digest = object.find("sha256");
  const auto atomic = object.find("atomic");
  if (size == object.end() || !size->is_number_integer() || digest == object.end() ||
      !digest->is_string()) {
    return Malformed();
  }
  return FileWritten{size->get<int64_t>(), digest->get<std::string>(),
                     atomic == object.end() || !atomic->is_boolean() || atomic->get<bool>()};
}

}  // namespace bridge
