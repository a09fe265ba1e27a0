// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_frames.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "bridge/base/error.h"
#include "bridge/opensandbox/daemon_client.h"
#include "bridge/opensandbox/json.h"
#include "bridge/opensandbox/no_room.h"

namespace bridge {
namespace {

using Json = nlohmann::json;

uint64_t BigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

absl::Status Malformed(std::string_view what) {
  return MakeError(ErrorReason::ERROR_REASON_UPSTREAM_PROTOCOL,
                   "the sandbox's daemon sent " + std::string(what) + " that cannot be read");
}

Json ParseObject(std::string_view text) {
  Json object = ParseJson(text);
  return object.is_object() ? object : Json(nullptr);
}

int64_t Int(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}

bool Bool(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_boolean() && it->get<bool>();
}

// Does a descendant hold one of the outputs? Absent where the daemon does not say so of both.
std::optional<bool> StillOpen(const Json& object) {
  for (const char* key : {"stdout_open", "stderr_open"}) {
    const auto it = object.find(key);
    if (it == object.end() || !it->is_boolean()) return std::nullopt;
  }
  return Bool(object, "stdout_open") || Bool(object, "stderr_open");
}

std::string Text(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

absl::Time Time(const Json& object, const char* key) {
  absl::Time time;
  std::string ignored;
  const std::string text = Text(object, key);
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &ignored)) return absl::InfinitePast();
  return time;
}

// Only a number that Linux can have meant: any other one would be an end that nobody saw.
std::optional<int> NumberWithin(const Json& object, const char* key, int low, int high) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_integer()) return std::nullopt;
  if (it->is_number_unsigned() && it->get<uint64_t>() > static_cast<uint64_t>(high)) {
    return std::nullopt;
  }
  const auto number = it->get<int64_t>();
  if (number < low || number > high) return std::nullopt;
  return static_cast<int>(number);
}

absl::StatusOr<ExecExited> ExitedOf(const Json& object) {
  ExecExited exited;
  exited.ran_for = absl::Milliseconds(Int(object, "ran_ms"));
  const std::string kind = Text(object, "kind");
  const std::optional<int> code = NumberWithin(object, "code", 0, 255);
  const std::optional<int> number = NumberWithin(object, "signal", 1, 64);
  if (kind == "exited" && code) {
    exited.outcome = ExitCode{*code};
  } else if (kind == "signalled" && number) {
    const Signalled signalled{*number, Bool(object, "core_dumped")};
    exited.outcome = signalled;
    if (Bool(object, "signalled_by_request")) exited.outcome = CancelledEnd{true, signalled};
  } else {
    return Malformed("an exec's outcome");
  }
  if (Bool(object, "timed_out")) exited.outcome = TimedOut{exited.ran_for};
  return exited;
}

SpawnFailed::Kind KindOf(std::string_view name) {
  using Kind = SpawnFailed::Kind;
  if (name == "NOT_FOUND") return Kind::kNotFound;
  if (name == "NOT_EXECUTABLE") return Kind::kNotExecutable;
  if (name == "ARGUMENTS_TOO_LONG") return Kind::kArgumentsTooLong;
  if (name == "BAD_CWD") return Kind::kBadCwd;
  if (name == "BAD_USER") return Kind::kBadUser;
  return Kind::kOther;
}

std::string_view WordsFor(SpawnFailed::Kind kind) {
  switch (kind) {
    case SpawnFailed::Kind::kNotFound:
      return "no such program";
    case SpawnFailed::Kind::kNotExecutable:
      return "the program cannot be executed";
    case SpawnFailed::Kind::kArgumentsTooLong:
      return "argument list too long";
    case SpawnFailed::Kind::kBadCwd:
      return "the working directory cannot be entered";
    case SpawnFailed::Kind::kBadUser:
      return "the user or group cannot be assumed";
    case SpawnFailed::Kind::kNoRoom:
    case SpawnFailed::Kind::kOther:
      break;
  }
  return "the program could not be started";
}

}  // namespace

