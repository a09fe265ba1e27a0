// SPDX-License-Identifier: Apache-2.0
//
// `sbx create`, `ls`, `info` and `rm`.
#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <cctype>
#include <utility>

#include "frontends/cli/command.h"
#include "frontends/cli/sandbox_calls.h"
#include "frontends/cli/sandbox_options.h"
#include "frontends/cli/text.h"

namespace bridge::cli {
namespace {

using google::protobuf::Timestamp;
using google::protobuf::util::TimeUtil;
using sandbox::bridge::v1::DeleteSandboxResponse;
using sandbox::bridge::v1::ListSandboxesRequest;
using sandbox::bridge::v1::ListSandboxesResponse;
using sandbox::bridge::v1::Sandbox;
using sandbox::bridge::v1::SandboxService;
using sandbox::bridge::v1::SandboxState;

double SecondsFromNow(const Timestamp& time) {
  const absl::Time then = absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
  return absl::ToDoubleSeconds(then - absl::Now());
}

std::string AgeText(const Sandbox& sandbox) {
  if (!sandbox.has_created_at()) return "?";
  return DurationText(std::max(0.0, -SecondsFromNow(sandbox.created_at())));
}

std::string ExpiryText(const Sandbox& sandbox) {
  if (!sandbox.has_expires_at()) return "never";
  const double left = SecondsFromNow(sandbox.expires_at());
  return left > 0 ? fmt::format("in {}", DurationText(left)) : "due";
}

std::string StateText(const Sandbox& sandbox) {
  if (sandbox.state() == sandbox::bridge::v1::SANDBOX_STATE_UNKNOWN) {
    return fmt::format("unknown ({})", Printable(sandbox.upstream_state()));
  }
  std::string name = sandbox::bridge::v1::SandboxState_Name(sandbox.state());
  name.erase(0, std::string_view("SANDBOX_STATE_").size());
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::string OriginText(const Sandbox& sandbox) {
  return Printable(sandbox.image().empty() ? sandbox.snapshot_id() : sandbox.image());
}

std::string LabelsText(const Sandbox& sandbox) {
  std::map<std::string, std::string> sorted(sandbox.metadata().begin(), sandbox.metadata().end());
  std::string text;
  for (const auto& [key, value] : sorted) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", Printable(key), Printable(value));
  }
  return text;
}

int RunCreate(Context& context, const Arguments& arguments) {
  const auto request = ReadSandboxOptions(arguments, /*with_env=*/true, context.environment);
  if (!request.ok()) return FailUsage(context, "create", request.status());
  // Between the calls, too, the first signal does not end sbx: somebody must learn of the sandbox.
  const Interrupts::Scope scope(context.interrupts, [](int) {});
  sandbox::bridge::v1::CreateSandboxResponse response;
  const grpc::Status status = CreateSandbox(context, *request, &response);
  if (!status.ok()) return FailCall(context, status);
  if (response.ttl_clamped()) {
    context.streams.Note(fmt::format("the ttl was raised to the upstream's minimum; it expires {}",
                                     ExpiryText(response.sandbox())));
  }
  if (response.adopted()) context.streams.Note("this request id made it before; nothing new");
  const std::string& id = response.sandbox().sandbox_id();
  const int printed = Print(context, CreateJson(response), fmt::format("{}\n", Printable(id)));
  if (printed == kExitOk) return printed;
  // It would run on and nobody would know it.
  DeleteSandboxResponse deleted;
  if (response.adopted()) {
    context.streams.Note(fmt::format("the sandbox is {}", Printable(id)));
  } else if (Discard(context, id, &deleted) && IsGone(deleted)) {
    context.streams.Note(fmt::format("sandbox {} was deleted again", Printable(id)));
  }
  return printed;
}

absl::StatusOr<SandboxState> ParseState(const std::string& word) {
  std::string name = "SANDBOX_STATE_";
  for (const char c : word) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  SandboxState state = sandbox::bridge::v1::SANDBOX_STATE_UNSPECIFIED;
  if (!sandbox::bridge::v1::SandboxState_Parse(name, &state) || state == 0) {
    return absl::InvalidArgumentError(fmt::format("--state: there is no state \"{}\"", word));
  }
  return state;
}

absl::StatusOr<ListSandboxesRequest> ReadFilter(const Arguments& arguments) {
  ListSandboxesRequest request;
  for (const std::string& text : arguments.List("--label")) {
    const auto pair = ParsePair("--label", text);
    if (!pair.ok()) return pair.status();
    (*request.mutable_metadata())[pair->first] = pair->second;
  }
  for (const std::string& word : arguments.List("--state")) {
    const auto state = ParseState(word);
    if (!state.ok()) return state.status();
    request.add_states(*state);
  }
  request.set_request_id(arguments.Value("--request-id"));
  request.set_page_size(200);
  return request;
}

std::string ListText(const ListSandboxesResponse& all, bool quiet) {
  std::string ids;
  std::vector<std::vector<std::string>> rows = {
      {"SANDBOX", "STATE", "AGE", "EXPIRES", "IMAGE", "LABELS"}};
  for (const Sandbox& sandbox : all.sandboxes()) {
    ids += Printable(sandbox.sandbox_id()) + '\n';
    rows.push_back({Printable(sandbox.sandbox_id()), StateText(sandbox), AgeText(sandbox),
                    ExpiryText(sandbox), OriginText(sandbox), LabelsText(sandbox)});
  }
  return quiet ? ids : Table(rows);
}

int RunList(Context& context, const Arguments& arguments) {
  absl::StatusOr<ListSandboxesRequest> request = ReadFilter(arguments);
  if (!request.ok()) return FailUsage(context, "ls", request.status());
  ListSandboxesResponse all;
  do {
    ListSandboxesResponse page;
    const grpc::Status status = Call(context, context.bridge.sandboxes(),
                                     &SandboxService::Stub::ListSandboxes, *request, &page);
    if (!status.ok()) return FailCall(context, status);
    request->set_page_token(page.next_page_token());
    page.clear_next_page_token();
    all.MergeFrom(page);
  } while (!request->page_token().empty());
  Json json = ToJson(all);
  json.erase("next_page_token");
  return Print(context, json, ListText(all, arguments.Has("--quiet")));
}

std::string InfoText(const Sandbox& sandbox) {
  std::vector<std::vector<std::string>> rows = {
      {"sandbox", Printable(sandbox.sandbox_id())},
      {"state", StateText(sandbox)},
      {"image", OriginText(sandbox)},
      {"created",
       sandbox.has_created_at()
           ? fmt::format("{} ({} ago)", TimeUtil::ToString(sandbox.created_at()), AgeText(sandbox))
           : std::string("unknown")},
      {"expires",
       sandbox.has_expires_at()
           ? fmt::format("{} ({})", TimeUtil::ToString(sandbox.expires_at()), ExpiryText(sandbox))
           : std::string("never")},
      {"incarnation", Printable(sandbox.incarnation())},
  };
  const std::string why =
      sandbox.state_message().empty()
          ? sandbox.state_reason()
          : fmt::format("{}: {}", sandbox.state_reason(), sandbox.state_message());
  if (!why.empty()) rows.push_back({"because", Printable(why)});
  if (!sandbox.platform().empty()) rows.push_back({"platform", Printable(sandbox.platform())});
  if (!sandbox.metadata().empty()) rows.push_back({"labels", LabelsText(sandbox)});
  if (!sandbox.request_id().empty())
    rows.push_back({"request id", Printable(sandbox.request_id())});
  return Table(rows);
}

int RunInfo(Context& context, const Arguments& arguments) {
  sandbox::bridge::v1::GetSandboxRequest request;
  request.set_sandbox_id(arguments.words()[0]);
  Sandbox response;
  const grpc::Status status = Call(context, context.bridge.sandboxes(),
                                   &SandboxService::Stub::GetSandbox, request, &response);
  if (!status.ok()) return FailCall(context, status);
  return Print(context, ToJson(response), InfoText(response));
}

std::string DeleteText(const std::string& sandbox_id, const DeleteSandboxResponse& response) {
  std::string text = fmt::format("{}: ", Printable(sandbox_id));
  switch (response.verdict()) {
    case DeleteSandboxResponse::VERDICT_CONFIRMED_GONE:
      text += "gone, confirmed\n";
      break;
    case DeleteSandboxResponse::VERDICT_ALREADY_GONE:
      text += "was gone already\n";
      break;
    case DeleteSandboxResponse::VERDICT_ACCEPTED_UNCONFIRMED:
      text += "deletion accepted, NOT confirmed\n";
      break;
    default:
      text += "no verdict\n";
  }
  for (const auto& evidence : response.evidence()) {
    text +=
        fmt::format("  {} {} {} {}\n", TimeUtil::ToString(evidence.at()), evidence.action(),
                    evidence.upstream_status() == 0 ? std::string("-")
                                                    : std::to_string(evidence.upstream_status()),
                    Printable(evidence.detail()));
  }
  return text;
}

int RunRemove(Context& context, const Arguments& arguments) {
  std::optional<absl::Duration> wait;
  if (arguments.Has("--wait")) {
    const auto parsed = ParseDuration(arguments.Value("--wait"));
    if (!parsed.ok()) return FailUsage(context, "rm", parsed.status());
    wait = *parsed;
  }
  int exit_code = kExitOk;
  for (const std::string& sandbox_id : arguments.words()) {
    DeleteSandboxResponse response;
    const grpc::Status status = DeleteSandbox(context, sandbox_id, wait, &response);
    if (!status.ok()) {
      exit_code = FailCall(context, status);
      if (context.interrupts.first() != 0) return exit_code;
      continue;
    }
    const int printed =
        Print(context, DeleteJson(sandbox_id, response), DeleteText(sandbox_id, response));
    if (printed != kExitOk) return printed;
    if (!IsGone(response)) exit_code = kExitFailed;
  }
  return exit_code;
}

}  // namespace

std::vector<Command> SandboxCommands() {
  using K = Option::Kind;
  constexpr size_t kMany = 100'000;
  return {
      {"create", "[OPTIONS]", "Make a sandbox and print its id",
       "Returns when the sandbox is usable. On failure, or after Ctrl-C, none is left behind.\n"
       "\n"
       "  id=$(sbx create --ttl 2h --label team=blue)\n",
       CommandLine{.options = SandboxOptions(/*with_env=*/true)}, RunCreate},
      {"ls", "[OPTIONS]", "List sandboxes, newest first", "",
       CommandLine{.options = {{"--label", 'l', K::kList, "KEY=VALUE",
                                "Only with this metadata. May be repeated: all must match."},
                               {"--state", 's', K::kList, "STATE",
                                "Only in this state: running, paused, failed, … May be repeated."},
                               {"--request-id", 0, K::kValue, "WORD",
                                "Only the one that this request id made."},
                               {"--quiet", 'q', K::kFlag, "", "Ids alone."}}},
       RunList},
      {"info", "ID", "Show one sandbox", "", CommandLine{.min_words = 1, .max_words = 1}, RunInfo},
      {"rm", "[OPTIONS] ID…", "Delete sandboxes and prove that they are gone",
       "Prints the verdict and the observations it rests on. Exit code 0 only when every sandbox\n"
       "is known to be gone; deleting one that is gone already is no error.\n"
       "\n"
       "  sbx ls -q -l team=blue | xargs sbx rm\n",
       CommandLine{.options = {{"--wait", 0, K::kValue, "TIME",
                                "How long to look for proof. Default: 20s."}},
                   .min_words = 1,
                   .max_words = kMany},
       RunRemove},
  };
}

}  // namespace bridge::cli
