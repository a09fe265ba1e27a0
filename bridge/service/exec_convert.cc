// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/exec_convert.h"

#include "bridge/base/error.h"
#include "bridge/base/signal_names.h"
#include "bridge/base/status_macros.h"
#include "bridge/service/time_convert.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr absl::Duration kMaxTimeout = absl::Hours(24 * 365);
constexpr size_t kMaxArgs = 10000;
constexpr size_t kMaxCommandBytes = size_t{2} << 20;

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

absl::Status CommandFromProto(const v1::ExecSpec& spec, ExecSpec* result) {
  switch (spec.command_case()) {
    case v1::ExecSpec::kArgv: {
      const auto& args = spec.argv().args();
      if (args.empty() || args.Get(0).empty()) {
        return InvalidField("spec.argv.args", "must name a program");
      }
      if (static_cast<size_t>(args.size()) > kMaxArgs) {
        return InvalidField("spec.argv.args", "must be at most 10000 arguments");
      }
      for (int i = 0; i < args.size(); ++i) {
        RETURN_IF_ERROR(CheckText(ElementField("spec.argv.args", static_cast<size_t>(i)),
                                  args.Get(i), kMaxCommandBytes));
        result->argv.push_back(args.Get(i));
      }
      return absl::OkStatus();
    }
    case v1::ExecSpec::kShell:
      if (spec.shell().empty()) return InvalidField("spec.shell", "must not be empty");
      RETURN_IF_ERROR(CheckText("spec.shell", spec.shell(), kMaxCommandBytes));
      result->shell = spec.shell();
      return absl::OkStatus();
    case v1::ExecSpec::COMMAND_NOT_SET:
      break;
  }
  return InvalidField("spec.command", "one of argv and shell is required");
}

v1::Outcome::SpawnFailed::Kind SpawnKindToProto(SpawnFailed::Kind kind) {
  switch (kind) {
    case SpawnFailed::Kind::kNotFound:
      return v1::Outcome::SpawnFailed::KIND_NOT_FOUND;
    case SpawnFailed::Kind::kNotExecutable:
      return v1::Outcome::SpawnFailed::KIND_NOT_EXECUTABLE;
    case SpawnFailed::Kind::kArgumentsTooLong:
      return v1::Outcome::SpawnFailed::KIND_ARGUMENTS_TOO_LONG;
    case SpawnFailed::Kind::kBadCwd:
      return v1::Outcome::SpawnFailed::KIND_BAD_CWD;
    case SpawnFailed::Kind::kBadUser:
      return v1::Outcome::SpawnFailed::KIND_BAD_USER;
    case SpawnFailed::Kind::kNoRoom:
    case SpawnFailed::Kind::kOther:
      break;
  }
  return v1::Outcome::SpawnFailed::KIND_OTHER;
}

void SignalledToProto(const Signalled& signalled, v1::Outcome::Signalled* proto) {
  proto->set_number(signalled.number);
  proto->set_name(SignalName(signalled.number));
  proto->set_core(signalled.core);
}

}  // namespace

UserSpec UserFromIds(const v1::User::Ids& ids) {
  UserSpec spec;
  spec.uid = ids.uid();
  if (ids.has_gid()) spec.gid = ids.gid();
  return spec;
}

absl::StatusOr<UserSpec> UserFromProto(std::string_view field, const v1::User& user) {
  RETURN_IF_ERROR(CheckUser(field, user));
  if (user.has_ids()) return UserFromIds(user.ids());
  return UserSpec{.name = user.name()};
}

