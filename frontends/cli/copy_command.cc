// SPDX-License-Identifier: Apache-2.0
//
// `sbx cp`.
#include <fmt/format.h>
#include <signal.h>

#include <utility>

#include "frontends/cli/command.h"
#include "frontends/cli/copy.h"
#include "frontends/cli/copy_in.h"
#include "frontends/cli/copy_out.h"

namespace bridge::cli {
namespace {

struct Plan {
  std::vector<std::string> sources;
  Place target;
  std::string sandbox_id;
  bool into_sandbox = false;
  bool stream = false;  // stdin or stdout is one side
};

absl::StatusOr<Plan> ReadPlan(const std::vector<std::string>& words) {
  Plan plan;
  absl::StatusOr<Place> target = ParsePlace(words.back());
  if (!target.ok()) return target.status();
  plan.target = *std::move(target);
  plan.into_sandbox = plan.target.remote();
  plan.sandbox_id = plan.target.sandbox_id;
  plan.stream = plan.target.stream();
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    absl::StatusOr<Place> source = ParsePlace(words[i]);
    if (!source.ok()) return source.status();
    if (source->remote() == plan.into_sandbox) {
      return absl::InvalidArgumentError(
          "one side is in a sandbox (ID:/PATH) and the other one on this machine");
    }
    if (source->remote() && i > 0 && source->sandbox_id != plan.sandbox_id) {
      return absl::InvalidArgumentError("all sources must be in one sandbox");
    }
    if (source->remote()) plan.sandbox_id = source->sandbox_id;
    plan.stream = plan.stream || source->stream();
    plan.sources.push_back(std::move(source->path));
  }
  if (plan.stream && plan.sources.size() != 1) {
    return absl::InvalidArgumentError("with \"-\" there is one source and one target");
  }
  return plan;
}

// What doing it again would do, which is not the same everywhere.
std::string_view AfterInterrupt(const Plan& plan) {
  if (plan.stream) return "interrupted; what came on a pipe is not there to be gone on with";
  return plan.into_sandbox ? "interrupted; the same command again sends what is not there yet, and "
                             "the file that was under way from its beginning"
                           : "interrupted; the same command again goes on where this one was";
}

int RunCopy(Context& context, const Arguments& arguments) {
  const absl::StatusOr<Plan> plan = ReadPlan(arguments.words());
  if (!plan.ok()) return FailUsage(context, "cp", plan.status());
  const bool shows =
      context.streams.err_is_terminal() && !context.json && !arguments.Has("--quiet");
  Copy copy{context,
            {arguments.Has("--recursive"), arguments.Has("--dereference")},
            {},
            Progress(context.streams, shows)};
  // Between two calls, too, the first signal lets the present step end.
  const Interrupts::Scope scope(context.interrupts, [](int) {});
  if (plan->into_sandbox) {
    CopyIn in(copy, plan->sandbox_id);
    plan->stream ? in.RunStream(context.streams.in(), plan->target.path)
                 : in.Run(plan->sources, plan->target.path);
  } else {
    CopyOut out(copy, plan->sandbox_id);
    plan->stream ? out.RunStream(plan->sources[0]) : out.Run(plan->sources, plan->target.path);
  }
  copy.progress.Clear();
  if (copy.interrupted()) {
    context.streams.Note(AfterInterrupt(*plan));
    return kExitSignalBase + context.interrupts.first();
  }
  int exit_code = kExitOk;
  // Where stdout is the content's, nothing else may be on it.
  const bool wanted = context.json || (!plan->stream && !arguments.Has("--quiet"));
  if (wanted && !plan->target.stream()) {
    exit_code = Print(context, copy.report.ToJson(), copy.report.ToText());
  }
  return copy.report.failed > 0 ? kExitFailed : exit_code;
}

}  // namespace

std::vector<Command> CopyCommands() {
  using K = Option::Kind;
  return {
      {"cp", "[OPTIONS] SOURCE… TARGET", "Copy files into a sandbox or out of it",
       "One side is in a sandbox, ID:/PATH; the other one is a path of this machine or \"-\" for\n"
       "stdin or stdout. Modes and times come along, owners do not. Each file appears in one\n"
       "step. Links are copied as links and never written through.\n"
       "\n"
       "Done again, it leaves alone what is there (same size and time). A large file out of a\n"
       "sandbox is gone on with where it was broken off; one into a sandbox begins again, because\n"
       "it appears there whole or not at all and what was sent of it is not kept.\n"
       "\n"
       "  sbx cp -r src ID:/srv\n"
       "  sbx cp ID:/srv/report.pdf .\n"
       "  tar c . | sbx cp - ID:/tmp/all.tar\n",
       CommandLine{
           .options = {{"--recursive", 'r', K::kFlag, "", "Directories with all that is in them."},
                       {"--dereference", 'L', K::kFlag, "",
                        "Copy what links point to, and write through links."},
                       {"--quiet", 'q', K::kFlag, "", "Say nothing but what went wrong."}},
           .min_words = 2,
           .max_words = 1000,
           .local_words = true},
       RunCopy},
  };
}

}  // namespace bridge::cli
