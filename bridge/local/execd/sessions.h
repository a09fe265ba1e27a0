// SPDX-License-Identifier: Apache-2.0
//
// local/execd/sessions.h — `/session`: shells that remember exported variables and the directory
// from one run to the next. No shell lives between runs. Run() is carried out by the calling
// thread. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "bridge/local/execd/api_error.h"
#include "bridge/local/execd/commands.h"
#include "bridge/local/execd/event_stream.h"
#include "bridge/local/execd/process.h"
#include "bridge/local/execd/timer.h"

namespace bridge::local::execd {

class Sessions {
 public:
  // All outlive this object.
  Sessions(Processes& processes, Timer& timer, const Commands& commands, Habits habits);
  ~Sessions();

  // `body`: that of `POST /session`, may be empty.
  std::optional<ApiError> Create(std::string_view body, std::string* id);
  // `body`: that of `POST /session/{id}/run`. Returns when the output has ended: a child that holds
  // on to it holds up the run. The client's going kills the shell, and so does the timeout. An
  // error after the first event ends the stream in the bare form.
  std::optional<ApiError> Run(const std::string& id, std::string_view body, EventStream& stream);
  // Kills what runs in it. False: there is none.
  bool Close(const std::string& id);

 private:
  struct Session;
  struct Request;
  struct Shell;

  static std::optional<ApiError> ParseRun(std::string_view body, Request* request);
  std::shared_ptr<Session> Find(const std::string& id) const;
  std::optional<ApiError> Start(Session& session, const Request& request, Shell* shell);
  // False: the client went.
  bool Follow(Shell& shell, EventStream& stream);

  Processes& processes_;
  Timer& timer_;
  const Commands& commands_;
  const Habits habits_;
  mutable std::mutex mu_;
  std::map<std::string, std::shared_ptr<Session>> sessions_;
};

}  // namespace bridge::local::execd
