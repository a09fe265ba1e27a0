// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/ready_thread.h"

#include <system_error>
#include <utility>

namespace bridge {

std::optional<ReadyThread> ReadyThread::Make() {
  Work work;
  try {
    std::thread thread([given = work.get_future()]() mutable {
      if (absl::AnyInvocable<void()> todo = given.get()) todo();
    });
    return ReadyThread(std::move(work), std::move(thread));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

ReadyThread::~ReadyThread() {
  if (!thread_.joinable()) return;  // moved away, or at work
  work_.set_value(nullptr);
  thread_.join();
}

std::thread ReadyThread::Run(absl::AnyInvocable<void()> work) && {
  work_.set_value(std::move(work));
  return std::move(thread_);
}

}  // namespace bridge
