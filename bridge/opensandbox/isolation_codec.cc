// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/isolation_codec.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/json.h"
#include "bridge/opensandbox/timestamps.h"

namespace bridge {
namespace {

using Json = nlohmann::json;

absl::Status Malformed(std::string_view what) {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   "the sandbox's daemon sent " + std::string(what) + " that cannot be read");
}

std::string Text(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

bool Flag(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_boolean() && it->get<bool>();
}

std::optional<uint32_t> Number(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_unsigned()) return std::nullopt;
  return it->get<uint32_t>();
}

std::string Dump(const Json& body) {
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// What lists and states have in common.
void TakeLife(const Json& object, IsolatedSession* session) {
  session->active = Text(object, "status") == "active";
  if (const auto time = ParseTimestamp(Text(object, "created_at"))) session->created_at = *time;
}

}  // namespace

std::string OpenSessionJson(const IsolatedSessionSpec& spec) {
  Json body = {{"profile", "strict"},
               {"workspace", {{"path", spec.workspace_source}, {"mode", "rw"}}},
               {"share_net", spec.share_network}};
  Json binds = Json::array();
  if (spec.workspace_path != spec.workspace_source) {
    binds.push_back({{"source", spec.workspace_source}, {"dest", spec.workspace_path}});
  }
  for (const IsolatedBind& bind : spec.binds) {
    binds.push_back({{"source", bind.source}, {"dest", bind.destination}});
    if (bind.read_only) binds.back()["readonly"] = true;
  }
  if (!binds.empty()) body["binds"] = std::move(binds);
  if (!spec.extra_writable.empty()) body["extra_writable"] = spec.extra_writable;
  if (spec.user.uid) body["uid"] = *spec.user.uid;
  if (spec.user.gid) body["gid"] = *spec.user.gid;
  if (spec.idle_timeout != absl::InfiniteDuration()) {
    body["idle_timeout_seconds"] =
        absl::ToInt64Seconds(absl::Ceil(spec.idle_timeout, absl::Seconds(1)));
  }
  return Dump(body);
}

absl::StatusOr<IsolatedSession> ParseOpenedSession(std::string_view json) {
  const Json object = ParseJson(json);
  IsolatedSession session;
  if (object.is_object()) session.id = Text(object, "session_id");
  if (session.id.empty()) return Malformed("an opened session");
  if (const auto time = ParseTimestamp(Text(object, "created_at"))) session.created_at = *time;
  return session;
}

absl::StatusOr<std::vector<IsolatedSession>> ParseSessionList(std::string_view json) {
  const Json object = ParseJson(json);
  if (!object.is_object()) return Malformed("a list of sessions");
  const auto list = object.find("sessions");
  if (list == object.end() || !list->is_array()) return Malformed("a list of sessions");
  std::vector<IsolatedSession> sessions;
  for (const Json& entry : *list) {
    IsolatedSession session;
    if (entry.is_object()) session.id = Text(entry, "session_id");
    if (session.id.empty()) return Malformed("a list of sessions");
    TakeLife(entry, &session);
    sessions.push_back(std::move(session));
  }
  return sessions;
}

absl::Status ParseSessionState(std::string_view json, IsolatedSession* session) {
  const Json object = ParseJson(json);
  if (!object.is_object() || Text(object, "status").empty()) return Malformed("a session's state");
  TakeLife(object, session);
  session->uid = Number(object, "uid");
  session->gid = Number(object, "gid");
  const auto workspace = object.find("workspace");
  if (workspace == object.end() || !workspace->is_object()) return absl::OkStatus();
  session->workspace_source = session->workspace_path = Text(*workspace, "path");
  const auto binds = object.find("binds");
  if (binds == object.end() || !binds->is_array()) return absl::OkStatus();
  for (const Json& bind : *binds) {
    if (!bind.is_object() || Text(bind, "source") != session->workspace_source) continue;
    if (Text(bind, "dest").empty()) continue;
    session->workspace_path = Text(bind, "dest");
    break;
  }
  return absl::OkStatus();
}

absl::StatusOr<IsolationInfo> ParseIsolation(std::string_view json) {
  const Json object = ParseJson(json);
  if (!object.is_object()) return Malformed("its isolation capabilities");
  IsolationInfo info;
  info.available = Flag(object, "available");
  info.isolator = Text(object, "isolator");
  info.version = Text(object, "version");
  info.setpriv = Flag(object, "setpriv_available");
  info.user_namespace = Flag(object, "userns_available");
  if (!info.available) {
    info.detail = Text(object, "message");
    if (info.detail.empty()) info.detail = "the sandbox's daemon says no more than that it cannot";
  }
  return info;
}

std::string SessionRunJson(std::string_view code) { return Dump({{"code", code}}); }

}  // namespace bridge
