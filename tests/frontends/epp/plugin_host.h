// SPDX-License-Identifier: Apache-2.0
//
// A host of EPP/1 for C++ tests: the plugin's own reader, session and writer on two pipes, inside
// the test. Every line that the plugin writes must be one JSON object, or the test fails, as the
// real host would kill the plugin.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "bridge/net/event_loop.h"
#include "frontends/epp/input.h"
#include "frontends/epp/json.h"
#include "frontends/epp/output.h"
#include "frontends/epp/session.h"

namespace bridge::epp {

class PluginHost {
 public:
  explicit PluginHost(LinkFactory make_link,
                      absl::Duration answer_shutdown_within = absl::Milliseconds(1800));
  // Closes the plugin's input and waits for its end.
  ~PluginHost();

  // --- Writing. Ids count from 1.
  void SendLine(std::string_view line);  // without its end
  int64_t Send(std::string_view method, const Json& params);
  void Cancel(int64_t id);

  // --- Reading. All fail the test after ten seconds.
  // The answer to a request: the whole message.
  Json Answer(int64_t id);
  Json Call(std::string_view method, const Json& params) { return Answer(Send(method, params)); }
  // `result` of a call that must succeed, `error` of one that must fail.
  Json Result(std::string_view method, const Json& params);
  Json Error(std::string_view method, const Json& params);
  Json Initialize(const Json& config = Json::object());
  // The first message from the `*position`th on that `wanted` likes; moves the position behind it.
  Json NextMessage(size_t* position, const std::function<bool(const Json&)>& wanted);
  // All notifications of a process up to the one named `last`, included.
  std::vector<Json> Notifications(const std::string& process_id, std::string_view last);
  size_t messages() const;

  // --- The end.
  void CloseInput();
  void CloseOutput();  // as a host that died
  Session& session() { return *session_; }
  // Waits for the end of the conversation. False: it did not come in time.
  bool WaitForEnd(absl::Duration bound);
  // Stops reading what the plugin writes, until the test's end.
  void StopReading();

 private:
  void ReadLoop();

  int to_plugin_[2];
  int from_plugin_[2];
  EventLoop loop_;
  PendingBytes pending_{64 * 1024 * 1024};
  std::unique_ptr<Output> output_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Input> input_;
  int64_t next_id_ = 1;

  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::vector<Json> messages_;  // guarded by mu_
  bool closed_ = false;         // guarded by mu_
  bool over_ = false;           // guarded by mu_
  bool reading_ = true;         // guarded by mu_
  bool gave_up_ = false;        // guarded by mu_: stopped reading on purpose
  std::thread reader_;
  std::thread waiter_;
};

}  // namespace bridge::epp
