// SPDX-License-Identifier: Apache-2.0
//
// cli/copy_in.h — from this machine into a sandbox. Every file appears in one step with its mode;
// what is there already (same size, time and kind) is left alone, so that a copy that was broken
// off is gone on with by doing it again. Links are made as links and never written through, unless
// CopyOptions::follow. Main thread only.
#pragma once

#include <sys/stat.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontends/cli/copy.h"
#include "sandbox/bridge/v1/files.pb.h"

namespace bridge::cli {

class CopyIn {
 public:
  CopyIn(Copy& copy, std::string sandbox_id) : copy_(copy), sandbox_id_(std::move(sandbox_id)) {}

  // Copies each source to `target`, or into it when it is a directory. False: it could not begin;
  // that was said.
  bool Run(const std::vector<std::string>& sources, const std::string& target);
  // What comes on a descriptor, to a file.
  bool RunStream(int fd, const std::string& target);

 private:
  using FileInfo = sandbox::bridge::v1::FileInfo;

  bool Stat(const std::string& path, bool follow, std::optional<FileInfo>* found);
  bool Index(const std::string& place);
  void CopyEntry(const std::string& source, const std::string& target);
  void CopyDirectory(const std::string& source, const std::string& target, const struct stat& info);
  void CopyFile(const std::string& source, const std::string& target, const struct stat& info);
  void CopyLink(const std::string& source, const std::string& target);
  bool Send(int fd, const std::string& target, const struct stat* info);
  void Finish(const std::string& target, const struct stat& info);
  // What is at a path, as far as it was listed; null: nothing.
  const FileInfo* There(const std::string& target) const;

  Copy& copy_;
  const std::string sandbox_id_;
  std::map<std::string, FileInfo> there_;
  std::vector<std::pair<dev_t, ino_t>> above_;  // the directories that are being copied
};

}  // namespace bridge::cli
