// SPDX-License-Identifier: Apache-2.0
//
// cli/copy_out.h — from a sandbox to this machine. A file appears in one step with its mode and
// time; what was received of one that did not come to its end lies beside it and is gone on with by
// a later run, if the file is still the same. Nothing is written outside of the target, whatever
// the sandbox says: links are made as links and never written through. Main thread only.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/cli/copy.h"
#include "sandbox/bridge/v1/files.pb.h"

namespace bridge::cli {

class CopyOut {
 public:
  CopyOut(Copy& copy, std::string sandbox_id) : copy_(copy), sandbox_id_(std::move(sandbox_id)) {}

  // Copies each source to `target`, or into it when it is a directory. False: it could not begin;
  // that was said.
  bool Run(const std::vector<std::string>& sources, const std::string& target);
  // A file to stdout.
  bool RunStream(const std::string& source);

 private:
  using FileInfo = sandbox::bridge::v1::FileInfo;

  void CopyEntry(const std::string& source, const std::string& target);
  void CopyTree(const std::string& source, const FileInfo& root, const std::string& target);
  void TakeEntry(const FileInfo& entry, const std::string& target);
  bool IsClosed(const std::string& target) const;
  std::string_view LeftAlone(const std::string& place) const;
  bool List(const std::string& source, std::vector<FileInfo>* entries);
  bool TakeDirectory(const FileInfo& info, const std::string& target, bool* made);
  void TakeFile(const FileInfo& info, const std::string& place);
  void TakeLink(FileInfo info, const std::string& target);
  bool Receive(const FileInfo& info, int fd, int64_t offset);
  bool Stat(const std::string& path, bool follow, FileInfo* info);

  Copy& copy_;
  const std::string sandbox_id_;
  std::vector<std::string> closed_;  // directories that could not be made: nothing goes below them
};

}  // namespace bridge::cli
