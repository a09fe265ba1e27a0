// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/fake_opensandbox.h — an OpenSandbox in memory, behind the Fetcher seam: a lifecycle
// server and the /ping of its sandboxes' daemons, on the clock of the loop, without sockets.
//
// By itself it behaves like the real server 1.1.1 on Docker. Tests make it misbehave in two ways:
// by changing its sandboxes, and by scripted replies for the next requests of a route:
//
//   fake.Script("DELETE /v1/sandboxes/*", {.status = 409, .times = 2});
//   fake.Script("POST /v1/sandboxes", {.delay = absl::Seconds(1), .lost = true});   // made,
//   unanswered
//
// It shares no code with the client under test.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "bridge/net/event_loop.h"
#include "bridge/opensandbox/fetcher.h"

namespace bridge {

struct FakeReply {
  int status = 0;  // 0: what the model answers
  std::string body = {};
  HttpHeaders headers = {};
  absl::Duration delay = absl::ZeroDuration();  // longer than the request's timeout: no answer
  bool refused = false;                         // nobody listens; the request is not processed
  bool lost = false;         // processed by the model, and then the connection dies
  bool unprocessed = false;  // with a status: answered without touching the model (the default);
                             // with `lost`: the connection dies before anything happens
  int times = 1;             // -1: for ever
};

struct FakeSandbox {
  std::string id = {};
  std::string state = "Running";
  std::string reason = "CONTAINER_RUNNING";
  std::string message = "Sandbox container is running.";
  std::string image = "img";
  std::string snapshot_id = {};
  std::map<std::string, std::string> metadata = {};
  absl::Time created_at = {};
  std::optional<absl::Time> expires_at = {};
  std::string address = {};   // host:port of the daemon, without "/proxy/44772"
  std::string endpoint = {};  // what endpoints/44772 answers; empty: address + "/proxy/44772"
  bool listed = true;         // GET /sandboxes shows it
  bool daemon_up = true;
};

struct SeenRequest {
  std::string method;
  std::string host;  // "srv:8080"
  std::string path;  // without the query, as it travelled
  std::string query;
  HttpHeaders headers;
  std::string body;
  absl::Duration at;
  absl::Duration timeout;
};

class FakeOpenSandbox final : public Fetcher {
 public:
  static constexpr char kUrl[] = "http://srv:8080/v1";

  explicit FakeOpenSandbox(EventLoop& loop) : loop_(loop) {}

  Task<absl::StatusOr<HttpResponse>> Fetch(HttpRequest request, size_t max_body_bytes) override;

  // --- For tests; any thread, while nothing is in progress on the loop or by its RunAndWait.

  // "GET /v1/sandboxes/sb-1", "GET 10.0.0.1:44772/ping"; a "*" at the end stands for any rest.
  // Scripts of one pattern are used in the order in which they were given, before the model.
  void Script(std::string pattern, FakeReply reply);

  FakeSandbox& Add(std::string id);  // Running, made now
  FakeSandbox* Find(std::string_view id);
  std::map<std::string, FakeSandbox>& sandboxes() { return sandboxes_; }
  size_t size() const { return sandboxes_.size(); }

  // New sandboxes begin as these.
  FakeSandbox prototype;
  // Called for each sandbox that a POST makes, before the answer.
  std::function<void(FakeSandbox&)> on_create;
  // How far the server's clock is ahead of the loop's.
  absl::Duration clock_skew = absl::ZeroDuration();
  bool send_date = true;
  // Refuses requests without this key; empty: does not care.
  std::string required_key;
  std::map<std::string, std::string> endpoint_headers;
  int pings_until_ready = 0;  // of new sandboxes: answered 502 before

  std::vector<SeenRequest> requests() const;
  // How many requests matched the pattern.
  int Count(std::string_view pattern) const;
  void ForgetRequests();

 private:
  struct ScriptEntry {
    std::string pattern;
    FakeReply reply;
  };

  absl::Time Now() const { return loop_.clock().Now() + clock_skew; }
  std::optional<FakeReply> NextScript(const std::string& method, const std::string& host,
                                      const std::string& path);
  HttpResponse Serve(const HttpRequest& request, const std::string& host, const std::string& path,
                     const std::string& query, bool* hang, bool* refused);
  HttpResponse ServeDaemon(const std::string& host, const std::string& path, bool* hang,
                           bool* refused);
  HttpResponse ServeSandbox(const std::string& method, const std::string& id,
                            const std::string& rest, const HttpRequest& request,
                            const std::string& query);
  static std::string RecordJson(const FakeSandbox& sandbox);
  HttpResponse Create(const std::string& body);
  HttpResponse List(const std::string& query);
  HttpResponse Snapshots(const std::string& method, const std::string& rest);
  HttpResponse Answer(int status, std::string body) const;
  HttpResponse Error(int status, std::string_view code, std::string_view message) const;

  EventLoop& loop_;
  mutable std::mutex mu_;
  std::vector<SeenRequest> requests_;  // guarded by mu_
  std::vector<ScriptEntry> scripts_;
  std::map<std::string, FakeSandbox> sandboxes_;
  std::map<std::string, int> pings_left_;
  struct Snapshot {
    std::string id, sandbox_id, name, state;
    absl::Time created_at;
  };
  std::map<std::string, Snapshot> snapshots_;
  int next_ = 1;
};

}  // namespace bridge
