// SPDX-License-Identifier: Apache-2.0
//
// local/runtime/spawner.h — starts programs, from a thread that lives as long as this object.
//
// "Die with your parent" (PR_SET_PDEATHSIG) means the parent's *thread*, so children must not be
// made by threads that come and go. Spawn() may be called from any thread. The children are the
// caller's to reap.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace bridge::local::runtime {

struct SpawnRequest {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH unless it has a slash
  std::vector<std::string> env;   // "NAME=value"
  // our descriptor → its number in the child; all others are closed, 0 to 2 are /dev/null unless
  // given
  std::vector<std::pair<int, int>> fds;
};

class Spawner {
 public:
  Spawner();
  ~Spawner();

  // The child is the leader of a session of its own, with default signal dispositions. An error
  // says why it could not be executed (RESOURCE_EXHAUSTED: its arguments are too long).
  absl::StatusOr<pid_t> Spawn(SpawnRequest request);

 private:
  struct Job {
    SpawnRequest request;
    std::promise<absl::StatusOr<pid_t>> result;
  };
  void Run();

  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace bridge::local::runtime
