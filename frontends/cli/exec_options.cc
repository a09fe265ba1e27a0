// SPDX-License-Identifier: Apache-2.0
#include "frontends/cli/exec_options.h"

#include <fmt/format.h>

#include "absl/strings/numbers.h"
#include "bridge/base/status_macros.h"
#include "frontends/cli/sandbox_options.h"
#include "frontends/cli/text.h"

namespace bridge::cli {
namespace {

using sandbox::bridge::v1::ExecSpec;
using sandbox::bridge::v1::Fidelity;
using sandbox::bridge::v1::User;

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

absl::Status ReadCommand(const Arguments& arguments, ExecSpec& spec) {
  const bool has_line = arguments.Has("--shell");
  if (has_line && !arguments.rest().empty()) {
    return absl::InvalidArgumentError("give a command or --shell, not both");
  }
  if (!has_line && arguments.rest().empty()) {
    return absl::InvalidArgumentError("no command given");
  }
  if (has_line) {
    spec.set_shell(arguments.Value("--shell"));
  } else {
    for (const std::string& word : arguments.rest()) spec.mutable_argv()->add_args(word);
  }
  return absl::OkStatus();
}

absl::StatusOr<Fidelity> ParseFidelity(const std::string& word) {
  if (word == "bytes") return Fidelity::FIDELITY_BYTES;
  if (word == "best") return Fidelity::FIDELITY_BEST;
  if (word == "lines") return Fidelity::FIDELITY_LINES;
  return absl::InvalidArgumentError(
      fmt::format("--fidelity is bytes, best or lines, not \"{}\"", word));
}

}  // namespace

std::vector<Option> ExecOptions() {
  using K = Option::Kind;
  return {
      {"--shell", 'c', K::kValue, "LINE",
       "Run a line of the sandbox's shell instead of a program."},
      {"--cwd", 'w', K::kValue, "DIR", "Working directory. Default: the image's."},
      {"--env", 'e', K::kList, "NAME=VALUE",
       "Environment of the command; NAME alone takes yours. May be repeated."},
      {"--user", 'u', K::kValue, "USER", "Run as NAME, UID or UID:GID."},
      {"--timeout", 't', K::kValue, "TIME", "Kill it after this time: 30s, 5m. Exit code 124."},
      {"--stdin", 'i', K::kFlag, "",
       "Read stdin to its end first, also from a terminal or a slow pipe."},
      {"--no-stdin", 'n', K::kFlag, "", "Give it no input: do not touch stdin."},
      {"--fidelity", 0, K::kValue, "WORD",
       "bytes (default: exact, or refused), best, or lines (cheapest)."},
      {"--max-output", 0, K::kValue, "BYTES", "Drop output beyond this, per stream."},
  };
}

absl::StatusOr<ExecSpec> ReadExecOptions(const Arguments& arguments,
                                         const EnvironmentLookup& environment) {
  ExecSpec spec;
  RETURN_IF_ERROR(ReadCommand(arguments, spec));
  spec.set_cwd(arguments.Value("--cwd"));
  for (const std::string& text : arguments.List("--env")) {
    ASSIGN_OR_RETURN(*spec.add_env(), ParseEnv(text, environment));
  }
  if (arguments.Has("--user")) {
    ASSIGN_OR_RETURN(*spec.mutable_user(), ParseUser(arguments.Value("--user")));
  }
  if (arguments.Has("--timeout")) {
    ASSIGN_OR_RETURN(const absl::Duration timeout, ParseDuration(arguments.Value("--timeout")));
    SetDuration(timeout, *spec.mutable_timeout());
  }
  if (arguments.Has("--fidelity")) {
    ASSIGN_OR_RETURN(const Fidelity fidelity, ParseFidelity(arguments.Value("--fidelity")));
    spec.set_fidelity(fidelity);
  }
  if (arguments.Has("--max-output")) {
    int64_t bytes = 0;
    if (!absl::SimpleAtoi(arguments.Value("--max-output"), &bytes) || bytes < 0) {
      return absl::InvalidArgumentError("--max-output wants a number of bytes");
    }
    spec.set_max_output_bytes(bytes);
  }
  return spec;
}

absl::StatusOr<InputMode> ReadInputMode(const Arguments& arguments) {
  const bool wait = arguments.Has("--stdin");
  const bool none = arguments.Has("--no-stdin");
  if (wait && none) return absl::InvalidArgumentError("--stdin and --no-stdin exclude each other");
  return wait ? InputMode::kWait : none ? InputMode::kNone : InputMode::kAuto;
}

absl::StatusOr<User> ParseUser(const std::string& text) {
  User user;
  const size_t colon = text.find(':');
  const std::string first = text.substr(0, colon);
  const absl::Status wrong =
      absl::InvalidArgumentError(fmt::format("--user is NAME, UID or UID:GID, not \"{}\"", text));
  uint32_t number = 0;
  if (!IsNumber(first)) {
    if (first.empty() || colon != std::string::npos) return wrong;
    user.set_name(text);
    return user;
  }
  if (!absl::SimpleAtoi(first, &number)) return wrong;
  user.mutable_ids()->set_uid(number);
  if (colon != std::string::npos) {
    const std::string second = text.substr(colon + 1);
    if (!IsNumber(second) || !absl::SimpleAtoi(second, &number)) return wrong;
    user.mutable_ids()->set_gid(number);
  }
  return user;
}

}  // namespace bridge::cli
