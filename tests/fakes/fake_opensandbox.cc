// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_opensandbox.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "bridge/base/error.h"

namespace bridge {
namespace {

using nlohmann::json;

std::string HttpDate(absl::Time time) {
  return absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", time, absl::UTCTimeZone());
}

bool Matches(std::string_view pattern, std::string_view text) {
  if (!pattern.empty() && pattern.back() == '*') {
    pattern.remove_suffix(1);
    return text.substr(0, pattern.size()) == pattern;
  }
  return pattern == text;
}

std::string Decode(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      result += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

// "a=1&b=2", decoded; a name that comes twice is there twice.
std::vector<std::pair<std::string, std::string>> ParseQuery(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> result;
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    result.emplace_back(Decode(part.substr(0, equals)), Decode(part.substr(equals + 1)));
  }
  return result;
}

absl::Status Transport(ErrorReason reason, std::string_view what, const std::string& host,
                       std::string_view phase) {
  return MakeError(reason, host + ": " + std::string(what),
                   {.metadata = {{"host", host}, {"phase", std::string(phase)}}});
}

absl::Status Lost(const std::string& host) {
  return Transport(ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE, "connection lost", host,
                   "answer");
}

}  // namespace

// --- The test's side

void FakeOpenSandbox::Script(std::string pattern, FakeReply reply) {
  scripts_.push_back({std::move(pattern), std::move(reply)});
}

FakeSandbox& FakeOpenSandbox::Add(std::string id) {
  FakeSandbox sandbox = prototype;
  sandbox.id = id;
  sandbox.created_at = Now();
  if (sandbox.address.empty()) sandbox.address = "10.0.0.1:" + std::to_string(40000 + next_);
  ++next_;
  return sandboxes_[id] = std::move(sandbox);
}

FakeSandbox* FakeOpenSandbox::Find(std::string_view id) {
  const auto it = sandboxes_.find(std::string(id));
  return it == sandboxes_.end() ? nullptr : &it->second;
}

std::vector<SeenRequest> FakeOpenSandbox::requests() const {
  std::lock_guard lock(mu_);
  return requests_;
}

int FakeOpenSandbox::Count(std::string_view pattern) const {
  std::lock_guard lock(mu_);
  return static_cast<int>(
      std::count_if(requests_.begin(), requests_.end(), [pattern](const SeenRequest& seen) {
        return Matches(pattern, seen.method + " " + seen.path) ||
               Matches(pattern, seen.method + " " + seen.host + seen.path);
      }));
}

void FakeOpenSandbox::ForgetRequests() {
  std::lock_guard lock(mu_);
  requests_.clear();
}

// --- The network's side

std::optional<FakeReply> FakeOpenSandbox::NextScript(const std::string& method,
                                                     const std::string& host,
                                                     const std::string& path) {
  for (auto it = scripts_.begin(); it != scripts_.end(); ++it) {
    if (!Matches(it->pattern, method + " " + path) &&
        !Matches(it->pattern, method + " " + host + path)) {
      continue;
    }
    FakeReply reply = it->reply;
    if (it->reply.times > 0 && --it->reply.times == 0) scripts_.erase(it);
    return reply;
  }
  return std::nullopt;
}

Task<absl::StatusOr<HttpResponse>> FakeOpenSandbox::Fetch(HttpRequest request,
                                                          size_t max_body_bytes) {
  const size_t host_begin = request.url.find("://") + 3;
  const size_t path_begin = std::min(request.url.find('/', host_begin), request.url.size());
  const std::string host = request.url.substr(host_begin, path_begin - host_begin);
  const size_t query_begin = std::min(request.url.find('?', path_begin), request.url.size());
  const std::string path = request.url.substr(path_begin, query_begin - path_begin);
  const std::string query =
      query_begin < request.url.size() ? request.url.substr(query_begin + 1) : "";
  {
    std::lock_guard lock(mu_);
    requests_.push_back({request.method, host, path, query, request.headers, request.body,
                         loop_.Now(), request.total_timeout});
  }
  const std::optional<FakeReply> script = NextScript(request.method, host, path);
  if (script && script->refused) {
    co_return Transport(ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE, "connection refused", host,
                        "connect");
  }
  HttpResponse response;
  bool hang = false;
  bool refused = false;
  const absl::Duration delay = script ? script->delay : absl::ZeroDuration();
  // The model acts when the request arrives; the answer takes its time.
  if (!script || (script->status == 0 && !script->unprocessed)) {
    response = Serve(request, host, path, query, &hang, &refused);
  } else {
    response = Answer(script->status, script->body);
    for (const auto& header : script->headers) response.headers.Set(header.name, header.value);
  }
  if (refused) {
    co_return Transport(ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE, "connection refused", host,
                        "connect");
  }
  const bool late = hang || delay >= request.total_timeout;
  const absl::Duration wait = late ? request.total_timeout : delay;
  bool go_on = !co_await Cancelled();
  if (go_on && wait > absl::ZeroDuration()) go_on = co_await loop_.Sleep(wait);
  if (!go_on) co_return MakeError(ErrorReason::ERROR_REASON_CANCELLED, host + ": cancelled");
  if (late) {
    co_return Transport(ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT, "no answer in time", host,
                        "answer");
  }
  if (script && script->lost) co_return Lost(host);
  if (response.body.size() > max_body_bytes) {
    co_return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL, host + ": body too large");
  }
  co_return response;
}

