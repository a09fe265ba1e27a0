// SPDX-License-Identifier: Apache-2.0
//
// local/execd/commands.h — the commands of `/command`: running them, and what is known of them.
//
// A foreground command is run by the thread that calls RunForeground(), which returns when the
// command has ended and the stream has lingered; the client's going does not end the command. A
// background one runs by itself. Records live as long as this object (with private spools: 24 h
// after the end). Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "bridge/local/execd/api_error.h"
#include "bridge/local/execd/event_stream.h"
#include "bridge/local/execd/habits.h"
#include "bridge/local/execd/process.h"
#include "bridge/local/execd/run_request.h"
#include "bridge/local/execd/timer.h"

namespace bridge::local::execd {

class Commands {
 public:
  // Both outlive this object.
  Commands(Processes& processes, Timer& timer, Habits habits);
  ~Commands();

  // Runs a foreground command to its end. An error means that nothing was sent. `linger`: whether
  // the stream stays open after the last event (`/code` does not).
  std::optional<ApiError> RunForeground(const RunRequest& request, EventStream& stream,
                                        bool linger = true);
  // Starts a background command. As above; returns when the stream has lingered.
  std::optional<ApiError> RunBackground(const RunRequest& request, EventStream& stream);

  // The JSON of `GET /command/status/{id}`.
  std::optional<ApiError> Status(const std::string& id, std::string* json) const;

  // Output of a background command from byte `cursor` on: an open file and how much of it there is
  // now.
  struct Logs {
    int fd = -1;  // the caller's to close; -1: nothing to read
    int64_t begin = 0;
    int64_t end = 0;  // also the value of the cursor header
  };
  std::optional<ApiError> OpenLogs(const std::string& id, int64_t cursor, Logs* logs) const;

  // SIGTERM to the group, up to 3 s of patience, SIGKILL. Returns when it has ended or was killed.
  std::optional<ApiError> Interrupt(const std::string& id);

  // Is a foreground or background command running? Children of other kinds then inherit another
  // disposition of SIGINT (see Habits).
  bool Busy() const { return busy_->load() > 0; }

 private:
  struct Record;
  struct Run;

  void Insert(std::shared_ptr<Record> record);
  std::shared_ptr<Record> Find(const std::string& id) const;
  static void Finish(Record& record, int wait_status);
  void FollowOutput(Run& run);
  void Linger(EventStream& stream, absl::Time last_ping);
  void ForgetOld();

  Processes& processes_;
  Timer& timer_;
  const Habits habits_;
  // Shared with what is called at a command's end, which may outlive this object.
  const std::shared_ptr<std::atomic<int>> busy_ = std::make_shared<std::atomic<int>>(0);
  mutable std::mutex mu_;
  std::map<std::string, std::shared_ptr<Record>> records_;
};

}  // namespace bridge::local::execd