absl::StatusOr<ExecSpec> ExecSpecFromProto(const v1::ExecSpec& spec) {
  ExecSpec result;
  RETURN_IF_ERROR(CommandFromProto(spec, &result));
  if (!spec.cwd().empty()) {
    RETURN_IF_ERROR(CheckPath("spec.cwd", spec.cwd()));
    result.cwd = spec.cwd();
  }
  RETURN_IF_ERROR(CheckEnv("spec.env", spec.env()));
  for (const v1::EnvVar& variable : spec.env()) {
    result.env.emplace_back(variable.name(), variable.value());
  }
  if (spec.has_user()) {
    ASSIGN_OR_RETURN(result.user, UserFromProto("spec.user", spec.user()));
  }
  if (spec.has_timeout()) {
    ASSIGN_OR_RETURN(result.timeout, CheckDuration("spec.timeout", spec.timeout(),
                                                   absl::Nanoseconds(1), kMaxTimeout));
    result.timeout = absl::Ceil(result.timeout, absl::Milliseconds(1));
  }
  if (static_cast<int64_t>(spec.stdin().size()) > kMaxStdinBytes) {
    return InvalidField("spec.stdin", "must be at most 8 MiB; larger input belongs in a file");
  }
  result.stdin_bytes = spec.stdin();
  RETURN_IF_ERROR(CheckEnum("spec.on_disconnect", spec.on_disconnect(),
                            v1::ExecSpec::OnDisconnect_IsValid(spec.on_disconnect())));
  result.detach_on_disconnect = spec.on_disconnect() == v1::ExecSpec::ON_DISCONNECT_DETACH;
  RETURN_IF_ERROR(
      CheckEnum("spec.fidelity", spec.fidelity(), v1::Fidelity_IsValid(spec.fidelity())));
  if (spec.fidelity() == v1::FIDELITY_BEST) result.fidelity = ExecFidelity::kBest;
  if (spec.fidelity() == v1::FIDELITY_LINES) result.fidelity = ExecFidelity::kLines;
  if (spec.has_max_output_bytes() && spec.max_output_bytes() < 0) {
    return InvalidField("spec.max_output_bytes", "must not be negative");
  }
  return result;
}

absl::StatusOr<absl::Duration> KeepaliveFromProto(bool present,
                                                  const google::protobuf::Duration& value,
                                                  std::string_view field) {
  if (!present) return kDefaultKeepalive;
  return CheckDuration(field, value, absl::Seconds(1), absl::Hours(1));
}

void OutcomeToProto(const Outcome& outcome, v1::Outcome* proto) {
  std::visit(Overloaded{
                 [proto](const ExitCode& exit) { proto->set_exit_code(exit.code); },
                 [proto](const Signalled& signalled) {
                   SignalledToProto(signalled, proto->mutable_signal());
                 },
                 [proto](const TimedOut& timed_out) {
                   DurationToProto(timed_out.after, proto->mutable_timed_out()->mutable_after());
                 },
                 [proto](const CancelledEnd& cancelled) {
                   v1::Outcome::Cancelled* end = proto->mutable_cancelled();
                   end->set_confirmed(cancelled.confirmed);
                   if (cancelled.signal) SignalledToProto(*cancelled.signal, end->mutable_signal());
                 },
                 [proto](const SpawnFailed& failed) {
                   proto->mutable_spawn_failed()->set_kind(SpawnKindToProto(failed.kind));
                   proto->mutable_spawn_failed()->set_message(failed.message);
                 },
                 [proto](const Lost& lost) {
                   proto->mutable_lost()->set_reason(lost.reason);
                   proto->mutable_lost()->set_maybe_running(lost.maybe_running);
                 },
             },
             outcome);
}

void ExecInfoToProto(const ExecInfo& info, v1::ExecInfo* proto) {
  proto->set_running(info.running);
  if (info.outcome) OutcomeToProto(*info.outcome, proto->mutable_outcome());
  if (info.started_at != absl::InfinitePast()) {
    TimeToProto(info.started_at, proto->mutable_started_at());
  }
  if (info.finished_at != absl::InfinitePast()) {
    TimeToProto(info.finished_at, proto->mutable_finished_at());
  }
  if (info.stdout_bytes) proto->set_stdout_bytes(*info.stdout_bytes);
  if (info.stderr_bytes) proto->set_stderr_bytes(*info.stderr_bytes);
  if (info.still_open) proto->set_still_open(*info.still_open);
  proto->set_fidelity(FidelityToProto(info.fidelity));
}

v1::Fidelity FidelityToProto(ExecFidelity fidelity) {
  return fidelity == ExecFidelity::kLines ? v1::FIDELITY_LINES : v1::FIDELITY_BYTES;
}

v1::OutputStream StreamToProto(StreamId stream) {
  return stream == StreamId::kStdout ? v1::OUTPUT_STREAM_STDOUT : v1::OUTPUT_STREAM_STDERR;
}

}  // namespace bridge
