// SPDX-License-Identifier: Apache-2.0
//
// Sends what was once sent to a real OpenSandbox to the local one, and compares the answers:
// status, headers in order, body. What is known to differ is listed, with the reason, in
// replay_differences.json; an entry that no longer differs fails too.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "bridge/local/http/client.h"
#include "bridge/local/http/server.h"
#include "bridge/local/local_opensandbox.h"
#include "tests/local/recording.h"

namespace bridge::local {
namespace {

namespace fs = std::filesystem;

// The moment of the recordings: the times in their requests lie shortly after it.
const absl::Time kRecordedAt =
    absl::FromCivil(absl::CivilSecond(2026, 11, 29, 16, 46, 35), absl::UTCTimeZone());

// The application that ran in the recorded sandboxes: it answers with what it received.
void Echo(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  const auto answer = [&](int status, const http::Headers& headers, std::string body) {
    http::Headers all = {{"Server", "BaseHTTP/0.6 Python/3.11.2"}, {"Date", "x"}};
    for (const auto& [name, value] : headers) {
      if (name == "Set-Cookie") continue;  // comes last
      all.Add(name, value);
    }
    all.Add("Content-Length", std::to_string(body.size()));
    for (const auto& [name, value] : headers) {
      if (name == "Set-Cookie") all.Add(name, value);
    }
    (void)exchange.Respond({status, std::move(all), std::move(body)});
  };
  if (request.path == "/redir") return answer(302, {{"Location", "/target/x"}}, "");
  if (request.path == "/abs") return answer(302, {{"Location", "http://other.example/y"}}, "");
  if (request.path == "/teapot") return answer(418, {}, "short");
  if (request.path == "/die") return exchange.socket().Shutdown();
  if (request.path == "/stream") {
    (void)exchange.Start({200,
                          {{"Server", "BaseHTTP/0.6 Python/3.11.2"},
                           {"Date", "x"},
                           {"Content-Type", "text/event-stream"}},
                          ""});
    for (int i = 0; i < 3; ++i) (void)exchange.Write("data: " + std::to_string(i) + "\n\n");
    (void)exchange.Finish();
    return;
  }
  Json headers = Json::array();
  for (const auto& [name, value] : request.headers) headers.push_back(Json::array({name, value}));
  const Json seen = {{"method", request.method},
                     {"path", request.target},
                     {"headers", headers},
                     {"body", exchange.ReadAll().value_or("")}};
  http::Headers extra = {{"Content-Type", "application/json"}};
  if (request.path == "/setcookie") {
    extra.Add("Set-Cookie", "a=1; Path=/");
    extra.Add("Set-Cookie", "b=2; Path=/");
  }
  answer(200, extra, seen.dump());
}

struct Difference {
  std::string what;  // "skip", "status", "headers", "body"
  std::string reason;
};

class ReplayTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    char name[] = "/tmp/replay-test.XXXXXX";
    images_ = mkdtemp(name);
    fs::create_directory_symlink("/", images_ + "/osb-base:latest");
    fs::create_directory_symlink("/", images_ + "/osb-py:latest");
    for (const char* area : {"lifecycle", "errors", "proxy"}) {
      for (Recording& r : LoadRecordings(area)) {
        const std::string key = r.name;
        recordings_[key] = std::move(r);
      }
    }
    std::ifstream in("tests/local/replay_differences.json");
    const Json list = Json::parse(in);
    for (const auto& [name, steps] : list["extra_setup"].items()) {
      std::vector<std::string>& setup = recordings_.at(name).setup;
      for (const Json& step : steps) {
        const bool make = step.get<std::string>().starts_with("create-");
        setup.insert(make ? setup.begin() : setup.end(), step.get<std::string>());
      }
    }
    for (const auto& [reason, names] : list["differences"].items()) {
      for (const Json& entry : names) {
        differences_[entry["name"]].push_back({entry["what"], reason});
      }
    }
    http::ServerOptions echo;
    echo.date_header = false;
    echo_ = *http::Server::Start(echo, Echo);
    Restart();
  }

  void TearDown() override {
    local_ = nullptr;
    fs::remove_all(images_);
  }

  void Restart() {
    local_ = nullptr;
    clock_ = std::make_unique<FakeClock>(kRecordedAt);
    LocalOptions options;
    options.api_key = "KEY";
    options.image_dir = images_;
    options.fail_on_missing_image = true;
    options.allowed_host_paths = {"/srv/sbx/vol"};
    options.max_timeout = absl::Seconds(86400);
    options.shared_cookie_jar = true;
    options.clock = clock_.get();
    auto local = LocalOpenSandbox::Start(options);
    ASSERT_TRUE(local.ok()) << local.status();
    local_ = *std::move(local);
  }

