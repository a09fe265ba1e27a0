// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/isolating_daemon.h — a stock daemon with isolated sessions: our execd, and in front
// of it the routes of /v1/isolated, which it lacks. The habits are those measured on a real execd
// with bubblewrap: a session is one bash that reads scripts from a pipe, runs wait for each other,
// blank lines vanish, stderr is merged, "exit" ends the session, and so does a caller who goes
// away while a script runs. Nothing is isolated: the shells are plain processes of this machine.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/fakes/execd_process.h"
#include "tests/fakes/raw_server.h"

namespace bridge {

class IsolatingDaemon {
 public:
  IsolatingDaemon();
  ~IsolatingDaemon();

  std::string url() const { return server_->Url(""); }
  // A directory of the test's own.
  const std::string& tmpdir() const { return execd_.tmpdir(); }

  // To be set before the first request.
  std::atomic<bool> available{true};
  std::atomic<bool> tells_options{true};  // builds before August 2026 do not

  // The bodies of POST /v1/isolated/session, and how many sessions live.
  std::vector<std::string> opened() const;
  size_t live() const;
  // Makes a session's shell end by itself.
  void KillSession(const std::string& id);

 private:
  struct Session;

  void Serve(RawConnection& peer);
  void ServeIsolated(RawConnection& peer, const std::string& method, const std::string& path,
                     const std::string& body);
  void ServeSession(RawConnection& peer, const std::string& method, const std::string& rest,
                    const std::string& body);
  void Open(RawConnection& peer, const std::string& body);
  void Run(RawConnection& peer, Session& session, const std::string& code);
  void Forward(RawConnection& peer, const std::string& head, const std::string& body) const;
  std::string StateJson(const Session& session, bool with_options) const;
  std::shared_ptr<Session> Find(const std::string& id) const;

  ExecdProcess execd_;
  mutable std::mutex mu_;
  std::map<std::string, std::shared_ptr<Session>> sessions_;  // guarded by mu_
  std::vector<std::string> opened_;                           // guarded by mu_
  std::unique_ptr<RawServer> server_;                         // last: its threads use the rest
};

}  // namespace bridge
