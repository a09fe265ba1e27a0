// SPDX-License-Identifier: Apache-2.0
//
// An EventStream that keeps what it gets, with the parts that differ from run to run taken out. It
// never sleeps. Any thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <regex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bridge/local/execd/event_stream.h"

namespace bridge::local::execd {

class FakeStream final : public EventStream {
 public:
  bool Send(std::string_view bytes) override {
    const std::lock_guard lock(mu_);
    if (gone_) return false;
    raw_ += bytes;
    std::string event(bytes);
    if (event.ends_with("\n\n")) event.resize(event.size() - 2);
    event = std::regex_replace(event, std::regex(",\"(timestamp|execution_time)\":[0-9]+"), "");
    event = std::regex_replace(event, std::regex("[0-9a-f]{32}"), "ID");
    events_.push_back(event);
    changed_.notify_all();
    return true;
  }
  bool Sleep(absl::Duration duration) override {
    const std::lock_guard lock(mu_);
    slept_ += duration;
    return false;
  }
  int client_fd() const override { return client_fd_; }

  // Polled for the client's going.
  void set_client_fd(int fd) { client_fd_ = fd; }
  void Leave() {
    const std::lock_guard lock(mu_);
    gone_ = true;
  }
  std::vector<std::string> events() const {
    const std::lock_guard lock(mu_);
    return events_;
  }
  std::string raw() const {
    const std::lock_guard lock(mu_);
    return raw_;
  }
  absl::Duration slept() const {
    const std::lock_guard lock(mu_);
    return slept_;
  }
  // Of the init event of a command.
  std::string WaitForId() {
    std::unique_lock lock(mu_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return !events_.empty(); });
    std::smatch match;
    return std::regex_search(raw_, match, std::regex("[0-9a-f]{32}")) ? match.str() : "";
  }
  bool WaitFor(const std::string& text) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return raw_.find(text) != std::string::npos; });
  }

 private:
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::string> events_;
  std::string raw_;
  absl::Duration slept_;
  bool gone_ = false;
  int client_fd_ = -1;
};

}  // namespace bridge::local::execd
