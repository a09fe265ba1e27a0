// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/command.h"

#include <signal.h>

#include <string>

namespace bridge::cli {

int Fail(Context& context, const Failure& failure, int exit_code) {
  context.streams.Say(context.json ? FailureJson(failure) : FailureText(failure));
  return exit_code;
}

int FailUsage(Context& context, std::string_view command, const absl::Status& status,
              int exit_code) {
  return Fail(context, UsageFailure(command, status), exit_code);
}

int FailCall(Context& context, const grpc::Status& status, int exit_code) {
  const int signal = context.interrupts.first();
  if (signal != 0 && status.error_code() == grpc::StatusCode::CANCELLED) {
    context.streams.Note("interrupted; the call was cancelled");
    return kExitSignalBase + signal;
  }
  return Fail(context, FailureOf(status, context.bridge.where()), exit_code);
}

int StartFailureCode(const grpc::Status& status) {
  return FailureOf(status, "").reason == "UNKNOWN_USER" ? kExitCannotExecute : kExitNoVerdict;
}

int Print(Context& context, const Json& json, std::string_view text) {
  const absl::Status status =
      context.json ? context.streams.Out(JsonLine(json)) : context.streams.Out(text);
  if (status.ok()) return kExitOk;
  if (absl::IsAborted(status)) return kExitSignalBase + SIGPIPE;
  return Fail(context, LocalFailure(status, "Look at the disk or the pipe of stdout."));
}

}  // namespace bridge::cli