HttpResponse FakeOpenSandbox::Answer(int status, std::string body) const {
  HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  response.headers.Add("content-type", "application/json");
  response.headers.Add("x-request-id", "req-1");
  if (send_date) response.headers.Add("date", HttpDate(Now()));
  return response;
}

HttpResponse FakeOpenSandbox::Error(int status, std::string_view code,
                                    std::string_view message) const {
  return Answer(status, json{{"code", code}, {"message", message}}.dump());
}

// --- The model

HttpResponse FakeOpenSandbox::Serve(const HttpRequest& request, const std::string& host,
                                    const std::string& path, const std::string& query, bool* hang,
                                    bool* refused) {
  if (host != "srv:8080") return ServeDaemon(host, path, hang, refused);
  if (path == "/health") return Answer(200, R"({"status":"healthy"})");
  if (path == "/version") return Answer(200, R"({"version":"1.1.1"})");
  if (!required_key.empty() && request.headers.Get("OPEN-SANDBOX-API-KEY") != required_key) {
    return Error(401, "INVALID_API_KEY", "Authentication credentials are invalid.");
  }
  constexpr std::string_view kSandboxes = "/v1/sandboxes";
  if (path == kSandboxes) {
    if (request.method == "POST") return Create(request.body);
    if (request.method == "GET") return List(query);
    return Answer(405, R"({"detail":"Method Not Allowed"})");
  }
  if (path.rfind("/v1/snapshots", 0) == 0) {
    return Snapshots(request.method, path.substr(13));
  }
  if (path.rfind("/v1/sandboxes/", 0) != 0) return Answer(404, R"({"detail":"Not Found"})");
  const std::string tail = path.substr(kSandboxes.size() + 1);
  const size_t slash = std::min(tail.find('/'), tail.size());
  const std::string rest = tail.substr(slash);
  const std::string id = Decode(tail.substr(0, slash));
  if (rest == "/proxy/44772/ping") {
    const FakeSandbox* sandbox = Find(id);
    return sandbox != nullptr ? ServeDaemon(sandbox->address, "/ping", hang, refused)
                              : Error(404, "DOCKER::SANDBOX_NOT_FOUND", "not found");
  }
  return ServeSandbox(request.method, id, rest, request, query);
}

