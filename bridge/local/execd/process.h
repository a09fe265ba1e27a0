// SPDX-License-Identifier: Apache-2.0
//
// local/execd/process.h — child processes: starting, signalling, waiting, reaping.
//
// A Processes object owns *every* child of this program: it reaps unknown ones too, as pid 1 must.
// So there is one, and nothing else may fork or wait. Children are killed by the kernel when this
// program dies (PR_SET_PDEATHSIG); since that is tied to the thread that forked, one thread that
// lives as long as the object does all forking.
//
// Any thread may call anything here. A signal is never sent to a pid that was reaped meanwhile.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"

namespace bridge::local::execd {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary
};

struct SpawnSpec {
  std::string program;  // a path; no lookup
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value"
  std::string cwd;               // empty: this program's
  std::optional<Identity> identity;
  // Become 0, 1 and 2 of the child. -1: /dev/null. They stay the caller's.
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  // A session of its own with stdin_fd as its controlling terminal, instead of only a process
  // group.
  bool controlling_terminal = false;
  bool ignore_sigint = false;  // all other signals have their default
  // If it says true when the turn of this one comes, nothing is started: ECANCELED.
  const std::atomic<bool>* cancelled = nullptr;
};

class Processes;

// One child that was started. It is also the leader of its process group.
class Process {
 public:
  pid_t pid() const { return pid_; }

  // The wait status (WIFEXITED…) once it has ended.
  std::optional<int> status() const;
  // Waits for the end; the status, or nothing after `timeout`.
  std::optional<int> Wait(absl::Duration timeout) const;
  // Calls `then` with the wait status in an unspecified thread when it has ended, perhaps at once,
  // and in any case before Wait() and status() show the end if it is called before the end. It must
  // not block or call this object.
  void OnExit(std::function<void(int status)> then);

  // Sends to the whole group. False: the leader has ended, whose number may be another's by now.
  bool SignalGroup(int signal) const;
  // Sends to the leader only.
  bool Signal(int signal) const;

 private:
  friend class Processes;
  explicit Process(pid_t pid) : pid_(pid) {}
  void Reap();

  const pid_t pid_;
  mutable std::mutex mu_;
  mutable std::condition_variable changed_;
  bool reaped_ = false;  // the pid may be another's
  std::optional<int> status_;
  std::vector<std::function<void(int)>> on_exit_;
};

class Processes {
 public:
  Processes();
  // Kills all groups that were started and waits for their leaders.
  ~Processes();

  struct SpawnResult {
    std::shared_ptr<Process> process;  // null: it failed
    int error = 0;                     // the errno then
    // What failed: exec, or an earlier step in the child.
    enum class Step { kFork, kTerminal, kIdentity, kDirectory, kExec } step = Step::kFork;
  };
  SpawnResult Spawn(const SpawnSpec& spec);

  // SIGKILL to everything below this program, until nothing is left or `patience` has passed. New
  // Spawns fail from here on.
  void KillAll(absl::Duration patience);

 private:
  struct Job;
  void SpawnLoop();
  void ReapLoop();
  SpawnResult DoSpawn(const SpawnSpec& spec);

  std::mutex mu_;                    // held for moments, never while something is started
  std::condition_variable work_;     // for the spawner alone: jobs_, stopping_
  std::condition_variable changed_;  // running_, spawns_, stopping_
  std::deque<Job*> jobs_;
  std::map<pid_t, std::shared_ptr<Process>> running_;
  bool spawning_ = false;  // there may be a child that is not yet in running_
  uint64_t spawns_ = 0;    // that are over
  const std::unique_ptr<char[]> child_stack_;
  const std::string oom_score_;  // of children
  bool closed_ = false;          // no more spawns
  bool stopping_ = false;        // the threads shall end
  std::thread spawner_;
  std::thread reaper_;
};

}  // namespace bridge::local::execd
