// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/exec.h — one exec of `/v1/exec`: a process on pipes, its two numbered outputs, its
// input, its end, and the readers that follow it.
//
// One thread a running exec moves bytes between the pipes and the rings. Readers are connections'
// threads: each has a Reader, which wakes it by a descriptor it can poll beside its socket. Any
// thread may call anything here. Made by Start(); lives while the process runs or somebody holds
// it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "bridge/base/ready_thread.h"
#include "bridge/local/execd/extra/exec_spec.h"
#include "bridge/local/execd/extra/failure.h"
#include "bridge/local/execd/extra/output_ring.h"
#include "bridge/local/execd/process.h"
#include "bridge/local/execd/timer.h"

namespace bridge::local::execd::extra {

inline constexpr int64_t kStdinWindowBytes = 262144;

class Exec : public std::enable_shared_from_this<Exec> {
 public:
  // Starts the process, or says why not. Its output waits in the pipes until Go(), so that a first
  // reader can be attached before a byte is forgotten. `processes` and `timer` outlive the process.
  // Nothing is started once `cancelled` is true.
  static std::variant<std::shared_ptr<Exec>, Failure> Start(Processes& processes, Timer& timer,
                                                            const ExecSpec& spec,
                                                            const std::atomic<bool>& cancelled);
  ~Exec();
  void Go();

  const std::string& id() const { return id_; }
  bool kill_on_disconnect() const { return kill_on_disconnect_; }

  // A reader's place in both outputs. While it exists, nothing that it has not read is forgotten.
  // Belongs to one thread; goes before the exec does.
  class Reader {
   public:
    // Polls readable when something is new.
    int wake_fd() const { return wake_fd_; }
    ~Reader();

   private:
    friend class Exec;
    Reader(std::shared_ptr<Exec> exec, int64_t out, int64_t err);
    const std::shared_ptr<Exec> exec_;
    const int wake_fd_;
    int64_t out_;
    int64_t err_;
    int64_t acked_ = 0;
    bool told_closed_ = false;
    bool told_exit_ = false;
  };
  // OUTPUT_GONE or INVALID_ARGUMENT when these places are not held.
  std::variant<std::unique_ptr<Reader>, Failure> Attach(int64_t out, int64_t err);

  // What has become new for a reader, in order; empty when nothing has. At most about `most` bytes
  // of output. *last: DRAINED was among them.
  std::vector<std::string> NextFrames(Reader& reader, size_t most, bool* last);
  std::string StartedJson() const;
  std::string StartedFrame() const;

  // Takes input [offset, offset + bytes.size()). What was taken before is skipped. *accepted is the
  // number of bytes that were skipped or taken: fewer than given when the buffer is full.
  std::optional<Failure> WriteInput(int64_t offset, std::string_view bytes, size_t* accepted);
  std::optional<Failure> EndInput(int64_t length);
  // Waits until the pipe has taken input up to `number`, has closed, or the time is over. True:
  // taken.
  bool AwaitTaken(int64_t number, absl::Duration patience);
  int64_t taken() const;

  // By a client's request. NOT_RUNNING when it has ended.
  std::optional<Failure> Signal(int number, bool group);
  void Kill();
  bool AwaitEnd(absl::Duration patience);

  bool running() const { return running_; }
  absl::Time started_at() const { return started_at_; }
  std::optional<absl::Time> finished_at() const;
  std::string InfoJson() const;

 private:
  Exec(const ExecSpec& spec);

  void Drive();
  bool Step();                    // false: nothing is left to do
  absl::Duration CheckDrained();  // until it must be looked at again
  bool TakeLate();
  bool Blocked() const;
  bool ReadOutput(bool err);  // true: it got something
  void PushInput();
  void CloseInput();
  void Ended(int status);
  void Notify();
  void WakeDriver() const;
  int64_t Keep(bool err) const;
  int64_t Room(bool err) const;
  int64_t NextInput() const;
  Failure StdinFailure(std::string_view code, std::string_view message) const;
  std::string OutcomeJson() const;
  std::string OpenJson() const;  // two members, without braces
  std::string DrainedJson() const;

  const std::string id_;
  const bool kill_on_disconnect_;
  const absl::Duration drain_;
  absl::Time started_at_;
  std::shared_ptr<Process> process_;
  std::optional<ReadyThread> driver_;  // until Go()
  int driver_fd_ = -1;                 // wakes the driver
  // !status_, for who looks at many execs at once and must not wait for the lock of each.
  std::atomic<bool> running_ = true;

  mutable std::mutex mu_;  // guards the rest
  std::condition_variable changed_;
  std::set<Reader*> readers_;
  OutputRing out_;
  OutputRing err_;
  int stdin_fd_ = -1;
  int stdout_fd_ = -1;
  int stderr_fd_ = -1;
  bool out_open_ = false;  // when it was drained
  bool err_open_ = false;
  absl::Time drain_from_;  // since then a descendant's output is awaited
  size_t late_bytes_ = 0;  // that came after the time for them was over
  bool has_stdin_ = false;
  std::string input_;  // accepted, not yet in the pipe
  size_t input_used_ = 0;
  int64_t taken_ = 0;
  std::optional<int64_t> input_end_;
  bool stdin_closed_ = true;
  std::optional<int> status_;
  absl::Time finished_at_;
  bool timed_out_ = false;
  uint64_t requested_signals_ = 0;  // bit n-1: a client had signal n delivered
  bool drained_ = false;
};

}  // namespace bridge::local::execd::extra
