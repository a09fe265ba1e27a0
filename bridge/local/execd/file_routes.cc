// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/file_routes.h"

#include <array>

#include "bridge/local/execd/download.h"
#include "bridge/local/execd/file_ops.h"
#include "bridge/local/execd/go_json.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/reply.h"
#include "bridge/local/execd/upload.h"

namespace bridge::local::execd {
namespace {

using http::Exchange;

constexpr char kParsing[] = "error parsing request, MAYBE invalid body format. ";

ApiError ParseError(const std::string& reason) { return {400, kInvalidBody, kParsing + reason}; }

// The body as an object whose members are objects; nothing when it was answered with an error.
std::optional<JsonValue> ReadObject(Exchange& exchange, const char* go_type) {
  const auto body = ReadBody(exchange);
  if (!body) return std::nullopt;
  JsonParse parsed = ParseGoJson(*body);
  const JsonFields whole(parsed.value, "", go_type);
  const std::string error = parsed.error.empty() ? whole.error() : parsed.error;
  if (error.empty()) return std::move(parsed.value);
  ReplyError(exchange, ParseError(error));
  return std::nullopt;
}

std::optional<std::map<std::string, Permission>> ReadPermissions(Exchange& exchange) {
  const auto object = ReadObject(exchange, "map[string]model.Permission");
  if (!object) return std::nullopt;
  std::map<std::string, Permission> out;
  for (const auto& [path, value] : object->members) {
    JsonFields fields(value, "Permission", "model.Permission");
    Permission permission;
    fields.String("owner", &permission.owner);
    fields.String("group", &permission.group);
    fields.Int64("mode", &permission.mode, "int");
    if (!fields.ok()) {
      ReplyError(exchange, ParseError(fields.error()));
      return std::nullopt;
    }
    out[path] = permission;
  }
  return out;
}

void Info(Exchange& exchange) {
  std::string json;
  if (const auto error = DescribeFiles(QueryValues(exchange, "path"), &json)) {
    ReplyError(exchange, *error);
  } else {
    ReplyJson(exchange, 200, std::move(json));
  }
}

void ReplyFiles(Exchange& exchange, const std::optional<ApiError>& error,
                const std::vector<FileInfo>& files) {
  if (error) {
    ReplyError(exchange, *error);
  } else {
    ReplyJson(exchange, 200, FileListJson(files));
  }
}

void List(Exchange& exchange) {
  const std::string path = QueryValue(exchange, "path").value_or("");
  if (path.empty()) return ReplyError(exchange, MissingQuery("path"));
  const std::string depth_text = QueryValue(exchange, "depth").value_or("");
  const auto depth = depth_text.empty() ? 1 : JsonInteger(depth_text);
  if (!depth || *depth < 0) {
    return ReplyError(exchange,
                      {400, kInvalidBody, "invalid query parameter 'depth': " + depth_text});
  }
  std::vector<FileInfo> files;
  const auto error = ListDirectory(path, *depth, &files);
  ReplyFiles(exchange, error, files);
}

void Search(Exchange& exchange) {
  const std::string path = QueryValue(exchange, "path").value_or("");
  if (path.empty()) return ReplyError(exchange, MissingQuery("path"));
  std::string pattern = QueryValue(exchange, "pattern").value_or("");
  if (pattern.empty()) pattern = "**";
  std::vector<FileInfo> files;
  const auto error = SearchFiles(path, pattern, &files);
  ReplyFiles(exchange, error, files);
}

void MakeDirs(Exchange& exchange) {
  if (const auto wanted = ReadPermissions(exchange)) {
    ReplyOutcome(exchange, MakeDirectories(*wanted));
  }
}

void Permissions(Exchange& exchange) {
  if (const auto wanted = ReadPermissions(exchange)) {
    ReplyOutcome(exchange, ChangePermissions(*wanted));
  }
}

void Remove(Exchange& exchange) {
  ReplyOutcome(exchange, RemoveFiles(QueryValues(exchange, "path")));
}

void RemoveDirs(Exchange& exchange) {
  ReplyOutcome(exchange, RemoveDirectories(QueryValues(exchange, "path")));
}

void Move(Exchange& exchange) {
  const auto body = ReadBody(exchange);
  if (!body) return;
  const JsonParse parsed = ParseGoJson(*body);
  if (!parsed.error.empty()) return ReplyError(exchange, ParseError(parsed.error));
  if (parsed.value.kind != JsonValue::Kind::kArray && parsed.value.kind != JsonValue::Kind::kNull) {
    return ReplyError(exchange,
                      ParseError("json: cannot unmarshal " + std::string(parsed.value.KindName()) +
                                 " into Go value of type []model.RenameFileItem"));
  }
  std::vector<std::pair<std::string, std::string>> moves;
  for (const JsonValue& item : parsed.value.items) {
    JsonFields fields(item, "RenameFileItem", "model.RenameFileItem");
    auto& [from, to] = moves.emplace_back();
    fields.String("src", &from);
    fields.String("dest", &to);
    if (!fields.ok()) return ReplyError(exchange, ParseError(fields.error()));
  }
  ReplyOutcome(exchange, MoveFiles(moves));
}

void Replace(Exchange& exchange) {
  const auto object = ReadObject(exchange, "map[string]model.ReplaceFileContentItem");
  if (!object) return;
  std::map<std::string, Replacement> wanted;
  for (const auto& [path, value] : object->members) {
    JsonFields fields(value, "ReplaceFileContentItem", "model.ReplaceFileContentItem");
    Replacement change;
    fields.String("old", &change.before);
    fields.String("new", &change.after);
    if (!fields.ok()) return ReplyError(exchange, ParseError(fields.error()));
    wanted[path] = change;
  }
  std::map<std::string, int64_t> counts;
  if (const auto error = ReplaceText(wanted, &counts)) return ReplyError(exchange, *error);
  if (QueryValue(exchange, "verbose").value_or("") != "true") return ReplyEmpty(exchange);
  std::string json = "{";
  for (const auto& [path, count] : counts) {
    if (json.size() > 1) json += ',';
    AppendGoJsonString(json, path);
    json += ":{\"replacedCount\":" + std::to_string(count) + "}";
  }
  ReplyJson(exchange, 200, json + "}");
}

void HandleUpload(Exchange& exchange) {
  Upload upload(exchange.request().headers.Get("Content-Type").value_or(""));
  std::string buffer(128 * 1024, '\0');
  bool wanted = true;
  while (true) {
    const auto n = exchange.ReadBody(buffer.data(), buffer.size());
    // A body that breaks off is answered like a malformed one, if the client still listens.
    if (!n.ok() || *n == 0) break;
    if (wanted) wanted = upload.Feed(std::string_view(buffer).substr(0, *n));
  }
  ReplyOutcome(exchange, upload.Finish());
}

struct Route {
  const char* method;
  const char* path;
  void (*handler)(Exchange&);
};

constexpr std::array<Route, 11> kRoutes = {{
    {"GET", "/files/info", Info},
    {"GET", "/files/search", Search},
    {"GET", "/files/download", Download},
    {"POST", "/files/upload", HandleUpload},
    {"POST", "/files/mv", Move},
    {"POST", "/files/permissions", Permissions},
    {"POST", "/files/replace", Replace},
    {"DELETE", "/files", Remove},
    {"GET", "/directories/list", List},
    {"POST", "/directories", MakeDirs},
    {"DELETE", "/directories", RemoveDirs},
}};

// A uid or gid of a path: decimal, not the value that means "none".
std::optional<uint32_t> PathId(const Exchange& exchange, const char* name) {
  const auto number = JsonInteger(exchange.request().param(name));
  if (!number || *number < 0 || *number >= UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

void RunAs(Exchange& exchange, void (*handler)(Exchange&)) {
  const auto uid = PathId(exchange, "uid");
  const auto gid = PathId(exchange, "gid");
  if (!uid || !gid) {
    return ReplyError(exchange, {400, kInvalidBody, "invalid uid or gid in path"});
  }
  const AssumedFileIdentity identity(*uid, *gid);
  if (!identity.ok()) {
    return ReplyError(exchange, {500, kRuntimeError, "error assuming identity: " + GoErrno(1)});
  }
  handler(exchange);
}

}  // namespace

void AddFileRoutes(http::Router& router, const Habits& habits) {
  for (const Route& route : kRoutes) {
    router.Add(route.method, route.path, route.handler);
    if (habits.filesystem_prefix) {
      router.Add(route.method, std::string("/v1/filesystem/{uid}/{gid}") + route.path,
                 [handler = route.handler](Exchange& x) { RunAs(x, handler); });
    }
  }
}

}  // namespace bridge::local::execd
