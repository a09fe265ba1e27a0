// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_codec.h"

#include <simdjson.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/base/utf8.h"
#include "bridge/opensandbox/json.h"
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

bool Unescape(std::string_view base64, std::string* bytes) {
  return absl::Base64Unescape(absl::string_view(base64.data(), base64.size()), bytes);
}

// One member of an entry. False: it makes the entry unreadable.
bool TakeMember(std::string_view key, od::value value, bool own, FileInfo* info) {
  std::string_view text;
  int64_t number = 0;
  if (key == "size" || key == "mode") {
    if (value.get_int64().get(number)) return true;
    if (key == "size") {
      info->size = number;
    } else if (own) {
      info->mode = static_cast<unsigned>(number) & 07777;
    } else {
      info->mode = ModeFromDigits(static_cast<int>(number)).value_or(0);
    }
    return true;
  }
  if (value.get_string().get(text)) return key != "path";
  if (key == "path") {
    info->path.assign(text);
  } else if (key == "type") {
    info->type = TypeOf(text);
    info->type_known = true;
  } else if (key == "modified_at") {
    info->modified_at = TimeOf(text);
  } else if (key == "owner") {
    info->owner.assign(text);
  } else if (key == "group") {
    info->group.assign(text);
  } else if (key == "symlink_target" && info->symlink_target.empty()) {
    info->symlink_target.assign(text);
  } else if (key == "symlink_target_b64") {
    return Unescape(text, &info->symlink_target);
  } else if (key == "path_b64") {
    return Unescape(text, &info->path_bytes);
  }
  return true;
}

absl::Status ParseMembers(std::string_view json, bool own, FileInfo* info) {
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
    std::string_view key;
    od::value value;
    if (field.unescaped_key().get(key) || field.value().get(value)) return Malformed();
    if (!TakeMember(key, value, own, info)) return Malformed();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseFileInfo(std::string_view json, FileInfo* info) {
  RETURN_IF_ERROR(ParseMembers(json, /*own=*/false, info));
  if (info->path.empty()) return Malformed();
  info->path_inexact = info->path.find(kReplacement) != std::string::npos;
  return absl::OkStatus();
}

absl::Status ParseOwnFileInfo(std::string_view json, FileInfo* info) {
  RETURN_IF_ERROR(ParseMembers(json, /*own=*/true, info));
  info->special_bits_known = true;
  if (!info->path_bytes.empty()) info->path = EscapeNonUtf8(info->path_bytes);
  return absl::OkStatus();
}

absl::StatusOr<FileInfo> ParseFileInfoOf(std::string_view json, const std::string& path) {
  const Json files = ParseJson(json);
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

std::string OctalDigits(unsigned mode) {
  char text[16];
  snprintf(text, sizeof(text), "%o", mode);
  return text;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

absl::StatusOr<bool> ParseFileMoved(std::string_view json) {
  const Json object = ParseJson(json);
  if (!object.is_object()) return Malformed();
  const auto replaced = object.find("replaced");
  if (replaced == object.end() || !replaced->is_boolean()) return Malformed();
  return replaced->get<bool>();
}

absl::StatusOr<FileWritten> ParseFileWritten(std::string_view json, std::string_view path) {
  const Json object = ParseJson(json);
  if (!object.is_object()) return Malformed();
  const auto size = object.find("size");
  const auto digest = object.find("sha256");
  const auto atomic = object.find("atomic");
  if (size == object.end() || !size->is_number_integer() || digest == object.end() ||
      !digest->is_string()) {
    return Malformed();
  }
  FileWritten written{size->get<int64_t>(), digest->get<std::string>(),
                      atomic == object.end() || !atomic->is_boolean() || atomic->get<bool>()};
  std::string place = object.value("path", std::string());
  if (object.contains("path_b64")) {
    std::string bytes;
    if (!Unescape(object.value("path_b64", std::string()), &bytes)) return Malformed();
    place = EscapeNonUtf8(bytes);
  }
  if (place != path) written.symlink_followed = std::move(place);
  return written;
}

}  // namespace bridge
