// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/remote_command.h — one POST /command on a stock daemon: its event stream, its status,
// its end.
//
// What shapes it: the terminal event ends a command, not the end of the stream, which comes a
// second later or, when the sandbox died, looks just like it; the id comes with the first event; a
// dropped connection stops nothing. A command is never posted twice. Owned by one task at a time;
// loop thread only.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bridge/net/event_stream.h"
#include "bridge/net/http.h"
#include "bridge/net/task.h"
#include "bridge/opensandbox/command_codec.h"
#include "bridge/opensandbox/daemon_client.h"

namespace bridge {

// A request that runs something and streams its events: sent once, for as long as it takes.
HttpRequest EventStreamPost(DaemonClient& client, const CallContext& context, const Daemon& daemon,
                            std::string_view target, std::string body);

class RemoteCommand {
 public:
  // Starts the exchange. `client` outlives this.
  RemoteCommand(DaemonClient& client, CallContext context, std::shared_ptr<Daemon> daemon,
                const CommandRequest& request);

  // Waits for the daemon's answer and the command's id. Not OK: the daemon refused, or the exchange
  // failed before the id came; then whether the command runs is unknown unless refused().
  // Idempotent: a second call after a cancelled first one goes on waiting.
  Task<absl::Status> AwaitId();
  bool refused() const { return refused_; }

  const std::string& id() const { return id_; }
  const std::shared_ptr<Daemon>& daemon() const { return daemon_; }

  // The next output events, none for a ping: wakes up about every 3 s. False: the terminal event
  // came (ended()), the stream broke (broken()), or the task was cancelled.
  Task<bool> ReadEvents(std::vector<CommandEvent>* events);

  // How it ended, from the terminal event. Empty: not known from the stream.
  const std::optional<Outcome>& ended() const { return ended_; }
  // From when its start was asked for to its terminal event, or to now if none came: never shorter
  // than it really ran.
  absl::Duration ran_for() const;
  // The stream is over without a terminal event; then why, typed.
  bool broken() const { return !broken_why_.ok(); }
  const absl::Status& broken_why() const { return broken_why_; }

 private:
  Task<bool> ReadMore();
  Task<bool> EndureSilence();
  void TakeEvents();
  void Break(absl::Status why);

  DaemonClient& client_;
  CallContext context_;
  std::shared_ptr<Daemon> daemon_;
  Transfer transfer_;
  EventStreamParser parser_;
  CommandEvent event_;
  std::string chunk_;
  std::vector<CommandEvent> pending_;  // output that nobody has asked for yet
  size_t early_bytes_ = 0;             // of it, from before the id
  std::string id_;
  const absl::Duration asked_;
  absl::Duration ended_at_ = absl::InfiniteDuration();
  std::optional<Outcome> ended_;
  absl::Status broken_why_;
  bool head_seen_ = false;
  bool refused_ = false;
};

// GET /command/status/{id}. PROCESS_NOT_FOUND for an unknown id (right after the start of a
// background command, too).
Task<absl::StatusOr<CommandStatus>> FetchCommandStatus(DaemonClient& client, CallContext context,
                                                       std::shared_ptr<Daemon> daemon,
                                                       std::string id);

// DELETE /command: SIGTERM to the group, SIGKILL after 3 s. OK once the command is known to be over
// (also if it was before); the answer may take 3 s.
Task<absl::Status> InterruptCommand(DaemonClient& client, CallContext context,
                                    std::shared_ptr<Daemon> daemon, std::string id);

// Runs a short script of the bridge's own and answers its exit status; its output goes to
// `out_lines` if given. Bounded by the daemon to `limit`, and by the bridge a little later where
// the daemon does not; then UPSTREAM_TIMEOUT. Only a pause of the sandbox is waited out.
inline constexpr absl::Duration kScriptLimit = absl::Seconds(10);
Task<absl::StatusOr<int>> RunScript(DaemonClient& client, CallContext context,
                                    std::shared_ptr<Daemon> daemon, std::string script,
                                    std::vector<std::string>* out_lines,
                                    absl::Duration limit = kScriptLimit);

}  // namespace bridge
