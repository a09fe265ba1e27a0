// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/process_convert.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/base/utf8.h"
#include "bridge/service/exec_convert.h"
#include "bridge/service/time_convert.h"
#include "bridge/service/validate.h"

namespace bridge {
namespace {

namespace v1 = sandbox::bridge::v1;

constexpr size_t kMaxArgBytes = 128 * 1024;
constexpr uint32_t kMaxCells = 65535;

}  // namespace

absl::StatusOr<TerminalSize> TerminalSizeFromProto(std::string_view field,
                                                   const v1::TerminalSize& size) {
  if (size.rows() > kMaxCells) {
    return InvalidField(std::string(field) + ".rows", "must be at most 65535");
  }
  if (size.columns() > kMaxCells) {
    return InvalidField(std::string(field) + ".columns", "must be at most 65535");
  }
  TerminalSize result;
  if (size.rows() > 0) result.rows = static_cast<uint16_t>(size.rows());
  if (size.columns() > 0) result.columns = static_cast<uint16_t>(size.columns());
  return result;
}

absl::StatusOr<ProcessSpec> ProcessSpecFromProto(const v1::ProcessSpec& spec) {
  ProcessSpec result;
  if (spec.has_argv()) {
    if (spec.argv().args().empty() || spec.argv().args(0).empty()) {
      return InvalidField("spec.argv.args", "must name a program");
    }
    for (int i = 0; i < spec.argv().args_size(); ++i) {
      RETURN_IF_ERROR(CheckText(ElementField("spec.argv.args", static_cast<size_t>(i)),
                                spec.argv().args(i), kMaxArgBytes));
      result.argv.push_back(spec.argv().args(i));
    }
  } else if (spec.has_shell()) {
    if (spec.shell().empty()) return InvalidField("spec.shell", "must not be empty");
    RETURN_IF_ERROR(CheckText("spec.shell", spec.shell(), kMaxArgBytes));
    result.shell = spec.shell();
  }
  if (spec.has_terminal()) {
    ASSIGN_OR_RETURN(result.terminal, TerminalSizeFromProto("spec.terminal", spec.terminal()));
  }
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
  return result;
}

void ProcessInfoToProto(const ProcessInfo& info, v1::ProcessInfo* proto) {
  proto->set_process_id(info.process_id);
  proto->set_pid(info.pid);
  proto->set_parent_pid(info.parent_pid);
  proto->set_group_id(info.group_id);
  proto->set_user(ToValidUtf8(info.user));
  for (const std::string& arg : info.command_line) proto->add_command_line(arg);
  constexpr v1::ProcessInfo::State kStates[] = {
      v1::ProcessInfo::STATE_RUNNING, v1::ProcessInfo::STATE_PENDING, v1::ProcessInfo::STATE_EXITED,
      v1::ProcessInfo::STATE_STOPPED, v1::ProcessInfo::STATE_ZOMBIE};
  proto->set_state(kStates[static_cast<int>(info.state)]);
  if (info.outcome) OutcomeToProto(*info.outcome, proto->mutable_outcome());
  if (info.started_at != absl::InfinitePast()) {
    TimeToProto(info.started_at, proto->mutable_started_at());
  }
  proto->set_terminal(info.terminal);
  if (info.output_offset) proto->set_output_offset(*info.output_offset);
}

void ProcessEventToProto(ProcessEvent event, v1::ProcessEvent* proto) {
  if (auto* attached = std::get_if<Attached>(&event)) {
    auto* message = proto->mutable_attached();
    message->set_offset(attached->offset);
    message->set_running(attached->running);
    message->set_restarted(attached->restarted);
    message->set_streams_apart(attached->streams_apart);
  } else if (auto* output = std::get_if<ProcessOutput>(&event)) {
    auto* message = proto->mutable_output();
    message->set_offset(output->offset);
    if (output->stream) message->set_stream(StreamToProto(*output->stream));
    message->set_data(std::move(output->data));
  } else if (auto* taken = std::get_if<StdinTaken>(&event)) {
    proto->mutable_stdin_ack()->set_offset(taken->offset);
  } else if (std::holds_alternative<Displaced>(event)) {
    proto->mutable_displaced();
  } else if (auto* exited = std::get_if<ProcessExited>(&event)) {
    OutcomeToProto(exited->outcome, proto->mutable_exited()->mutable_outcome());
  } else {
    proto->mutable_drained()->set_end_offset(std::get<ProcessDrained>(event).end_offset);
  }
}

}  // namespace bridge
