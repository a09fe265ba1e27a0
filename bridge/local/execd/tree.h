// SPDX-License-Identifier: Apache-2.0
//
// local/execd/tree.h — many levels of directories in a loop. How deep a path or a tree is, a client
// or a program decides, and threads have small stacks: nothing here takes a frame for each level.
// Blocks on the disk; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bridge/local/execd/file_info.h"

namespace bridge::local::execd {

// `path`, which is absolute, and those above it, as far as nothing is there. The uppermost first.
std::vector<std::string> MissingDirectories(const std::string& path);

struct WalkFailure {
  std::string operation;  // "open", "read", "lstat"
  std::string path;
  int error = 0;
};

// What is below a directory: names in byte order, parents before their children. Links are not
// followed.
class TreeWalk {
 public:
  enum class Step { kEntry, kFailed, kEnd };

  // So many levels and no more.
  explicit TreeWalk(int64_t depth) : depth_(depth) {}

  // Begins below `root`.
  std::optional<WalkFailure> Open(const std::string& root) { return Enter(root); }
  // After a failure the walk may go on; what could not be looked at is left out then.
  Step Next(FileInfo* entry, WalkFailure* failure);

 private:
  struct Level {
    std::string directory;
    std::vector<std::string> names;
    size_t next = 0;
  };

  std::optional<WalkFailure> Enter(const std::string& directory);

  const int64_t depth_;
  std::vector<Level> levels_;
  std::string below_;  // the directory that was told last, whose content is next
};

}  // namespace bridge::local::execd
