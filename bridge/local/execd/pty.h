// SPDX-License-Identifier: Apache-2.0
//
// local/execd/pty.h — one `/pty` session: a shell or command on a terminal or on pipes, its
// numbered output, and the one client that holds it.
//
// Threads: a connection's thread runs Attach() for as long as its client holds the session; while a
// process runs, threads of this object read its output and wait for its end. Delivery to the client
// happens under one lock, so that replay, `connected` and live output keep their order, and a
// client that does not read blocks the process. What the real daemon does wrong is done here as
// well: attaching after the end runs the command again, and on a terminal the end can outrun
// output.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bridge/local/execd/process.h"
#include "bridge/local/execd/pty_holder.h"
#include "bridge/local/execd/replay_ring.h"
#include "bridge/local/http/websocket.h"

namespace bridge::local::execd {

struct PtySpec {
  std::string id;
  std::string cwd;      // existing, or empty
  std::string command;  // empty: an interactive shell
};

struct AttachOptions {
  bool terminal = true;
  bool takeover = false;
  int64_t since = 0;
  bool ignore_sigint = false;  // if a process is started
};

// First come, first served: a reader of fast output would otherwise hardly ever let anybody else
// in.
class FairMutex {
 public:
  void lock() {
    std::unique_lock lock(mu_);
    const uint64_t ticket = next_++;
    changed_.wait(lock, [&] { return serving_ == ticket; });
  }
  void unlock() {
    const std::lock_guard lock(mu_);
    ++serving_;
    changed_.notify_all();
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  uint64_t next_ = 0;
  uint64_t serving_ = 0;
};

// Made by std::make_shared: its threads keep it alive.
class Pty : public std::enable_shared_from_this<Pty> {
 public:
  // `processes` outlives this object.
  Pty(Processes& processes, PtySpec spec);
  // Does somebody hold it?
  bool held() const { return holder_count_.load() > 0; }

  // Serves a client until it goes, is displaced or the process has ended.
  void Attach(http::WebSocket& socket, const AttachOptions& options);

  // SIGKILL to the group.
  void Kill();

  // {"session_id":…,"running":…,"output_offset":…}
  std::string StatusJson() const;

 private:
  struct Running;

  bool Acquire(const std::shared_ptr<PtyHolder>& holder, bool takeover);
  void Release(const std::shared_ptr<PtyHolder>& holder);
  std::string Start(const AttachOptions& options);  // an empty text is success
  std::string StartOnTerminal(SpawnSpec spec, const std::shared_ptr<Running>& running);
  std::string StartOnPipes(SpawnSpec spec, const std::shared_ptr<Running>& running);
  void Greet(PtyHolder& holder, const AttachOptions& options);
  void Serve(PtyHolder& holder);
  bool HandleFrame(PtyHolder& holder, const http::WebSocket::Message& message);
  bool HandleText(PtyHolder& holder, std::string_view text);
  bool WriteInput(PtyHolder& holder, std::string_view bytes);
  void Pump(const std::shared_ptr<Running>& running, int fd, char tag);
  void Deliver(char tag, std::string_view bytes);
  void AwaitEnd(std::shared_ptr<Running> running, std::vector<std::thread> pumps);

  Processes& processes_;
  const PtySpec spec_;
  std::atomic<int> holder_count_{0};

  mutable std::mutex mu_;  // guards what follows; never held over a write to a client
  std::condition_variable changed_;
  std::shared_ptr<PtyHolder> holder_;
  std::shared_ptr<Running> running_;  // null: nothing runs
  ReplayRing ring_{1 << 20};

  FairMutex delivery_;  // order of what goes to the client; taken before mu_
};

}  // namespace bridge::local::execd
