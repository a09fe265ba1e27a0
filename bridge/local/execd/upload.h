// SPDX-License-Identifier: Apache-2.0
//
// local/execd/upload.h — `POST /files/upload`: the body's parts are collected first (small ones in
// memory, the rest in temporary files without a name) and written only when all of them are here,
// so a body that breaks off changes nothing. One thread an upload; blocks on the disk.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/local/execd/api_error.h"
#include "bridge/local/execd/multipart.h"

namespace bridge::local::execd {

// Bytes that move from memory to a nameless file when they become many.
class Blob {
 public:
  ~Blob();
  // False when the disk fails.
  bool Append(std::string_view bytes, size_t memory_limit);
  int64_t size() const { return size_; }
  // All of it; for small ones.
  std::string Text() const;
  // Writes all of it to `fd`; 0 or the errno.
  int CopyTo(int fd) const;

 private:
  std::string memory_;
  int fd_ = -1;
  int64_t size_ = 0;
};

class Upload final : public PartSink {
 public:
  // `content_type` is the header's value.
  explicit Upload(std::string_view content_type);

  // Feeds the body. False: it is malformed, the rest may be dropped.
  bool Feed(std::string_view bytes);
  // The body has ended: checks the parts and writes the files.
  std::optional<ApiError> Finish();

  bool BeginPart(const PartHead& head) override;
  bool PartData(std::string_view bytes) override;
  bool EndPart() override { return true; }

 private:
  std::optional<ApiError> WriteOne(const Blob& metadata, const Blob& content);

  std::unique_ptr<MultipartParser> parser_;  // null: not multipart
  bool malformed_ = false;
  std::vector<std::unique_ptr<Blob>> metadata_;
  std::vector<std::unique_ptr<Blob>> files_;
  Blob* current_ = nullptr;  // null: a part that nobody asked for
  size_t in_memory_ = 0;
};

}  // namespace bridge::local::execd
