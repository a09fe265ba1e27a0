// SPDX-License-Identifier: Apache-2.0
//
// server/file_watch.h — small files that hold secrets or settings, read at start and again whenever
// they change. One thread looks at all of them; no inotify, because files in a Kubernetes secret
// are symbolic links that are swapped, and a look every few seconds costs nothing.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace bridge {

// The content of a file of at most 1 MiB. Errors: INVALID_ARGUMENT for `flag`.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, std::string_view flag);

class FileWatch {
 public:
  // Called with the new content on the watching thread; an error is reported and what was in force
  // stays so.
  using Apply = std::function<absl::Status(const std::string& content)>;
  // `flag` and the failure, or OK when it was applied. On the watching thread.
  using Report = std::function<void(std::string_view flag, const absl::Status& status)>;

  FileWatch(absl::Duration period, Report report);
  ~FileWatch();  // joins
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // `content` is what has been read and applied already. Before Start().
  void Add(std::string flag, std::string path, std::string content, Apply apply);
  void Start();
  // Looks now instead of at the end of the period. Any thread.
  void Poke();

 private:
  struct File {
    std::string flag, path, content;
    Apply apply;
    std::string failure = {};  // reported last, so that it is reported once
  };
  void Run();
  void Look(File& file);

  const absl::Duration period_;
  const Report report_;
  std::vector<File> files_;  // the watching thread's once it runs
  std::mutex mu_;
  std::condition_variable changed_;
  bool stop_ = false;   // guarded by mu_
  bool poked_ = false;  // guarded by mu_
  std::thread thread_;
};

}  // namespace bridge
