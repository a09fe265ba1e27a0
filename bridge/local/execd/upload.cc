// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/upload.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "bridge/local/execd/file_ops.h"
#include "bridge/local/execd/go_json.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/spool.h"

namespace bridge::local::execd {
namespace {

constexpr size_t kMemoryBytes = 32 << 20;  // of one upload, as in the real daemon

int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(n);
  }
  return 0;
}

struct Metadata {
  std::string path;
  Permission permission;
};

// The words of json.Unmarshal, which wants the whole text to be one value.
std::string ParseMetadata(std::string_view text, Metadata* out) {
  const JsonParse parsed = ParseGoJson(text);
  if (parsed.error == "EOF" || parsed.error == "unexpected EOF") {
    return "unexpected end of JSON input";
  }
  if (!parsed.error.empty()) return parsed.error;
  const size_t more = text.find_first_not_of(" \t\r\n", parsed.consumed);
  if (more != std::string_view::npos) {
    return "invalid character '" + std::string(1, text[more]) + "' after top-level value";
  }
  JsonFields fields(parsed.value, "FileMetadata", "model.FileMetadata");
  fields.String("path", &out->path);
  if (!fields.ok()) return fields.error();
  JsonFields permission(parsed.value, "FileMetadata.Permission", "model.FileMetadata");
  permission.String("owner", &out->permission.owner);
  permission.String("group", &out->permission.group);
  permission.Int64("mode", &out->permission.mode, "int");
  return permission.error();
}

}  // namespace

Blob::~Blob() {
  if (fd_ >= 0) close(fd_);
}

bool Blob::Append(std::string_view bytes, size_t memory_limit) {
  if (fd_ < 0 && memory_.size() + bytes.size() > memory_limit) {
    fd_ = OpenNamelessFile();
    if (fd_ < 0 || WriteAll(fd_, memory_) != 0) return false;
    memory_ = std::string();
  }
  size_ += static_cast<int64_t>(bytes.size());
  if (fd_ >= 0) return WriteAll(fd_, bytes) == 0;
  memory_.append(bytes);
  return true;
}

std::string Blob::Text() const {
  if (fd_ < 0) return memory_;
  std::string out(static_cast<size_t>(size_), '\0');
  size_t got = 0;
  while (got < out.size()) {
    const ssize_t n = pread(fd_, out.data() + got, out.size() - got, static_cast<off_t>(got));
    if (n <= 0) break;
    got += n;
  }
  out.resize(got);
  return out;
}

int Blob::CopyTo(int fd) const {
  if (fd_ < 0) return WriteAll(fd, memory_);
  off_t from = 0;
  std::string buffer;
  while (from < size_) {
    // In the kernel where the two file systems allow it.
    const ssize_t copied = copy_file_range(fd_, &from, fd, nullptr, size_ - from, 0);
    if (copied > 0) continue;
    buffer.resize(256 * 1024);
    const ssize_t n = pread(fd_, buffer.data(), buffer.size(), from);
    if (n <= 0) return n < 0 ? errno : EIO;
    if (const int error = WriteAll(fd, std::string_view(buffer).substr(0, n)); error != 0) {
      return error;
    }
    from += n;
  }
  return 0;
}

Upload::Upload(std::string_view content_type) {
  const auto media = ParseMediaType(content_type);
  if (!media || media->type != "multipart/form-data") return;
  const auto boundary = media->params.find("boundary");
  if (boundary == media->params.end() || boundary->second.empty()) return;
  parser_ = std::make_unique<MultipartParser>(boundary->second, *this);
}

bool Upload::Feed(std::string_view bytes) {
  if (!parser_ || malformed_) return false;
  malformed_ = !parser_->Feed(bytes);
  return !malformed_;
}

bool Upload::BeginPart(const PartHead& head) {
  current_ = nullptr;
  if (head.filename.empty()) return true;
  auto* list = head.name == "metadata" ? &metadata_ : head.name == "file" ? &files_ : nullptr;
  if (list != nullptr) current_ = list->emplace_back(std::make_unique<Blob>()).get();
  return true;
}

bool Upload::PartData(std::string_view bytes) {
  if (current_ == nullptr) return true;
  const int64_t before = current_->size();
  const size_t own = static_cast<size_t>(before);
  const size_t limit = in_memory_ < kMemoryBytes ? own + kMemoryBytes - in_memory_ : 0;
  if (!current_->Append(bytes, limit)) return false;
  in_memory_ += bytes.size();
  return true;
}

std::optional<ApiError> Upload::Finish() {
  if (!parser_ || malformed_ || !parser_->done()) {
    return ApiError{400, kInvalidFile, "multipart form is empty"};
  }
  if (metadata_.empty()) {
    return ApiError{400, kInvalidFileMetadata, "metadata file is missing"};
  }
  if (files_.empty()) return ApiError{400, kInvalidFileContent, "file is missing"};
  if (metadata_.size() != files_.size()) {
    return ApiError{400, kInvalidFile,
                    "metadata and file count mismatch: " + std::to_string(metadata_.size()) +
                        " vs " + std::to_string(files_.size())};
  }
  for (size_t i = 0; i < files_.size(); ++i) {
    if (auto error = WriteOne(*metadata_[i], *files_[i])) return error;
  }
  return std::nullopt;
}

std::optional<ApiError> Upload::WriteOne(const Blob& metadata, const Blob& content) {
  Metadata wanted;
  if (const std::string error = ParseMetadata(metadata.Text(), &wanted); !error.empty()) {
    return ApiError{400, kInvalidFileMetadata, "invalid metadata format. " + error};
  }
  if (wanted.path.empty()) {
    return ApiError{400, kInvalidFileMetadata, "metadata path is empty"};
  }
  std::string path;
  ApiError failure;
  const int fd = OpenUploadTarget(wanted.path, &path, &failure);
  if (fd < 0) return failure;
  int error = content.CopyTo(fd);
  // Devices and pipes cannot be flushed.
  if (error == 0 && fsync(fd) != 0 && errno != EINVAL && errno != EROFS) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error != 0) {
    return ApiError{500, kRuntimeError,
                    "error copying file " + path + ". " + GoPathError("write", path, error)};
  }
  if (const std::string reason = ApplyPermission(path, wanted.permission); !reason.empty()) {
    return ApiError{500, kRuntimeError, "error chmoding file " + path + ". " + reason};
  }
  return std::nullopt;
}

}  // namespace bridge::local::execd
