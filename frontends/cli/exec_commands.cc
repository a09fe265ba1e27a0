// SPDX-License-Identifier: Apache-2.0
//
// `sbx exec` and `sbx run`.
#include <fmt/format.h>

#include <utility>

#include "frontends/cli/command.h"
#include "frontends/cli/exec_options.h"
#include "frontends/cli/exec_session.h"
#include "frontends/cli/sandbox_calls.h"
#include "frontends/cli/sandbox_options.h"

namespace bridge::cli {
namespace {

using sandbox::bridge::v1::CreateSandboxRequest;
using sandbox::bridge::v1::ExecuteRequest;

// Reads stdin for the command. On failure the exit code is set and false returned.
bool TakeInput(Context& context, InputMode mode, ExecuteRequest& request, bool& left_open,
               int& exit_code) {
  Streams& streams = context.streams;
  absl::StatusOr<Input> input = absl::CancelledError();
  {
    const Interrupts::Scope scope(context.interrupts, [&](int) { streams.Abandon(); });
    input = GatherInput(streams.in(), mode, kInputGrace, streams.abandon_fd());
  }
  if (input.ok()) {
    left_open = input->left_open;
    *request.mutable_spec()->mutable_stdin() = std::move(input->bytes);
    return true;
  }
  if (absl::IsCancelled(input.status())) {
    exit_code = kExitSignalBase + context.interrupts.first();
  } else {
    exit_code = Fail(
        context,
        LocalFailure(input.status(), "Copy it in with `sbx cp` and let the command read the file."),
        kExitNoVerdict);
  }
  return false;
}

int Execute(Context& context, ExecuteRequest request, InputMode mode) {
  bool left_open = false;
  int exit_code = kExitNoVerdict;
  if (!TakeInput(context, mode, request, left_open, exit_code)) return exit_code;
  ExecSession session(context, std::move(request));
  exit_code = session.Run();
  // A result that came from less input than was sent is no result.
  if (left_open && session.outcome() && InputCameLate(context.streams.in())) {
    return Fail(context,
                LocalFailure("input came on stdin after the command had started without it",
                             "Use -i to wait for all of the input, or -n when it has none."),
                kExitNoVerdict);
  }
  return exit_code;
}

int RunExec(Context& context, const Arguments& arguments) {
  ExecuteRequest request;
  absl::StatusOr<sandbox::bridge::v1::ExecSpec> spec =
      ReadExecOptions(arguments, context.environment);
  if (!spec.ok()) return FailUsage(context, "exec", spec.status(), kExitNoVerdict);
  const absl::StatusOr<InputMode> mode = ReadInputMode(arguments);
  if (!mode.ok()) return FailUsage(context, "exec", mode.status(), kExitNoVerdict);
  request.set_sandbox_id(arguments.words()[0]);
  request.set_detached(arguments.Has("--detach"));
  *request.mutable_spec() = *std::move(spec);
  return Execute(context, std::move(request), *mode);
}

// Deletes the sandbox of `sbx run`; the command's exit code stays what it was.
void CleanUp(Context& context, const std::string& sandbox_id) {
  sandbox::bridge::v1::DeleteSandboxResponse response;
  if (Discard(context, sandbox_id, &response) && context.json) {
    Print(context, Json{{"deleted", DeleteJson(sandbox_id, response)}}, "");
  }
}

int RunRun(Context& context, const Arguments& arguments) {
  ExecuteRequest request;
  absl::StatusOr<sandbox::bridge::v1::ExecSpec> spec =
      ReadExecOptions(arguments, context.environment);
  if (!spec.ok()) return FailUsage(context, "run", spec.status(), kExitNoVerdict);
  const absl::StatusOr<InputMode> mode = ReadInputMode(arguments);
  if (!mode.ok()) return FailUsage(context, "run", mode.status(), kExitNoVerdict);
  const absl::StatusOr<CreateSandboxRequest> create =
      ReadSandboxOptions(arguments, /*with_env=*/false, context.environment);
  if (!create.ok()) return FailUsage(context, "run", create.status(), kExitNoVerdict);

  sandbox::bridge::v1::CreateSandboxResponse created;
  const grpc::Status status = CreateSandbox(context, *create, &created);
  if (!status.ok()) return FailCall(context, status, kExitNoVerdict);
  const std::string sandbox_id = created.sandbox().sandbox_id();
  if (context.json) {
    const int printed = Print(context, Json{{"created", CreateJson(created)}}, "");
    // Nobody would learn what the command does, nor which sandbox --keep keeps.
    if (printed != kExitOk) {
      sandbox::bridge::v1::DeleteSandboxResponse ignored;
      (void)Discard(context, sandbox_id, &ignored);
      return printed == kExitFailed ? kExitNoVerdict : printed;
    }
  }

  request.set_sandbox_id(sandbox_id);
  *request.mutable_spec() = *std::move(spec);
  const int exit_code = Execute(context, std::move(request), *mode);
  if (arguments.Has("--keep")) {
    if (!context.json) context.streams.Note(fmt::format("kept sandbox {}", sandbox_id));
  } else {
    CleanUp(context, sandbox_id);
  }
  return exit_code;
}

}  // namespace

std::vector<Command> ExecCommands() {
  using K = Option::Kind;
  std::vector<Option> run_options = ExecOptions();
  for (Option& option : SandboxOptions(/*with_env=*/false)) {
    run_options.push_back(std::move(option));
  }
  run_options.push_back({"--keep", 0, K::kFlag, "", "Leave the sandbox when the command is over."});
  std::vector<Option> exec_options = ExecOptions();
  exec_options.push_back(
      {"--detach", 'd', K::kFlag, "", "Start it, print its exec id and leave it running."});
  return {
      {"run", "[OPTIONS] [--] COMMAND [ARG…]", "Run a command in a new sandbox, then delete it",
       "Makes a sandbox, runs the command there and deletes the sandbox, also when the command\n"
       "fails or Ctrl-C ends it. Input, output and exit code are as with `sbx exec`.\n"
       "\n"
       "  sbx run -- python3 -c 'print(6 * 7)'\n"
       "  cat data.csv | sbx run --image python:3.12-slim -- python3 -c \"$(cat job.py)\"\n",
       CommandLine{.options = std::move(run_options), .free_form = true}, RunRun, true},
      {"exec", "[OPTIONS] ID [--] COMMAND [ARG…]", "Run a command in a sandbox",
       "Output appears as it is printed, byte for byte, stdout and stderr apart. The exit code is\n"
       "the command's, or\n"
       "  128+N  a signal N ended it           124  --timeout ended it\n"
       "  127    no such program               126  it could not be started otherwise\n"
       "  125    the bridge or the sandbox failed; nothing is known of the command\n"
       "Ctrl-C kills the command and waits for its end; a second Ctrl-C leaves at once.\n"
       "\n"
       "Stdin is passed on when it is a file or a pipe (up to 8 MiB). A pipe that stays silent\n"
       "for a second counts as empty, so that a command that was not asked to read never waits:\n"
       "use -i when its writer is slow to begin. In shell loops use -n.\n"
       "\n"
       "  sbx exec ID -- ls -l /\n"
       "  sbx exec ID -c 'make 2>&1 | tail'\n"
       "  tar c src | sbx exec ID -w /tmp -- tar x\n",
       CommandLine{
           .options = std::move(exec_options), .min_words = 1, .max_words = 1, .free_form = true},
       RunExec, true},
  };
}

}  // namespace bridge::cli
