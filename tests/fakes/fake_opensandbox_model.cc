// SPDX-License-Identifier: Apache-2.0
//
// What the lifecycle server in memory does with one sandbox and with snapshots.
#include <nlohmann/json.hpp>

#include "tests/fakes/fake_opensandbox.h"

namespace bridge {
namespace {

using nlohmann::json;

std::string Stamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

}  // namespace

std::string FakeOpenSandbox::RecordJson(const FakeSandbox& sandbox) {
  json record = {{"id", sandbox.id},
                 {"status",
                  {{"state", sandbox.state},
                   {"reason", sandbox.reason},
                   {"message", sandbox.message},
                   {"lastTransitionAt", Stamp(sandbox.created_at)}}},
                 {"entrypoint", {"tail", "-f", "/dev/null"}},
                 {"createdAt", Stamp(sandbox.created_at)}};
  if (!sandbox.metadata.empty()) record["metadata"] = sandbox.metadata;
  if (sandbox.expires_at) record["expiresAt"] = Stamp(*sandbox.expires_at);
  if (sandbox.snapshot_id.empty()) {
    record["image"] = {{"uri", sandbox.image}};
  } else {
    record["snapshotId"] = sandbox.snapshot_id;
  }
  return record.dump();
}

HttpResponse FakeOpenSandbox::ServeSandbox(const std::string& method, const std::string& id,
                                           const std::string& rest, const HttpRequest& request,
                                           const std::string& query) {
  FakeSandbox* sandbox = Find(id);
  if (sandbox == nullptr) {
    return Error(404, "DOCKER::SANDBOX_NOT_FOUND", "Sandbox " + id + " not found.");
  }
  if (rest.empty() && method == "GET") return Answer(200, RecordJson(*sandbox));
  if (rest.empty() && method == "DELETE") {
    sandboxes_.erase(id);
    return Answer(204, "");
  }
  if (rest == "/metadata" && method == "PATCH") {
    const json patch = json::parse(request.body, nullptr, false);
    for (const auto& [key, value] : patch.items()) {
      if (value.is_null()) {
        sandbox->metadata.erase(key);
      } else {
        sandbox->metadata[key] = value;
      }
    }
    return Answer(200, RecordJson(*sandbox));
  }
  if (rest == "/pause" && method == "POST") {
    if (sandbox->state != "Running") {
      return Error(409, "DOCKER::SANDBOX_NOT_RUNNING", "Sandbox is not in a running state.");
    }
    sandbox->state = "Paused";
    sandbox->reason = "CONTAINER_PAUSED";
    return Answer(202, "");
  }
  if (rest == "/resume" && method == "POST") {
    if (sandbox->state != "Paused") {
      return Error(409, "DOCKER::SANDBOX_NOT_PAUSED", "Sandbox is not in a paused state.");
    }
    sandbox->state = "Running";
    sandbox->reason = "CONTAINER_RUNNING";
    return Answer(202, "");
  }
  if (rest == "/renew-expiration" && method == "POST") {
    absl::Time at;
    std::string error;
    const std::string text = json::parse(request.body)["expiresAt"];
    if (!absl::ParseTime(absl::RFC3339_full, text, &at, &error)) return Answer(422, "{}");
    if (!sandbox->expires_at) {
      return Error(409, "DOCKER::INVALID_EXPIRATION",
                   "Sandbox " + id + " does not have automatic expiration enabled.");
    }
    if (at <= Now()) {
      return Error(400, "DOCKER::INVALID_EXPIRATION", "New expiration time must be in the future.");
    }
    sandbox->expires_at = at;
    return Answer(200, json{{"expiresAt", Stamp(at)}}.dump());
  }
  if (rest.rfind("/endpoints/", 0) == 0 && method == "GET") {
    const std::string port = rest.substr(11);
    if (query.find("expires=") != std::string::npos) {
      return Error(400, "SANDBOX::API_NOT_SUPPORTED", "Signed routes are not supported.");
    }
    std::string endpoint = sandbox->address + "/proxy/" + port;
    if (port == "8080") endpoint = "10.0.0.1:50581";
    if (port == "44772" && !sandbox->endpoint.empty()) endpoint = sandbox->endpoint;
    if (query.find("use_server_proxy=true") != std::string::npos) {
      endpoint = "srv:8080/v1/sandboxes/" + id + "/proxy/" + port;
    }
    json answer = {{"endpoint", endpoint}};
    if (!endpoint_headers.empty()) answer["headers"] = endpoint_headers;
    return Answer(200, answer.dump());
  }
  if (rest == "/snapshots" && method == "POST") {
    if (sandbox->state != "Running") {
      return Error(409, "SNAPSHOT::INVALID_SOURCE_STATE",
                   "Snapshot can only be created from a Running sandbox.");
    }
    const json body = json::parse(request.body, nullptr, false);
    Snapshot snapshot = {"snap-" + std::to_string(next_++), id,
                         body.is_object() ? body.value("name", "") : "", "Creating", Now()};
    snapshots_[snapshot.id] = snapshot;
    return Snapshots("GET", "/" + snapshot.id);
  }
  return Answer(404, R"({"detail":"Not Found"})");
}

HttpResponse FakeOpenSandbox::Snapshots(const std::string& method, const std::string& rest) {
  const auto to_json = [](const Snapshot& snapshot) {
    return json{{"id", snapshot.id},
                {"sandboxId", snapshot.sandbox_id},
                {"name", snapshot.name},
                {"status", {{"state", snapshot.state}, {"message", "m"}}},
                {"createdAt", Stamp(snapshot.created_at)}};
  };
  if (rest.empty()) {
    json items = json::array();
    for (const auto& [id, snapshot] : snapshots_) items.push_back(to_json(snapshot));
    return Answer(
        200,
        json{
            {"items", items},
            {"pagination",
             {{"page", 1}, {"pageSize", 50}, {"totalItems", items.size()}, {"hasNextPage", false}}}}
            .dump());
  }
  const auto it = snapshots_.find(rest.substr(1));
  if (it == snapshots_.end()) return Error(404, "SNAPSHOT::NOT_FOUND", "Snapshot not found");
  if (method == "DELETE") {
    snapshots_.erase(it);
    return Answer(204, "");
  }
  const json answer = to_json(it->second);
  it->second.state = "Ready";  // seen once as Creating
  return Answer(200, answer.dump());
}

}  // namespace bridge
