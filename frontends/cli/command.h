// SPDX-License-Identifier: Apache-2.0
//
// cli/command.h — what a command is and what it works with.
//
// A command runs on the main thread and returns the exit code of sbx. It prints results on stdout
// (text for people, with --json one object, or one a line for streams) and failures on stderr.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "frontends/cli/connection.h"
#include "frontends/cli/exit_code.h"
#include "frontends/cli/failure.h"
#include "frontends/cli/interrupts.h"
#include "frontends/cli/json.h"
#include "frontends/cli/options.h"
#include "frontends/cli/streams.h"

namespace bridge::cli {

struct Context {
  Streams& streams;
  Interrupts& interrupts;
  Connection& bridge;
  const EnvironmentLookup& environment;
  bool json = false;
};

struct Command {
  std::string_view name;
  std::string_view synopsis;     // after the name: "[OPTIONS] ID [--] COMMAND…"
  std::string_view summary;      // for the list of commands; no full stop
  std::string_view description;  // for its help; ends with a line end
  CommandLine line;
  int (*run)(Context&, const Arguments&) = nullptr;
  // exec and run answer the exit codes of other people's programs, so their own are out of the way.
  bool passes_exit_code = false;
};

// Every command in the order of the help.
const std::vector<Command>& Commands();

// The tables of commands, one function a file.
std::vector<Command> SandboxCommands();
std::vector<Command> ExecCommands();
std::vector<Command> ManageCommands();
std::vector<Command> ProcessCommands();
std::vector<Command> DoctorCommands();
std::vector<Command> CopyCommands();
std::vector<Command> ShellCommands();

// A unary call may take this long unless a command says otherwise.
inline constexpr absl::Duration kUnaryTimeout = absl::Seconds(35);

// Prints the failure and returns `exit_code`.
int Fail(Context& context, const Failure& failure, int exit_code = kExitFailed);

// The same for a mistake in the command's line.
int FailUsage(Context& context, std::string_view command, const absl::Status& status,
              int exit_code = kExitUsage);

// The same for a failed call. After Ctrl-C it says so instead and returns 128 + signal.
int FailCall(Context& context, const grpc::Status& status, int exit_code = kExitFailed);

// The exit code where a command's call failed: that of a command which could not be started, when
// the failure says so.
int StartFailureCode(const grpc::Status& status);

// Prints one line of JSON or `text`; a reader that went away ends the command with 141.
int Print(Context& context, const Json& json, std::string_view text);

// One unary call with the caller's token and a deadline; Ctrl-C cancels it.
template <typename Stub, typename Request, typename Response>
grpc::Status Call(Context& context, Stub& stub,
                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  const Request& request, Response* response,
                  absl::Duration timeout = kUnaryTimeout) {
  const auto call = context.bridge.NewContext(timeout);
  const Interrupts::Scope scope(context.interrupts, [&](int) { call->TryCancel(); });
  return (stub.*method)(call.get(), request, response);
}

}  // namespace bridge::cli
