// SPDX-License-Identifier: Apache-2.0
//
// base/ready_thread.h — a thread that is made before there is work for it.
//
// Who shares a limit on threads with others can be refused one at any time (EAGAIN; std::thread
// throws then, which ends a program that does not expect it). Work that cannot be taken back, a
// process that is started say, wants its threads to be there before it begins:
//
//   std::optional<ReadyThread> reader = ReadyThread::Make();
//   if (!reader) return NoRoom();  // nothing has happened yet
//   StartProcess(...);
//   std::thread running = std::move(*reader).Run([...] { ... });
#pragma once

#include <future>
#include <optional>
#include <thread>

#include "absl/functional/any_invocable.h"

namespace bridge {

class ReadyThread {
 public:
  // Nothing: the system has no room for another thread now. Any thread.
  static std::optional<ReadyThread> Make();

  ReadyThread(ReadyThread&&) = default;
  ReadyThread& operator=(ReadyThread&&) = delete;
  ~ReadyThread();  // without work it ends, at once

  // The thread, which does `work` now; to be joined or detached.
  std::thread Run(absl::AnyInvocable<void()> work) &&;

 private:
  using Work = std::promise<absl::AnyInvocable<void()>>;
  ReadyThread(Work work, std::thread thread) : work_(std::move(work)), thread_(std::move(thread)) {}

  Work work_;
  std::thread thread_;
};

}  // namespace bridge
