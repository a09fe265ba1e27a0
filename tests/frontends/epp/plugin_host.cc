// SPDX-License-Identifier: Apache-2.0
#include "tests/frontends/epp/plugin_host.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "bridge/base/utf8.h"
#include "frontends/epp/line_splitter.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);

}  // namespace

PluginHost::PluginHost(LinkFactory make_link, absl::Duration answer_shutdown_within) {
  signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(pipe2(to_plugin_, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(from_plugin_, O_CLOEXEC), 0);
  output_ = std::make_unique<Output>(from_plugin_[1], [this] { session_->Terminate(); });
  session_ =
      std::make_unique<Session>(loop_, *output_, pending_,
                                SessionOptions{.make_link = std::move(make_link),
                                               .answer_shutdown_within = answer_shutdown_within});
  input_ = std::make_unique<Input>(to_plugin_[0], pending_, *session_);
  reader_ = std::thread([this] { ReadLoop(); });
  waiter_ = std::thread([this] {
    session_->WaitUntilOver();
    std::lock_guard lock(mu_);
    over_ = true;
    changed_.notify_all();
  });
}

PluginHost::~PluginHost() {
  CloseInput();
  {
    std::lock_guard lock(mu_);
    reading_ = true;
    changed_.notify_all();
  }
  waiter_.join();
  input_.reset();
  output_.reset();
  session_.reset();
  close(from_plugin_[1]);
  reader_.join();
  if (from_plugin_[0] >= 0) close(from_plugin_[0]);
  close(to_plugin_[0]);
  EXPECT_EQ(pending_.held(), 0u) << "a request was never given back";
}

void PluginHost::SendLine(std::string_view line) {
  std::string text(line);
  text += '\n';
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(to_plugin_[1], text.data() + done, text.size() - done);
    if (n < 0) return;
    done += static_cast<size_t>(n);
  }
}

int64_t PluginHost::Send(std::string_view method, const Json& params) {
  const int64_t id = next_id_++;
  const Json message = {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}};
  SendLine(message.dump(-1, ' ', /*ensure_ascii=*/true));
  return id;
}

void PluginHost::Cancel(int64_t id) {
  SendLine(Json({{"jsonrpc", "2.0"}, {"method", "$/cancel"}, {"params", {{"id", id}}}}).dump());
}

Json PluginHost::Answer(int64_t id) {
  size_t position = 0;
  return NextMessage(&position, [id](const Json& m) { return m.contains("id") && m["id"] == id; });
}

Json PluginHost::Result(std::string_view method, const Json& params) {
  const Json answer = Call(method, params);
  EXPECT_TRUE(answer.contains("result")) << method << ": " << answer.dump().substr(0, 500);
  return answer.contains("result") ? answer["result"] : Json();
}

Json PluginHost::Error(std::string_view method, const Json& params) {
  const Json answer = Call(method, params);
  EXPECT_TRUE(answer.contains("error")) << method << ": " << answer.dump().substr(0, 500);
  return answer.contains("error") ? answer["error"] : Json();
}

Json PluginHost::Initialize(const Json& config) {
  return Result("initialize", {{"protocol", "epp/1"},
                               {"host", {{"name", "test"}, {"version", "0"}}},
                               {"provider_id", "opensandbox"},
                               {"config", config},
                               {"core", {{"http_timeout", 30.0}}},
                               {"locale", "en"},
                               {"data_dir", "/nonexistent"}});
}

Json PluginHost::NextMessage(size_t* position, const std::function<bool(const Json&)>& wanted) {
  std::unique_lock lock(mu_);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    for (; *position < messages_.size(); ++*position) {
      if (wanted(messages_[*position])) return messages_[(*position)++];
    }
    if (closed_ || changed_.wait_until(lock, deadline) == std::cv_status::timeout) {
      ADD_FAILURE() << "the plugin did not say what was expected; " << messages_.size()
                    << " messages came";
      return Json::object();
    }
  }
}

std::vector<Json> PluginHost::Notifications(const std::string& process_id, std::string_view last) {
  std::vector<Json> found;
  size_t position = 0;
  while (found.empty() || found.back()["method"] != last) {
    found.push_back(NextMessage(&position, [&](const Json& m) {
      return m.contains("method") && m["params"].value("process_id", "") == process_id;
    }));
    if (found.back().empty()) break;
  }
  return found;
}

size_t PluginHost::messages() const {
  std::lock_guard lock(mu_);
  return messages_.size();
}

void PluginHost::CloseInput() {
  if (to_plugin_[1] >= 0) close(std::exchange(to_plugin_[1], -1));
}

void PluginHost::StopReading() {
  std::lock_guard lock(mu_);
  reading_ = false;
  gave_up_ = true;
}

void PluginHost::CloseOutput() {
  std::lock_guard lock(mu_);
  gave_up_ = true;
  if (from_plugin_[0] >= 0) close(std::exchange(from_plugin_[0], -1));
}

bool PluginHost::WaitForEnd(absl::Duration bound) {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(bound), [this] { return over_; });
}

void PluginHost::ReadLoop() {
  struct Sink final : LineSink {
    explicit Sink(PluginHost& h) : host(h) {}
    void OnLine(std::string line) override {
      EXPECT_TRUE(IsValidUtf8(line));
      Json message = Json::parse(line, nullptr, false);
      EXPECT_TRUE(message.is_object()) << line.substr(0, 200);
      std::lock_guard lock(host.mu_);
      host.messages_.push_back(std::move(message));
      host.changed_.notify_all();
    }
    void OnOverlong(std::string_view, uint64_t bytes) override {
      ADD_FAILURE() << "a line of " << bytes << " bytes";
    }
    PluginHost& host;
  } sink(*this);
  LineSplitter splitter(kMaxLineBytes, sink);
  std::vector<char> buffer(256 * 1024);
  while (true) {
    int fd;
    {
      std::unique_lock lock(mu_);
      changed_.wait(lock, [this] { return reading_; });
      fd = from_plugin_[0];
    }
    const ssize_t n = fd < 0 ? 0 : read(fd, buffer.data(), buffer.size());
    if (n <= 0) break;
    splitter.Feed({buffer.data(), static_cast<size_t>(n)});
  }
  // Half a line at the end is a fault, unless this host stopped taking lines first.
  std::unique_lock lock(mu_);
  const bool gave_up = gave_up_;
  lock.unlock();
  if (!gave_up) splitter.Finish();
  lock.lock();
  closed_ = true;
  changed_.notify_all();
}

}  // namespace bridge::epp
