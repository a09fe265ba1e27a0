// SPDX-License-Identifier: Apache-2.0
//
// `sbx shell`.
#include <utility>

#include "bridge/base/status_macros.h"
#include "frontends/cli/command.h"
#include "frontends/cli/exec_options.h"
#include "frontends/cli/sandbox_options.h"
#include "frontends/cli/shell_session.h"

namespace bridge::cli {
namespace {

absl::StatusOr<ShellOptions> ReadShellOptions(const Arguments& arguments,
                                              const EnvironmentLookup& environment) {
  ShellOptions options{.sandbox_id = arguments.words()[0],
                       .process_id = arguments.Value("--attach"),
                       .takeover = arguments.Has("--takeover"),
                       .keep = arguments.Has("--keep")};
  if (!options.process_id.empty()) {
    const bool more = !arguments.rest().empty() || arguments.Has("--cwd") ||
                      arguments.Has("--env") || arguments.Has("--user");
    if (more) return absl::InvalidArgumentError("--attach takes a process as it is");
    return options;
  }
  if (options.takeover) return absl::InvalidArgumentError("--takeover belongs to --attach");
  sandbox::bridge::v1::ProcessSpec& spec = options.spec;
  for (const std::string& word : arguments.rest()) spec.mutable_argv()->add_args(word);
  spec.set_cwd(arguments.Value("--cwd"));
  bool has_term = false;
  for (const std::string& text : arguments.List("--env")) {
    ASSIGN_OR_RETURN(*spec.add_env(), ParseEnv(text, environment));
    has_term = has_term || spec.env().rbegin()->name() == "TERM";
  }
  // Programs there must write for the terminal that is here.
  ASSIGN_OR_RETURN(const std::optional<std::string> term, OwnVariable("TERM", environment));
  if (term && !has_term) {
    auto* variable = spec.add_env();
    variable->set_name("TERM");
    variable->set_value(*term);
  }
  if (arguments.Has("--user")) {
    ASSIGN_OR_RETURN(*spec.mutable_user(), ParseUser(arguments.Value("--user")));
  }
  return options;
}

int RunShell(Context& context, const Arguments& arguments) {
  absl::StatusOr<ShellOptions> options = ReadShellOptions(arguments, context.environment);
  if (!options.ok()) return FailUsage(context, "shell", options.status(), kExitNoVerdict);
  if (!context.streams.in_is_terminal() || !context.streams.out_is_terminal()) {
    return Fail(context,
                LocalFailure("sbx shell wants a terminal on stdin and stdout",
                             "Use `sbx exec` where there is none."),
                kExitNoVerdict);
  }
  return ShellSession(context, *std::move(options)).Run();
}

}  // namespace

std::vector<Command> ShellCommands() {
  using K = Option::Kind;
  return {
      {"shell", "[OPTIONS] ID [--] [COMMAND [ARG…]]", "Work in a sandbox on a terminal",
       "Runs the sandbox's shell, or COMMAND, on a terminal there and shows it on yours. Every "
       "key\n"
       "goes there, Ctrl-C and Ctrl-D too; the window's size follows. The exit code is the\n"
       "process's, as with `sbx exec`. A broken connection is made again where it broke.\n"
       "\n"
       "\"~.\" at the beginning of a line leaves: the process is ended, or runs on with --keep.\n",
       CommandLine{
           .options = {{"--cwd", 'w', K::kValue, "DIR", "Working directory. Default: the image's."},
                       {"--env", 'e', K::kList, "NAME=VALUE",
                        "Environment; NAME alone takes yours. TERM comes along."},
                       {"--user", 'u', K::kValue, "USER", "Run as NAME, UID or UID:GID."},
                       {"--keep", 'k', K::kFlag, "", "Leave the process running on \"~.\"."},
                       {"--attach", 'a', K::kValue, "PROCESS",
                        "Show a process that runs on a terminal, from `sbx ps`."},
                       {"--takeover", 0, K::kFlag, "", "Take it from whoever holds it."}},
           .min_words = 1,
           .max_words = 1,
           .free_form = true},
       RunShell, true},
  };
}

}  // namespace bridge::cli
