// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/file_types.h — what is at a path, and what to write there. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace bridge {

enum class FileType { kFile, kDirectory, kSymlink, kOther };

struct FileInfo {
  std::string path = {};        // UTF-8, possibly with U+FFFD
  std::string path_bytes = {};  // exact, where it is known and not UTF-8
  bool path_inexact = false;    // U+FFFD stands for bytes that are not known
  FileType type = FileType::kOther;
  bool type_known = false;  // older stock daemons do not tell it
  int64_t size = 0;
  unsigned mode = 0;  // 0..07777
  bool special_bits_known = false;
  std::string owner = {};
  std::string group = {};
  absl::Time modified_at = absl::InfinitePast();
  std::string symlink_target = {};
};

struct FileWrite {
  std::string path = {};
  std::optional<unsigned> mode = {};
  std::string owner = {};  // a name or a decimal number
  std::string group = {};
  bool create_parents = false;
  bool atomic = true;
  // At most one of the three.
  bool if_absent = false;
  std::string if_sha256 = {};
  absl::Time if_modified_at = absl::InfinitePast();
  std::string expected_sha256 = {};
  bool no_follow = false;  // a link at the path is PATH_REJECTED
  std::optional<int64_t> size = {};
};

struct FileMove {
  std::string source = {};
  std::string destination = {};
  bool overwrite = false;
  bool create_parents = false;
};

struct AttributeChange {
  std::optional<unsigned> mode = {};
  std::string owner = {};
  std::string group = {};
  absl::Time modified_at = absl::InfinitePast();  // infinite: unchanged
  bool follow_symlink = false;                    // a link at the path; else it is PATH_REJECTED
};

struct FileWritten {
  int64_t size = 0;
  std::string sha256 = {};
  bool atomic = true;
  std::string symlink_followed = {};  // where a link at the path led, as UTF-8; empty: none
};

}  // namespace bridge
