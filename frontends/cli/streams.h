// SPDX-License-Identifier: Apache-2.0
//
// cli/streams.h — the three descriptors of a person's terminal or pipe.
//
// Bytes go out as they are, at once and without a buffer of our own. A write never changes the
// descriptors' flags (they are shared with other programs) and can be abandoned from another
// thread, so that Ctrl-C works while a full pipe blocks. SIGPIPE must be ignored.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <string_view>

#include "absl/status/status.h"

namespace bridge::cli {

class Streams {
 public:
  // Borrows the descriptors.
  Streams(int in, int out, int err);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // One thread at a time per stream. Fails with
  //   Aborted            the reader is gone (EPIPE)
  //   Cancelled          Abandon() was called
  //   Unknown            another error, in words
  absl::Status Out(std::string_view bytes) { return Write(out_, bytes); }
  absl::Status Err(std::string_view bytes) { return Write(err_, bytes); }

  // Words of sbx itself, on stderr: a note ("sbx: line") or a text as it is. They get through after
  // Abandon() and are best effort: what cannot be told has nowhere else to go.
  void Note(std::string_view line);
  void Say(std::string_view text);

  // Any thread: ends a blocked write and fails the later ones to the later ones, but not what sbx
  // says.
  void Abandon();

  int in() const { return in_; }
  bool in_is_terminal() const;
  bool out_is_terminal() const;
  bool err_is_terminal() const;
  // Whether stdout or stderr is this file.
  bool WritesTo(const struct stat& file) const;
  // Readable when Abandon() was called.
  int abandon_fd() const { return abandon_fd_; }

 private:
  absl::Status Write(int fd, std::string_view bytes);

  const int in_, out_, err_;
  const int abandon_fd_;
  std::atomic<bool> abandoned_ = false;
};

}  // namespace bridge::cli