void ExecFrameParser::Feed(std::string_view bytes) {
  if (taken_ > 0) {
    buffer_.erase(0, taken_);
    taken_ = 0;
  }
  buffer_.append(bytes);
}

bool ExecFrameParser::Next(ExecFrame* frame) {
  if (!status_.ok()) return false;
  const std::string_view rest = std::string_view(buffer_).substr(taken_);
  if (rest.size() < kExecFrameHeaderBytes) return false;
  const size_t length = BigEndian(rest.substr(4, 4));
  if (length > kMaxExecFramePayload) {
    status_ = Malformed("a frame");
    return false;
  }
  if (rest.size() < kExecFrameHeaderBytes + length) return false;
  frame->type = static_cast<uint8_t>(rest[0]);
  frame->offset = BigEndian(rest.substr(8, 8));
  frame->payload = rest.substr(kExecFrameHeaderBytes, length);
  taken_ += kExecFrameHeaderBytes + length;
  return true;
}

std::string EncodeExecFrame(uint8_t type, uint64_t offset, std::string_view payload) {
  std::string frame(kExecFrameHeaderBytes, '\0');
  frame[0] = static_cast<char>(type);
  for (int i = 0; i < 4; ++i) frame[4 + i] = static_cast<char>(payload.size() >> (24 - 8 * i));
  for (int i = 0; i < 8; ++i) frame[8 + i] = static_cast<char>(offset >> (56 - 8 * i));
  frame.append(payload);
  return frame;
}

absl::StatusOr<ExecStarted> ParseExecStarted(std::string_view json) {
  const Json object = ParseObject(json);
  if (object.is_null()) return Malformed("an exec's start");
  ExecStarted started{Text(object, "exec_id"), Int(object, "pid"), Time(object, "started_at")};
  if (started.exec_id.empty()) return Malformed("an exec's start");
  return started;
}

absl::StatusOr<ExecExited> ParseExecExited(std::string_view json) {
  const Json object = ParseObject(json);
  if (object.is_null()) return Malformed("an exec's outcome");
  return ExitedOf(object);
}

absl::StatusOr<ExecDrained> ParseExecDrained(std::string_view json) {
  const Json object = ParseObject(json);
  if (object.is_null()) return Malformed("an exec's totals");
  return ExecDrained{Int(object, "stdout_bytes"), Int(object, "stderr_bytes"), StillOpen(object)};
}

absl::StatusOr<ExecRecord> ParseExecRecord(std::string_view json) {
  const Json object = ParseObject(json);
  if (object.is_null() || !object.contains("running")) return Malformed("an exec's record");
  ExecRecord record;
  record.running = Bool(object, "running");
  record.pid = Int(object, "pid");
  record.started_at = Time(object, "started_at");
  record.stdout_bytes = Int(object, "stdout_bytes");
  record.stderr_bytes = Int(object, "stderr_bytes");
  record.still_open = StillOpen(object);
  if (const auto outcome = object.find("outcome");
      outcome != object.end() && outcome->is_object()) {
    absl::StatusOr<ExecExited> exited = ExitedOf(*outcome);
    if (!exited.ok()) return exited.status();
    record.exited = *std::move(exited);
    record.finished_at = Time(*outcome, "finished_at");
  }
  return record;
}