HttpResponse FakeOpenSandbox::ServeDaemon(const std::string& host, const std::string& path,
                                          bool* hang, bool* refused) {
  for (auto& [id, sandbox] : sandboxes_) {
    if (sandbox.address != host) continue;
    if (sandbox.state == "Paused") *hang = true;
    if (!sandbox.daemon_up || (sandbox.state != "Running" && sandbox.state != "Paused")) {
      *refused = true;
    }
    if (const auto left = pings_left_.find(id); left != pings_left_.end() && left->second > 0) {
      --left->second;
      return Error(502, "BACKEND_CONNECTION_FAILED", "Could not connect to the backend sandbox");
    }
    if (path == "/ping" || path == "/proxy/44772/ping") return Answer(200, "");
    if (path == "/metrics") {
      return Answer(200, R"({"cpu_count":2,"cpu_used_pct":1.5,"mem_total_mib":1024,
                             "mem_used_mib":512,"timestamp":1795970673642})");
    }
    return Answer(404, "404 page not found");
  }
  *refused = true;
  return {};
}

HttpResponse FakeOpenSandbox::Create(const std::string& body) {
  const json request = json::parse(body, nullptr, false);
  if (!request.is_object()) return Answer(422, R"({"detail":[{"loc":["body"],"msg":"bad"}]})");
  FakeSandbox& sandbox = Add("sb-" + std::to_string(next_));
  if (request.contains("metadata")) {
    for (const auto& [key, value] : request["metadata"].items()) sandbox.metadata[key] = value;
  }
  if (request.contains("image")) sandbox.image = request["image"]["uri"];
  if (request.contains("snapshotId")) {
    sandbox.snapshot_id = request["snapshotId"];
    sandbox.image.clear();
  }
  if (request.contains("timeout")) {
    sandbox.expires_at = Now() + absl::Seconds(request["timeout"].get<int64_t>());
  }
  if (pings_until_ready > 0) pings_left_[sandbox.id] = pings_until_ready;
  if (on_create) on_create(sandbox);
  json answer = json::parse(RecordJson(sandbox));
  answer.erase("image");
  answer.erase("snapshotId");
  // The real one answers the create with its own clock and a read with Docker's.
  sandbox.created_at += absl::Milliseconds(9);
  return Answer(202, answer.dump());
}

HttpResponse FakeOpenSandbox::List(const std::string& query) {
  size_t page = 1;
  size_t size = 20;
  std::vector<std::string> states;
  std::vector<std::pair<std::string, std::string>> labels;
  for (const auto& [name, value] : ParseQuery(query)) {
    if (name == "page") page = std::stoul(value);
    if (name == "pageSize") size = std::stoul(value);
    if (name == "state") states.push_back(value);
    if (name == "metadata") labels = ParseQuery(value);
  }
  if (page < 1 || size < 1 || size > 200) {
    return Answer(422, R"({"detail":[{"loc":["query","page"],"msg":"out of range"}]})");
  }
  std::vector<const FakeSandbox*> found;
  for (const auto& [id, sandbox] : sandboxes_) {
    bool matches = sandbox.listed && (states.empty() || std::find(states.begin(), states.end(),
                                                                  sandbox.state) != states.end());
    for (const auto& [key, value] : labels) {
      const auto it = sandbox.metadata.find(key);
      matches = matches && it != sandbox.metadata.end() && it->second == value;
    }
    if (matches) found.push_back(&sandbox);
  }
  std::sort(found.begin(), found.end(), [](const FakeSandbox* a, const FakeSandbox* b) {
    return std::tie(b->created_at, a->id) < std::tie(a->created_at, b->id);  // newest first
  });
  json items = json::array();
  for (size_t i = (page - 1) * size; i < std::min(found.size(), page * size); ++i) {
    items.push_back(json::parse(RecordJson(*found[i])));
  }
  return Answer(200, json{{"items", items},
                          {"pagination",
                           {{"page", page},
                            {"pageSize", size},
                            {"totalItems", found.size()},
                            {"totalPages", (found.size() + size - 1) / size},
                            {"hasNextPage", page * size < found.size()}}}}
                         .dump());
}

}  // namespace bridge
