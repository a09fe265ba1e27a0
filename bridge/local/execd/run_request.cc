// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/run_request.h"

#include <sys/stat.h>

#include <cerrno>

#include "bridge/local/execd/go_json.h"
#include "bridge/local/execd/go_text.h"
#include "bridge/local/execd/paths.h"
#include "bridge/local/execd/users.h"

namespace bridge::local::execd {
namespace {

constexpr std::string_view kParsing = "error parsing request, MAYBE invalid body format. ";
constexpr std::string_view kInvalid = "invalid request, validation error ";

ApiError Refuse(std::string_view prefix, std::string_view text) {
  return {400, kInvalidBody, std::string(prefix).append(text)};
}

// The words of the validation library that execd uses.
std::string FieldFailure(std::string_view field, std::string_view tag) {
  std::string out = "Key: 'RunCommandRequest.";
  out.append(field).append("' Error:Field validation for '").append(field);
  return out.append("' failed on the '").append(tag).append("' tag");
}

struct RawRequest {
  std::string command;
  std::vector<std::string> argv;
  std::string cwd;
  bool background = false;
  int64_t timeout_ms = 0;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  EnvMap envs;
};

std::optional<ApiError> ReadFields(std::string_view body, const Habits& habits, RawRequest* raw) {
  const JsonParse parsed = ParseGoJson(body);
  if (!parsed.error.empty()) return Refuse(kParsing, parsed.error);
  JsonFields fields(parsed.value, "RunCommandRequest", "model.RunCommandRequest");
  fields.String("command", &raw->command);
  if (habits.argv) fields.StringList("argv", &raw->argv);
  fields.String("cwd", &raw->cwd);
  fields.Bool("background", &raw->background);
  fields.Int64("timeout", &raw->timeout_ms);
  fields.Uint32("uid", &raw->uid);
  fields.Uint32("gid", &raw->gid);
  fields.StringMap("envs", &raw->envs);
  if (!fields.ok()) return Refuse(kParsing, fields.error());
  return std::nullopt;
}

std::optional<ApiError> CheckFields(const RawRequest& raw, const Habits& habits) {
  if (habits.argv) {
    if (raw.command.empty() == raw.argv.empty()) {
      return Refuse(kInvalid, "exactly one of command and argv is required");
    }
    if (!raw.argv.empty() && raw.argv[0].empty()) {
      return Refuse(kInvalid, "argv[0] must not be empty");
    }
  } else if (raw.command.empty()) {
    return Refuse(kInvalid, FieldFailure("Command", "required"));
  }
  if (raw.timeout_ms < 0) return Refuse(kInvalid, FieldFailure("TimeoutMs", "gte"));
  if (raw.gid && !raw.uid) return Refuse(kInvalid, "uid is required when gid is provided");
  return std::nullopt;
}

}  // namespace

std::string RunRequest::Content() const {
  if (argv.empty()) return command;
  std::string out;
  for (const std::string& argument : argv) {
    if (!out.empty()) out += ' ';
    out += argument;
  }
  return out;
}

std::string ResolveDirectory(std::string_view cwd, std::string* error) {
  if (cwd.empty()) return "";
  const EnvMap env = OwnEnvironment();
  const ExpandedPath expanded = ExpandPath(cwd, [&](std::string_view name) {
    const auto it = env.find(std::string(name));
    return it == env.end() ? std::nullopt : std::optional<std::string>(it->second);
  });
  if (!expanded.error.empty()) {
    *error = "cannot resolve working directory " + GoQuote(cwd) + ": " + expanded.error;
    return "";
  }
  struct stat info;
  if (stat(expanded.path.c_str(), &info) != 0) {
    *error = "working directory does not exist: " + expanded.path + ": " +
             GoPathError("stat", expanded.path, errno);
    return "";
  }
  if (!S_ISDIR(info.st_mode)) {
    *error = "working directory path is not a directory: " + expanded.path;
    return "";
  }
  return expanded.path;
}

Identity ResolveIdentity(uint32_t uid, std::optional<uint32_t> gid) {
  const UserDatabase users = UserDatabase::Read();
  Identity out{uid, gid.value_or(0), {}};
  if (const User* user = users.FindUser(uid)) {
    if (!gid) out.gid = user->gid;
    out.groups = users.GroupsOf(*user);
  }
  return out;
}

std::optional<ApiError> ParseRunRequest(std::string_view body, const Habits& habits,
                                        RunRequest* out) {
  RawRequest raw;
  if (auto refusal = ReadFields(body, habits, &raw)) return refusal;
  if (auto refusal = CheckFields(raw, habits)) return refusal;
  std::string cwd_error;
  out->cwd = ResolveDirectory(raw.cwd, &cwd_error);
  if (!cwd_error.empty()) return Refuse(kInvalid, cwd_error);
  if (raw.uid) out->identity = ResolveIdentity(*raw.uid, raw.gid);
  out->command = std::move(raw.command);
  out->argv = std::move(raw.argv);
  out->background = raw.background;
  out->timeout_ms = raw.timeout_ms;
  out->env = BaseEnvironment();
  for (auto& [name, value] : raw.envs) out->env[name] = std::move(value);
  return std::nullopt;
}

SpawnSpec MakeSpawnSpec(const RunRequest& request, std::string* error) {
  SpawnSpec spec;
  spec.env = EnvList(request.env);
  spec.cwd = request.cwd;
  spec.identity = request.identity;
  if (request.argv.empty()) {
    const Shell shell = FindShell();
    spec.program = shell.path;
    spec.argv = {shell.name, "-c", request.command};
    return spec;
  }
  const auto path = request.env.find("PATH");
  const auto program =
      LookPath(request.argv[0], path == request.env.end() ? std::string() : path->second);
  if (!program) {
    *error = "exec: " + GoQuote(request.argv[0]) + ": executable file not found in $PATH";
    return spec;
  }
  spec.program = *program;
  spec.argv = request.argv;
  return spec;
}

std::string SpawnFailure(const SpawnSpec& spec, const Processes::SpawnResult& result) {
  return GoPathError("fork/exec", spec.program, result.error);
}

}  // namespace bridge::local::execd
