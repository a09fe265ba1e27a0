// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/exec_output_file.h — one output of a command on a stock daemon: a file that grows and
// is fetched in parts.
//
// It begins with a mark of the bridge's, from before the command. A program that opens its own
// output by name to write it anew (`>/dev/stderr`) cuts the file, and the mark with it: so that a
// loss is known which the size alone does not show. Offsets and sizes are those of the output,
// without the mark. Owned by one task; loop thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/exec.h"
#include "bridge/opensandbox/sandbox_handle.h"

namespace bridge {

class OutputFile {
 public:
  // `sandbox` outlives this.
  OutputFile(const SandboxHandle& sandbox, StreamId stream, std::string path, std::string mark)
      : sandbox_(sandbox), stream_(stream), path_(std::move(path)), mark_(std::move(mark)) {}

  // Of an exec that was started before: the byte from which on it is wanted. Before anything else.
  void BeginAt(int64_t offset) {
    begin_ = offset_ = offset;
    attached_ = true;
  }
  int64_t begin() const { return begin_; }
  const std::string& path() const { return path_; }

  // Nobody wants the rest of it.
  void Skip();
  bool skipped() const { return skipped_; }

  // What a look at the file says. INVALID_ARGUMENT: an attach wants what is ahead of it; refused().
  absl::Status TakeSize(int64_t file_size);
  bool refused() const { return refused_; }
  // The file was there.
  bool there() const { return there_; }
  // There is more than was fetched, as far as was seen.
  bool behind() const { return !skipped_ && offset_ < size_; }
  // As far as was seen: what a caller says to have had is not.
  int64_t printed() const;
  // Some of it was printed and is not to be had.
  bool lossy() const { return lossy_ || (!skipped_ && offset_ < seen_); }

  // It was fetched to its end, and had no whole mark: it was cut, or the command never began.
  bool unmarked() const { return unmarked_; }

  // Begins to fetch what is not fetched yet. Then Read() as long as fetching().
  void Fetch();
  bool fetching() const { return download_ != nullptr; }
  void Abandon() { download_.reset(); }
  // The next piece of it. Sets `absent` where the file is not there.
  Task<absl::Status> Read(ExecBatch* batch, bool* absent);

  // Once nothing more is to come: was what came by several fetches the beginning and the rest of
  // one file?
  Task<absl::Status> CheckMark();

 private:
  HttpRequest Request(absl::Duration limit) const;
  absl::Status TakeHead(const HttpHead& head, bool* absent);
  void Deliver(std::string bytes, ExecBatch* batch);
  void TakeBeginning(std::string_view bytes, bool last, ExecBatch* batch);
  int64_t mark_size() const { return static_cast<int64_t>(mark_.size()); }

  const SandboxHandle& sandbox_;
  const StreamId stream_;
  const std::string path_;
  std::string mark_;  // empty once the file is known to have none any more
  int64_t begin_ = 0;
  int64_t offset_ = 0;
  int64_t size_ = 0;  // as last seen
  int64_t seen_ = 0;  // the largest size that was
  bool attached_ = false;
  bool skipped_ = false;
  bool refused_ = false;
  bool there_ = false;
  bool lossy_ = false;
  // Of the fetch under way.
  std::unique_ptr<Transfer> download_;
  bool head_seen_ = false;
  bool from_beginning_ = false;  // the mark comes first
  std::string beginning_;        // what has come of it
  // Of those before.
  bool unmarked_ = false;
  bool check_needed_ = false;  // one did not see the mark
};

}  // namespace bridge
