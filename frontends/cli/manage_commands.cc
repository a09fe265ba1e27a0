// SPDX-License-Identifier: Apache-2.0
//
// `sbx renew`, `pause`, `resume` and `url`.
#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include "absl/strings/numbers.h"
#include "frontends/cli/command.h"
#include "frontends/cli/sandbox_options.h"
#include "frontends/cli/text.h"

namespace bridge::cli {
namespace {

using google::protobuf::util::TimeUtil;
using sandbox::bridge::v1::Endpoint;
using sandbox::bridge::v1::SandboxService;

constexpr absl::Duration kPauseWait = absl::Seconds(30);   // PauseSandboxRequest.wait
constexpr absl::Duration kResumeWait = absl::Seconds(60);  // ResumeSandboxRequest.wait

int RunRenew(Context& context, const Arguments& arguments) {
  sandbox::bridge::v1::SetExpirationRequest request;
  request.set_sandbox_id(arguments.words()[0]);
  request.set_never_shorten(arguments.Has("--never-shorten"));
  if (arguments.words()[1] == "never") {
    request.set_never(true);
  } else {
    const auto ttl = ParseDuration(arguments.words()[1]);
    if (!ttl.ok()) return FailUsage(context, "renew", ttl.status());
    SetDuration(*ttl, *request.mutable_ttl());
  }
  sandbox::bridge::v1::SetExpirationResponse response;
  const grpc::Status status = Call(context, context.bridge.sandboxes(),
                                   &SandboxService::Stub::SetExpiration, request, &response);
  if (!status.ok()) return FailCall(context, status);
  if (response.clamped()) context.streams.Note("the ttl was raised to the upstream's minimum");
  if (response.unchanged()) context.streams.Note("it expires later already; left as it was");
  return Print(context, ToJson(response),
               response.has_expires_at() ? TimeUtil::ToString(response.expires_at()) + "\n"
                                         : std::string("never\n"));
}

// Pause and resume differ in their messages alone.
template <typename Request, typename Response, typename Method>
int Settle(Context& context, const Arguments& arguments, std::string_view command, Method method,
           absl::Duration wait, std::string_view done) {
  Request request;
  request.set_sandbox_id(arguments.words()[0]);
  if (arguments.Has("--wait")) {
    const auto parsed = ParseDuration(arguments.Value("--wait"));
    if (!parsed.ok()) return FailUsage(context, command, parsed.status());
    wait = *parsed;
    SetDuration(wait, *request.mutable_wait());
  }
  Response response;
  const grpc::Status status =
      Call(context, context.bridge.sandboxes(), method, request, &response, wait + kUnaryTimeout);
  if (!status.ok()) return FailCall(context, status);
  const std::string id = Printable(response.sandbox().sandbox_id());
  std::string text = fmt::format("{}: {}\n", id, done);
  if (response.already()) text = fmt::format("{}: was {} already\n", id, done);
  if (!response.settled()) text = fmt::format("{}: accepted, NOT yet {}\n", id, done);
  const int printed = Print(context, ToJson(response), text);
  return printed != kExitOk || response.settled() ? printed : kExitFailed;
}

int RunPause(Context& context, const Arguments& arguments) {
  return Settle<sandbox::bridge::v1::PauseSandboxRequest,
                sandbox::bridge::v1::PauseSandboxResponse>(
      context, arguments, "pause", &SandboxService::Stub::PauseSandbox, kPauseWait, "paused");
}

int RunResume(Context& context, const Arguments& arguments) {
  return Settle<sandbox::bridge::v1::ResumeSandboxRequest,
                sandbox::bridge::v1::ResumeSandboxResponse>(
      context, arguments, "resume", &SandboxService::Stub::ResumeSandbox, kResumeWait, "running");
}

int PrintEndpoint(Context& context, const Arguments& arguments, const Endpoint& endpoint) {
  for (const std::string& note : endpoint.notes()) context.streams.Note(Printable(note));
  std::string text =
      Printable(arguments.Has("--websocket") ? endpoint.websocket_url() : endpoint.url()) + "\n";
  if (arguments.Has("--headers")) {
    for (const Endpoint::Header& header : endpoint.headers()) {
      text += fmt::format("{}: {}\n", Printable(header.name()), Printable(header.value()));
    }
  } else if (endpoint.headers_size() > 0 && !context.json) {
    context.streams.Note(
        fmt::format("requests need {} header(s), which --headers shows", endpoint.headers_size()));
  }
  return Print(context, ToJson(endpoint), text);
}

int SignedUrl(Context& context, const Arguments& arguments, int port) {
  const auto valid = ParseDuration(arguments.Value("--signed"));
  if (!valid.ok()) return FailUsage(context, "url", valid.status());
  sandbox::bridge::v1::CreateSignedEndpointRequest request;
  request.set_sandbox_id(arguments.words()[0]);
  request.set_port(port);
  request.mutable_expires_at()->set_seconds(absl::ToUnixSeconds(absl::Now() + *valid));
  Endpoint endpoint;
  const grpc::Status status = Call(context, context.bridge.sandboxes(),
                                   &SandboxService::Stub::CreateSignedEndpoint, request, &endpoint);
  if (!status.ok()) return FailCall(context, status);
  return PrintEndpoint(context, arguments, endpoint);
}

int RunUrl(Context& context, const Arguments& arguments) {
  int port = 0;
  if (!absl::SimpleAtoi(arguments.words()[1], &port) || port < 1 || port > 65535) {
    return FailUsage(context, "url",
                     absl::InvalidArgumentError(
                         fmt::format("\"{}\" is no port: 1 to 65535", arguments.words()[1])));
  }
  if (arguments.Has("--direct") && arguments.Has("--proxy")) {
    return FailUsage(context, "url",
                     absl::InvalidArgumentError("--direct and --proxy exclude each other"));
  }
  if (arguments.Has("--signed")) return SignedUrl(context, arguments, port);
  sandbox::bridge::v1::GetEndpointRequest request;
  request.set_sandbox_id(arguments.words()[0]);
  request.set_port(port);
  if (arguments.Has("--direct")) request.set_route(sandbox::bridge::v1::ENDPOINT_ROUTE_DIRECT);
  if (arguments.Has("--proxy")) {
    request.set_route(sandbox::bridge::v1::ENDPOINT_ROUTE_SERVER_PROXY);
  }
  Endpoint endpoint;
  const grpc::Status status = Call(context, context.bridge.sandboxes(),
                                   &SandboxService::Stub::GetEndpoint, request, &endpoint);
  if (!status.ok()) return FailCall(context, status);
  return PrintEndpoint(context, arguments, endpoint);
}

}  // namespace

std::vector<Command> ManageCommands() {
  using K = Option::Kind;
  const Option wait = {"--wait", 0, K::kValue, "TIME", "How long to wait for it to settle."};
  return {
      {"renew", "[OPTIONS] ID TTL", "Move a sandbox's expiry",
       "TTL counts from now: 30m, 2h; \"never\" only asserts that there is no expiry. Prints the\n"
       "expiry that the upstream stored.\n",
       CommandLine{
           .options = {{"--never-shorten", 0, K::kFlag, "", "Leave a later expiry as it is."}},
           .min_words = 2,
           .max_words = 2},
       RunRenew},
      {"pause", "[OPTIONS] ID", "Freeze a sandbox", "Exit code 1 when it has not settled.\n",
       CommandLine{.options = {wait}, .min_words = 1, .max_words = 1}, RunPause},
      {"resume", "[OPTIONS] ID", "Thaw a paused sandbox",
       "Returns when it runs and answers again. Exit code 1 when it has not settled.\n",
       CommandLine{.options = {wait}, .min_words = 1, .max_words = 1}, RunResume},
      {"url", "[OPTIONS] ID PORT", "Print where a port of a sandbox is reached",
       "Nothing checks that something listens there.\n"
       "\n"
       "  curl \"$(sbx url ID 8000)/health\"\n",
       CommandLine{.options = {{"--headers", 0, K::kFlag, "",
                                "Also print the headers that every request needs. They may hold "
                                "credentials."},
                               {"--websocket", 0, K::kFlag, "", "Print the ws:// form."},
                               {"--direct", 0, K::kFlag, "", "Straight to the sandbox."},
                               {"--proxy", 0, K::kFlag, "", "Through the OpenSandbox server."},
                               {"--signed", 0, K::kValue, "TIME",
                                "A URL that carries its own credential for this long."}},
                   .min_words = 2,
                   .max_words = 2},
       RunUrl},
  };
}

}  // namespace bridge::cli
