// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/watch.h — changes below a directory, by inotify. One thread a watch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "bridge/local/execd/extra/failure.h"

namespace bridge::local::execd::extra {

struct WatchEvent {
  enum class Kind { kCreated, kModified, kAttributes, kDeleted, kMoved, kOverflow, kGone };
  Kind kind;
  std::string path;
  std::string old_path;   // of a move
  std::string_view type;  // "file", "directory", "symlink", "other", "unknown"

  // One line, its end included.
  std::string Line() const;
};

class Watch {
 public:
  Watch() = default;
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Everything from here on is reported. `root` is absolute.
  std::optional<Failure> Open(const std::string& root, bool recursive);

  // Polls readable when there may be events.
  int fd() const { return fd_; }

  // What has happened; empty when nothing has. After kGone nothing more comes. A failure (a new
  // directory cannot be watched) ends the watch.
  std::optional<Failure> Read(std::vector<WatchEvent>* out);

 private:
  struct Raw {
    int wd;
    uint32_t mask;
    uint32_t cookie;
    std::string name;
  };

  std::optional<Failure> AddTree(const std::string& path, std::vector<WatchEvent>* found);
  std::optional<Failure> AddDirectory(const std::string& path, std::vector<WatchEvent>* found,
                                      std::vector<std::string>* below);
  bool ReadRaw(std::vector<Raw>* out);
  std::vector<Raw> ReadBatch();
  std::optional<Failure> Handle(const Raw& event, const Raw* partner, std::vector<WatchEvent>* out);
  std::optional<Failure> Appeared(const std::string& path, bool directory,
                                  std::vector<WatchEvent>* out);
  void Vanished(const std::string& path);
  void Renamed(const std::string& from, const std::string& to);

  int fd_ = -1;
  std::string root_;
  int root_wd_ = -1;
  bool recursive_ = false;
  bool gone_ = false;
  std::map<int, std::string> paths_;  // of the watched directories
};

}  // namespace bridge::local::execd::extra
