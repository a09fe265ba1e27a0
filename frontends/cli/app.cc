// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/app.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "frontends/cli/command.h"

namespace bridge::cli {
namespace {

constexpr std::string_view kVersion = "0.1.0";

const std::vector<Option>& CommonOptions() {
  static const auto& options = *new std::vector<Option>{
      {"--bridge", 0, Option::Kind::kValue, "ADDRESS",
       "HOST:PORT, https://HOST:PORT or unix:/PATH. Default: $SANDBOX_BRIDGE_ADDRESS, else "
       "127.0.0.1:50051."},
      {"--json", 0, Option::Kind::kFlag, "",
       "Print JSON: one object, or one a line for streams; failures as JSON on stderr."},
      {"--help", 'h', Option::Kind::kFlag, "", "This text."},
  };
  return options;
}

std::string GeneralHelp() {
  std::string text =
      "Usage: sbx COMMAND [OPTIONS]\n"
      "\n"
      "Sandboxes from the command line, through a sandbox bridge.\n"
      "\n"
      "Commands:\n";
  for (const Command& command : Commands()) {
    text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  }
  text += "\nOptions of every command:\n" + ExplainOptions(CommonOptions());
  text +=
      "      --version           Print the version of sbx.\n"
      "\n"
      "Environment:\n"
      "  SANDBOX_BRIDGE_ADDRESS     where the bridge listens\n"
      "  SANDBOX_BRIDGE_TOKEN_FILE  file with the caller's token\n"
      "  SANDBOX_BRIDGE_CA_FILE     PEM file that the bridge's certificate is checked by; TLS\n"
      "  SANDBOX_BRIDGE_CLIENT_CERT_FILE, SANDBOX_BRIDGE_CLIENT_KEY_FILE\n"
      "                             PEM files of a client certificate\n"
      "  SANDBOX_BRIDGE_IMAGE       image of new sandboxes\n"
      "\n"
      "`sbx COMMAND --help` says more. `sbx doctor` checks the way to a working command.\n";
  return text;
}

std::string CommandHelp(const Command& command) {
  std::string text =
      fmt::format("Usage: sbx {} {}\n\n{}.\n", command.name, command.synopsis, command.summary);
  if (!command.description.empty()) text += fmt::format("\n{}", command.description);
  if (!command.line.options.empty()) {
    text += "\nOptions:\n" + ExplainOptions(command.line.options);
  }
  return text + "\nOptions of every command:\n" + ExplainOptions(CommonOptions());
}

// Whether --json stands before the user's own command; needed to report a line that does not parse.
bool WantsJson(const std::vector<std::string>& args) {
  const auto end = std::find(args.begin(), args.end(), "--");
  return std::find(args.begin(), end, "--json") != end;
}

int Complain(Streams& streams, const Failure& failure, bool json, int exit_code) {
  streams.Say(json ? FailureJson(failure) : FailureText(failure));
  return exit_code;
}

int RunCommand(const Command& command, const std::vector<std::string>& args, Streams& streams,
               Interrupts& interrupts, const EnvironmentLookup& environment) {
  CommandLine line = command.line;
  line.options.insert(line.options.end(), CommonOptions().begin(), CommonOptions().end());
  const int usage_code = command.passes_exit_code ? kExitNoVerdict : kExitUsage;
  const absl::StatusOr<Arguments> arguments = ParseArguments(line, args);
  // Help is wanted even where the rest of the line is wrong.
  const auto own = std::find(args.begin(), args.end(), "--");
  if (arguments.ok() ? arguments->Has("--help") : std::find(args.begin(), own, "--help") != own) {
    return streams.Out(CommandHelp(command)).ok() ? kExitOk : kExitFailed;
  }
  const bool json = arguments.ok() ? arguments->Has("--json") : WantsJson(args);
  if (!arguments.ok()) {
    return Complain(streams, UsageFailure(command.name, arguments.status()), json, usage_code);
  }
  if (arguments->Has("--bridge") && arguments->Value("--bridge").empty()) {
    // A variable that was not set is not to lead to another bridge.
    return Complain(streams, UsageFailure(command.name, "--bridge is empty"), json, usage_code);
  }
  absl::StatusOr<Settings> settings = Settings::Read(arguments->Value("--bridge"), environment);
  if (!settings.ok()) return Complain(streams, SettingFailure(settings.status()), json, usage_code);
  Connection connection(*std::move(settings));
  Context context{streams, interrupts, connection, environment, json};
  return command.run(context, *arguments);
}

}  // namespace

const std::vector<Command>& Commands() {
  static const auto& commands = *[] {
    auto* all = new std::vector<Command>();
    for (std::vector<Command> some :
         {ExecCommands(), ShellCommands(), CopyCommands(), SandboxCommands(), ManageCommands(),
          ProcessCommands(), DoctorCommands()}) {
      std::move(some.begin(), some.end(), std::back_inserter(*all));
    }
    return all;
  }();
  return commands;
}

int RunApp(const std::vector<std::string>& args, Streams& streams, Interrupts& interrupts,
           const EnvironmentLookup& environment) {
  const std::string first = args.empty() ? "" : args[0];
  if (first == "--version") {
    return streams.Out(fmt::format("sbx {}\n", kVersion)).ok() ? kExitOk : kExitFailed;
  }
  const bool wants_help = first == "--help" || first == "-h" || first == "help";
  std::string name = first;
  std::vector<std::string> rest(args.begin() + (args.empty() ? 0 : 1), args.end());
  if (wants_help && !rest.empty()) {
    name = rest[0];
    rest = {"--help"};
  } else if (wants_help) {
    return streams.Out(GeneralHelp()).ok() ? kExitOk : kExitFailed;
  }
  for (const Command& command : Commands()) {
    if (command.name == name) return RunCommand(command, rest, streams, interrupts, environment);
  }
  const std::string problem = args.empty() ? "no command given"
                              : name.front() == '-'
                                  ? fmt::format("{} belongs after a command", name)
                                  : fmt::format("there is no command {}", name);
  return Complain(streams, UsageFailure("", problem), WantsJson(args), kExitUsage);
}

}  // namespace bridge::cli
