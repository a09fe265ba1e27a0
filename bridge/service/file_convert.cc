// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/file_convert.h"

#include <algorithm>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/base/utf8.h"
#include "bridge/opensandbox/file_client.h"
#include "bridge/service/time_convert.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr size_t kMaxOwnerBytes = 256;

}  // namespace

absl::StatusOr<std::string> PathFromProto(std::string_view field, std::string_view path) {
  RETURN_IF_ERROR(CheckPath(field, path));
  return NormalPath(path);
}

absl::StatusOr<std::string> ChangeablePathFromProto(std::string_view field, std::string_view path) {
  ASSIGN_OR_RETURN(std::string normal, PathFromProto(field, path));
  if (normal != "/") return normal;
  return MakeError(ErrorReason::ERROR_REASON_PATH_REJECTED,
                   std::string(field) + ": the root of the file system cannot be changed",
                   {.field = std::string(field)});
}

absl::Status CheckOwner(std::string_view field, std::string_view owner) {
  RETURN_IF_ERROR(CheckPlainText(field, owner, kMaxOwnerBytes));
  if (owner.find_first_of(": /") == std::string_view::npos) return absl::OkStatus();
  return InvalidField(field, "must not hold ':', '/' or a space");
}

absl::Status CheckMode(std::string_view field, uint32_t mode) {
  if (mode <= 07777) return absl::OkStatus();
  return InvalidField(field, "must be at most 07777 (4095)");
}

absl::Status CheckSha256(std::string_view field, std::string_view digest) {
  constexpr size_t kDigits = 64;
  const bool hex = std::all_of(digest.begin(), digest.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  });
  if (digest.empty() || (hex && digest.size() == kDigits)) return absl::OkStatus();
  return InvalidField(field, "must be 64 hex digits");
}

absl::StatusOr<FileWrite> WriteFromProto(std::string_view field, const v1::WriteOptions& options) {
  const std::string prefix = std::string(field) + ".";
  FileWrite write;
  ASSIGN_OR_RETURN(write.path, ChangeablePathFromProto(prefix + "path", options.path()));
  if (options.has_mode()) {
    RETURN_IF_ERROR(CheckMode(prefix + "mode", options.mode()));
    write.mode = options.mode();
  }
  RETURN_IF_ERROR(CheckOwner(prefix + "owner", options.owner()));
  RETURN_IF_ERROR(CheckOwner(prefix + "group", options.group()));
  write.owner = options.owner();
  write.group = options.group();
  write.create_parents = options.create_parents();
  write.no_follow = options.no_follow();
  write.atomic = !options.has_atomic() || options.atomic();
  RETURN_IF_ERROR(CheckSha256(prefix + "expected_sha256", options.expected_sha256()));
  const auto lower = [](std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c;
    return text;
  };
  write.expected_sha256 = lower(options.expected_sha256());
  const v1::WriteOptions::Precondition& condition = options.precondition();
  switch (condition.kind_case()) {
    case v1::WriteOptions::Precondition::kAbsent:
      if (!condition.absent()) {
        return InvalidField(prefix + "precondition.absent", "must be true");
      }
      write.if_absent = true;
      break;
    case v1::WriteOptions::Precondition::kSha256:
      if (condition.sha256().empty()) {
        return InvalidField(prefix + "precondition.sha256", "must be 64 hex digits");
      }
      RETURN_IF_ERROR(CheckSha256(prefix + "precondition.sha256", condition.sha256()));
      write.if_sha256 = lower(condition.sha256());
      break;
    case v1::WriteOptions::Precondition::kModifiedAt: {
      ASSIGN_OR_RETURN(write.if_modified_at, CheckTimestamp(prefix + "precondition.modified_at",
                                                            condition.modified_at()));
      break;
    }
    case v1::WriteOptions::Precondition::KIND_NOT_SET:
      if (options.has_precondition()) {
        return InvalidField(prefix + "precondition", "must name absent, sha256 or modified_at");
      }
      break;
  }
  return write;
}

v1::FileType FileTypeToProto(FileType type) {
  switch (type) {
    case FileType::kFile:
      return v1::FILE_TYPE_FILE;
    case FileType::kDirectory:
      return v1::FILE_TYPE_DIRECTORY;
    case FileType::kSymlink:
      return v1::FILE_TYPE_SYMLINK;
    case FileType::kOther:
      break;
  }
  return v1::FILE_TYPE_OTHER;
}

void FileChangeToProto(FileChange change, v1::WatchEvent* proto) {
  using Kind = FileChange::Kind;
  const auto kind = [&change] {
    switch (change.kind) {
      case Kind::kReady:
        return v1::WatchEvent::KIND_READY;
      case Kind::kCreated:
        return v1::WatchEvent::KIND_CREATED;
      case Kind::kModified:
        return v1::WatchEvent::KIND_MODIFIED;
      case Kind::kAttributes:
        return v1::WatchEvent::KIND_ATTRIBUTES;
      case Kind::kDeleted:
        return v1::WatchEvent::KIND_DELETED;
      case Kind::kMoved:
        return v1::WatchEvent::KIND_MOVED;
      case Kind::kOverflow:
        return v1::WatchEvent::KIND_OVERFLOW;
      case Kind::kKeepalive:
        break;
    }
    return v1::WatchEvent::KIND_KEEPALIVE;
  };
  proto->set_kind(kind());
  proto->set_path(std::move(change.path));
  if (!change.path_bytes.empty()) proto->set_path_bytes(std::move(change.path_bytes));
  if (!change.old_path.empty()) proto->set_old_path(std::move(change.old_path));
  if (change.type) proto->set_type(FileTypeToProto(*change.type));
}

void FileInfoToProto(const FileInfo& info, v1::FileInfo* proto) {
  proto->set_path(info.path);
  if (!info.path_bytes.empty()) proto->set_path_bytes(info.path_bytes);
  proto->set_path_inexact(info.path_inexact);
  proto->set_type(FileTypeToProto(info.type));
  proto->set_size_bytes(info.size);
  proto->set_mode(info.mode);
  proto->set_special_bits_known(info.special_bits_known);
  proto->set_owner(info.owner);
  proto->set_group(info.group);
  if (info.modified_at != absl::InfinitePast()) {
    TimeToProto(info.modified_at, proto->mutable_modified_at());
  }
  proto->set_symlink_target(ToValidUtf8(info.symlink_target));
}

}  // namespace bridge