  // Ids of the recording → ids of this run, as far as they were made.
  using Ids = std::map<std::string, std::string>;

  std::string Replace(std::string text, const Recording& r, const Ids& ids) const {
    for (const auto& [name, recorded] : r.bindings) {
      const auto it = ids.find(recorded);
      const std::string value = it != ids.end()  ? it->second
                                : ids.count("*") ? ids.at("*")
                                                 : recorded;
      const std::string placeholder = "{" + name + "}";
      for (size_t at = 0; (at = text.find(placeholder)) != std::string::npos;) {
        text.replace(at, placeholder.size(), value);
      }
    }
    // The application's port is free on the recorder's machine, not on every one.
    for (const char* route : {"/proxy/8000", "/proxy/8080"}) {
      const size_t at = text.find(route);
      if (at != std::string::npos) {
        text.replace(at + 7, 4, std::to_string(echo_->port()));
      }
    }
    return text;
  }

  http::Response Send(const Recording& r, const Ids& ids) {
    auto client = http::ClientExchange::Connect("127.0.0.1", local_->port(), absl::Seconds(5));
    if (!client.ok()) return {};
    http::Headers headers;
    for (const auto& [name, value] : r.headers) headers.Add(name, value);
    const bool remake = r.body_truncated || r.name == "create-every-field";
    const std::string body = remake ? RemakeBody(r) : Replace(r.body, r, ids);
    if (headers.Has("content-length")) headers.Set("Content-Length", std::to_string(body.size()));
    headers.Add("Connection", "close");
    (void)(*client)->SendHead(r.method, Replace(r.path, r, ids), headers);
    (void)(*client)->SendBody(body, false);
    // Where no answer is expected, none within this time will do.
    const bool silent = !r.name.empty() && r.response.status == 0;
    const auto head = (*client)->ReadHead(silent ? absl::Milliseconds(300) : absl::Seconds(20));
    if (!head.ok()) return {0, {}, ""};
    http::Response response{head->status, head->headers, ""};
    std::array<char, 65536> piece;
    while (true) {
      const auto n = (*client)->ReadBody(piece.data(), piece.size(), absl::Seconds(20));
      if (!n.ok() || *n == 0) return response;
      response.body.append(piece.data(), *n);
    }
  }

  // Bodies above 48 KiB were recorded by their ends only; what is between repeats one letter. And
  // without a network policy, which is refused here, all of "every field" is accepted.
  static std::string RemakeBody(const Recording& r) {
    if (r.name == "create-every-field") {
      Json every = Json::parse(r.body);
      every.erase("networkPolicy");
      return every.dump();
    }
    Json body = {{"image", {{"uri", "osb-base:latest"}}},
                 {"entrypoint", {"tail", "-f", "/dev/null"}},
                 {"resourceLimits", {{"cpu", "1"}, {"memory", "512Mi"}}},
                 {"timeout", 1800}};
    if (r.name == "create-env-value-200k") body["env"] = {{"BIG", std::string(200000, 'x')}};
    if (r.name == "create-entrypoint-200k") {
      body["entrypoint"] = {"sh", "-c", "#" + std::string(200000, 'x')};
    }
    return body.dump();
  }

  void RunSetup(const Recording& r, Ids* ids, std::set<std::string>* done) {
    if (!done->insert(r.name).second) return;
    if (r.target == "server_proxy" && r.bindings.contains("sandbox_id")) {
      // The proxy recordings take a running sandbox for granted.
      RunStep("create-minimal", ids, done);
    }
    for (const std::string& step : r.setup) RunStep(step, ids, done);
  }

  void RunStep(const std::string& step, Ids* ids, std::set<std::string>* done) {
    const std::string name = step.substr(0, step.find(" (errors.jsonl)"));
    if (recordings_.contains(name)) {
      if (done->contains(name)) return;
      const Recording& before = recordings_.at(name);
      RunSetup(before, ids, done);
      Note(before, Send(before, *ids), ids);
      if (name != step) WaitForEnd(ids);  // "…, wait 1.2 s"
    } else if (step == "wait 1 s") {
      WaitForEnd(ids);
    } else if (step == "wait 5.5 s") {
      clock_->Advance(absl::Seconds(20));
      WaitForState(ids, "gone");
    } else if (step.starts_with("sandbox created with entrypoint sh -c \"exit 3\"")) {
      RunStep("create-entrypoint-exit-3", ids, done);
      WaitForEnd(ids);
    } else if (step == "POST pause") {
      Post(ids, "/pause");
    } else if (step == "DELETE sandbox") {
      Recording remove{.method = "DELETE", .path = "/v1/sandboxes/" + ids->at("*")};
      remove.headers = {{"OPEN-SANDBOX-API-KEY", "KEY"}};
      Send(remove, {});
    }
  }

