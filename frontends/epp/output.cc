// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "frontends/epp/message.h"

namespace bridge::epp {
namespace {

constexpr auto kLastChance = std::chrono::milliseconds(200);

}  // namespace

Output::Output(int fd, std::function<void()> on_broken)
    : fd_(fd), on_broken_(std::move(on_broken)), thread_([this] { Run(); }) {}

Output::~Output() {
  (void)Flush(absl::FromChrono(kLastChance));
  {
    std::lock_guard lock(mu_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Output::Write(std::string line) {
  if (line.size() > kMaxLineBytes) std::abort();
  std::lock_guard lock(mu_);
  if (broken_) return;
  pending_ += line.size();
  queue_.push_back(std::move(line));
  changed_.notify_all();
}

size_t Output::pending_bytes() const {
  std::lock_guard lock(mu_);
  return pending_;
}

void Output::OnDrained(std::function<void()> ready) {
  {
    std::lock_guard lock(mu_);
    if (pending_ > kHighWatermarkBytes / 2) {
      waiting_.push_back(std::move(ready));
      return;
    }
  }
  ready();
}

bool Output::Flush(absl::Duration bound) {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(bound),
                           [this] { return queue_.empty(); });
}

void Output::Run() {
  std::unique_lock lock(mu_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    const std::string& line = queue_.front();  // push_back leaves it where it is
    lock.unlock();
    const bool written = WriteAll(line);
    lock.lock();
    const bool broke = !written && !stop_ && !std::exchange(broken_, true);
    if (written) {
      pending_ -= queue_.front().size();
      queue_.pop_front();
    } else {
      queue_.clear();
      pending_ = 0;
    }
    std::vector<std::function<void()>> ready;
    if (pending_ <= kHighWatermarkBytes / 2) ready.swap(waiting_);
    changed_.notify_all();
    lock.unlock();
    for (const auto& call : ready) call();
    if (broke) on_broken_();
    lock.lock();
  }
}

// Waits in poll(), so that a host that takes nothing cannot keep the process from ending.
bool Output::WriteAll(const std::string& line) {
  size_t done = 0;
  while (done < line.size()) {
    pollfd fd = {fd_, POLLOUT, 0};
    const int ready = poll(&fd, 1, 100);
    {
      std::lock_guard lock(mu_);
      if (stop_) return false;
    }
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    // A pipe that poll() calls writable takes PIPE_BUF bytes without blocking, and no more is sure.
    const ssize_t n = write(fd_, line.data() + done, std::min<size_t>(line.size() - done, 4096));
    if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (n > 0) done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace bridge::epp