std::string ExecRequestJson(const ExecSpec& spec, absl::Duration heartbeat,
                            std::string_view exec_id) {
  Json body = Json::object();
  if (!exec_id.empty()) body["exec_id"] = std::string(exec_id);
  if (spec.argv.empty()) {
    body["shell"] = spec.shell;
  } else {
    body["argv"] = spec.argv;
  }
  if (!spec.env.empty()) {
    Json env = Json::object();
    for (const auto& [name, value] : spec.env) env[name] = value;
    body["env"] = std::move(env);
  }
  if (!spec.cwd.empty()) body["cwd"] = spec.cwd;
  if (!spec.user.name.empty()) body["user"] = spec.user.name;
  if (spec.user.uid) body["uid"] = *spec.user.uid;
  if (spec.user.gid) body["gid"] = *spec.user.gid;
  if (!spec.stdin_bytes.empty()) {
    body["stdin_b64"] =
        absl::Base64Escape(absl::string_view(spec.stdin_bytes.data(), spec.stdin_bytes.size()));
  }
  if (spec.timeout != absl::InfiniteDuration()) {
    body["timeout_ms"] = std::max<int64_t>(1, absl::ToInt64Milliseconds(spec.timeout));
  }
  body["on_disconnect"] = spec.detach_on_disconnect ? "detach" : "kill";
  body["heartbeat_ms"] = std::clamp<int64_t>(absl::ToInt64Milliseconds(heartbeat), 100, 3'600'000);
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ExecRefusal ParseExecRefusal(const HttpResponse& response) {
  const std::string_view body = response.body;
  const Json object = ParseObject(body);
  const std::string code = object.is_null() ? "" : Text(object, "code");
  const auto fail = [&code, &response](ErrorReason reason, std::string_view words) {
    ExecRefusal refusal;
    refusal.status =
        MakeError(reason, words,
                  {.metadata = {{"upstream_code", code},
                                {"upstream_status", std::to_string(response.status)}}});
    return refusal;
  };
  if (code == "SPAWN_FAILED") {
    const SpawnFailed::Kind kind = KindOf(Text(object, "kind"));
    if (kind == SpawnFailed::Kind::kBadUser) {
      return fail(ErrorReason::ERROR_REASON_UNKNOWN_USER, WordsFor(kind));
    }
    ExecRefusal refusal;
    refusal.spawn_failed = SpawnFailed{kind, std::string(WordsFor(kind))};
    return refusal;
  }
  if (code == "NOT_FOUND" || code == "NOT_RUNNING") {
    return fail(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND, "no exec of this id runs");
  }
  if (code == "OUTPUT_GONE") {
    ExecRefusal refusal = fail(ErrorReason::ERROR_REASON_REPLAY_GAP,
                               "output before the first byte still held was asked for");
    for (const char* stream : {"stdout", "stderr"}) {
      refusal.status =
          WithMetadata(refusal.status, std::string("first_available_") + stream,
                       std::to_string(Int(object, (std::string("first_") + stream).c_str())));
    }
    return refusal;
  }
  const std::string field = object.is_null() ? "" : Text(object, "field");
  if (code == "INVALID_ARGUMENT" && (field == "stdout" || field == "stderr")) {
    ExecRefusal refusal;  // the place where an attachment is to begin
    refusal.status = InvalidField(field + "_offset", "lies ahead of the output");
    return refusal;
  }
  if (code == "INVALID_ARGUMENT") {
    return fail(ErrorReason::ERROR_REASON_UPSTREAM_REJECTED,
                "the sandbox's daemon refused the request's content");
  }
  if (code == "TOO_MANY") {
    const int64_t limit = Int(object, "limit");
    if (limit <= 0) {
      return fail(ErrorReason::ERROR_REASON_QUOTA_EXCEEDED, std::string(NoRoomError().message()));
    }
    ExecRefusal refusal = fail(ErrorReason::ERROR_REASON_QUOTA_EXCEEDED,
                               "the sandbox's daemon runs as many commands as it may; end some");
    refusal.status = WithMetadata(refusal.status, "limit", std::to_string(limit));
    return refusal;
  }
  if (code == "PERMISSION_DENIED") {
    return fail(ErrorReason::ERROR_REASON_PERMISSION_DENIED, "the sandbox does not permit this");
  }
  ExecRefusal refusal;
  refusal.status = DaemonError(response, "run a command");
  return refusal;
}

}  // namespace bridge