  void Note(const Recording& recorded, const http::Response& now, Ids* ids) {
    const Json then = Json::parse(recorded.response.body, nullptr, false);
    const Json body = Json::parse(now.body, nullptr, false);
    if (!then.is_object() || !body.is_object() || !body.contains("id")) return;
    (*ids)[then["id"]] = body["id"];
    (*ids)["*"] = body["id"];
  }

  void Post(Ids* ids, const std::string& what) {
    Recording post{.method = "POST", .path = "/v1/sandboxes/" + ids->at("*") + what};
    post.headers = {{"OPEN-SANDBOX-API-KEY", "KEY"}};
    Send(post, {});
  }

  std::string StateNow(const Ids& ids) {
    Recording get{.method = "GET", .path = "/v1/sandboxes/" + ids.at("*")};
    get.headers = {{"OPEN-SANDBOX-API-KEY", "KEY"}};
    const http::Response response = Send(get, {});
    if (response.status == 404) return "gone";
    return Json::parse(response.body)["status"]["state"];
  }

  void WaitFor(const std::function<bool()>& condition) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (!condition() && absl::Now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(condition());
  }
  void WaitForEnd(Ids* ids) {
    WaitFor([&] { return StateNow(*ids) != "Running"; });
  }
  void WaitForState(Ids* ids, const std::string& state) {
    WaitFor([&] { return StateNow(*ids) == state; });
  }

  void Replay(const Recording& r) {
    SCOPED_TRACE(r.name);
    std::set<std::string> differs;
    for (const Difference& difference : differences_[r.name]) differs.insert(difference.what);
    used_.insert(r.name);
    if (differs.contains("skip")) return;
    Ids ids;
    std::set<std::string> done;
    RunSetup(r, &ids, &done);
    const http::Response now = Send(r, ids);
    Note(r, now, &ids);
    const auto compare = [&](const char* what, const std::string& want, std::string got) {
      // This run's port where the recorded one had 8000.
      const std::string route = "/proxy/" + std::to_string(echo_->port()) + "/";
      const size_t at = got.find(route);
      if (at != std::string::npos) got.replace(at, route.size(), "/proxy/8000/");
      if (differs.contains(what)) {
        EXPECT_NE(want, got) << "this difference is gone; take it off the list: " << what;
      } else {
        EXPECT_EQ(want, got) << what;
      }
    };
    compare("status", std::to_string(r.response.status), std::to_string(now.status));
    compare("headers", NormalizeHeaders(r.response), NormalizeHeaders(now));
    compare("body", NormalizeBody(r.response), NormalizeBody(now));
    for (const auto& [recorded, id] : ids) {
      if (recorded == "*") continue;
      Recording remove{.method = "DELETE", .path = "/v1/sandboxes/" + id};
      remove.headers = {{"OPEN-SANDBOX-API-KEY", "KEY"}};
      Send(remove, {});
    }
  }

  std::string images_;
  std::map<std::string, Recording> recordings_;
  std::map<std::string, std::vector<Difference>> differences_;
  std::set<std::string> used_;
  std::unique_ptr<http::Server> echo_;
  std::unique_ptr<FakeClock> clock_;
  std::unique_ptr<LocalOpenSandbox> local_;
};

TEST_P(ReplayTest, AnswersAsRecorded) {
  int replayed = 0;
  for (const Recording& listed : LoadRecordings(GetParam())) {
    const Recording& r = recordings_.at(listed.name);
    if (r.target != "lifecycle" && r.target != "server_proxy") continue;
    if (r.websocket) continue;  // see server_proxy_test.cc
    Replay(r);
    ++replayed;
    const bool moved_clock =
        std::find(r.setup.begin(), r.setup.end(), "wait 5.5 s") != r.setup.end();
    if (moved_clock) Restart();
  }
  EXPECT_GT(replayed, 25);
}

INSTANTIATE_TEST_SUITE_P(Areas, ReplayTest, ::testing::Values("lifecycle", "errors", "proxy"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace bridge::local
