// SPDX-License-Identifier: Apache-2.0
//
// `sbx doctor`: from here to a working command, one check after the other.
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <utility>

#include "frontends/cli/command.h"
#include "frontends/cli/sandbox_calls.h"
#include "frontends/cli/sandbox_options.h"
#include "frontends/cli/text.h"

namespace bridge::cli {
namespace {

using sandbox::bridge::v1::BridgeService;
using sandbox::bridge::v1::Capability;
using sandbox::bridge::v1::ExecService;
using sandbox::bridge::v1::SandboxService;

constexpr absl::Duration kCheckTimeout = absl::Seconds(10);
// Bytes that a path made of text lines would lose, and an exit code that is not 0 or 1.
constexpr std::string_view kExactLine = "printf 'a\\r\\n\\377b'; printf err >&2; exit 3";
const std::string kExactStdout = "a\r\n\377b";  // NOLINT(cert-err58-cpp): no allocation, short
constexpr int kExactExit = 3;

struct Finding {
  bool ok = false;
  std::string text;
};

// Runs checks in order, prints each at once and keeps the worst.
class Examination {
 public:
  explicit Examination(Context& context) : context_(context) {}

  // False when the check failed.
  bool Check(std::string_view name, const std::function<Finding()>& check) {
    const auto start = std::chrono::steady_clock::now();
    const Finding finding = check();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (context_.json) {
      json_.push_back({{"check", name},
                       {"ok", finding.ok},
                       {"detail", TextOrEscaped(finding.text)},
                       {"seconds", seconds}});
    } else {
      Tell(fmt::format("{}  {:<12} {} ({})\n", finding.ok ? "ok  " : "FAIL", name,
                       Printable(finding.text), DurationText(seconds)));
    }
    failed_ = failed_ || !finding.ok;
    return finding.ok;
  }

  Finding Failed(const grpc::Status& status) const {
    const Failure failure = FailureOf(status, context_.bridge.where());
    return {false, fmt::format("{}: {}. {}", failure.reason, failure.message, failure.advice)};
  }

  void Tell(const std::string& text) {
    if (!context_.json) context_.streams.Out(text).IgnoreError();
  }

  int Conclude(Json extra) {
    extra["checks"] = std::move(json_);
    extra["ok"] = !failed_;
    const int printed = Print(context_, extra, failed_ ? "" : "all is well\n");
    return printed != kExitOk ? printed : failed_ ? kExitFailed : kExitOk;
  }

 private:
  Context& context_;
  bool failed_ = false;
  Json json_ = Json::array();
};

Finding CheckSettings(const Settings& settings) {
  return {true, fmt::format("{}, {}, {}", settings.address, settings.tls ? "TLS" : "no TLS",
                            settings.token.empty() ? "no token" : "with a token")};
}

Finding CheckServer(Context& context, const Examination& exam, Json& extra) {
  sandbox::bridge::v1::ServerInfo info;
  const grpc::Status status =
      Call(context, context.bridge.bridge(), &BridgeService::Stub::GetServerInfo,
           sandbox::bridge::v1::GetServerInfoRequest(), &info, kCheckTimeout);
  if (!status.ok()) return exam.Failed(status);
  extra["server"] = ToJson(info);
  const auto& upstream = info.upstream();
  return {true,
          fmt::format("version {}, upstream {}{}{}", info.version(), upstream.kind(),
                      upstream.version().empty() ? "" : " " + upstream.version(),
                      upstream.isolation().empty() ? "" : ", isolation " + upstream.isolation())};
}

Finding CheckUpstream(Context& context, const Examination& exam) {
  sandbox::bridge::v1::ListSandboxesRequest request;
  request.set_page_size(1);
  sandbox::bridge::v1::ListSandboxesResponse response;
  const grpc::Status status =
      Call(context, context.bridge.sandboxes(), &SandboxService::Stub::ListSandboxes, request,
           &response, kCheckTimeout);
  if (!status.ok()) return exam.Failed(status);
  return {true, response.sandboxes().empty() ? "answers; no sandboxes" : "answers"};
}

void ShowCapabilities(Context& context, Examination& exam, const std::string& sandbox_id,
                      Json& extra) {
  sandbox::bridge::v1::GetCapabilitiesRequest request;
  request.set_sandbox_id(sandbox_id);
  sandbox::bridge::v1::GetCapabilitiesResponse response;
  const bool ok = exam.Check("capabilities", [&]() -> Finding {
    const grpc::Status status =
        Call(context, context.bridge.bridge(), &BridgeService::Stub::GetCapabilities, request,
             &response, kCheckTimeout);
    if (!status.ok()) return exam.Failed(status);
    return {true, response.daemon().empty() ? "of the bridge" : "of " + response.daemon()};
  });
  if (!ok) return;
  extra["capabilities"] = ToJson(response);
  std::vector<std::vector<std::string>> rows;
  for (const Capability& capability : response.capabilities()) {
    const char* level = capability.level() == Capability::LEVEL_FULL       ? "full"
                        : capability.level() == Capability::LEVEL_DEGRADED ? "degraded"
                        : capability.level() == Capability::LEVEL_NONE     ? "none"
                                                                           : "unknown";
    rows.push_back(
        {"       " + Printable(capability.feature()), level, Printable(capability.note())});
  }
  exam.Tell(Table(rows));
}

Finding CheckExactBytes(Context& context, const Examination& exam, const std::string& sandbox_id) {
  sandbox::bridge::v1::RunRequest request;
  request.set_sandbox_id(sandbox_id);
  request.mutable_spec()->set_shell(std::string(kExactLine));
  sandbox::bridge::v1::RunResponse response;
  const grpc::Status status =
      Call(context, context.bridge.exec(), &ExecService::Stub::Run, request, &response);
  if (!status.ok()) return exam.Failed(status);
  if (!response.outcome().has_exit_code() || response.outcome().exit_code() != kExactExit) {
    return {false, fmt::format("a command that exits with {} {}", kExactExit,
                               OutcomeText(response.outcome()))};
  }
  if (response.stdout() != kExactStdout || response.stderr() != "err") {
    return {false, fmt::format("output was altered: stdout \"{}\", stderr \"{}\"",
                               Printable(response.stdout()), Printable(response.stderr()))};
  }
  return {true, "exact bytes, streams apart, true exit code"};
}

// Makes a sandbox, runs a command and deletes the sandbox; each is a check.
void CheckLife(Context& context, Examination& exam,
               const sandbox::bridge::v1::CreateSandboxRequest& request, Json& extra) {
  sandbox::bridge::v1::CreateSandboxResponse created;
  const bool made = exam.Check("create", [&]() -> Finding {
    const grpc::Status status = CreateSandbox(context, request, &created);
    if (!status.ok()) return exam.Failed(status);
    return {true, created.sandbox().sandbox_id()};
  });
  if (!made) return;
  const std::string& sandbox_id = created.sandbox().sandbox_id();
  ShowCapabilities(context, exam, sandbox_id, extra);
  exam.Check("exec", [&] { return CheckExactBytes(context, exam, sandbox_id); });
  exam.Check("delete", [&]() -> Finding {
    sandbox::bridge::v1::DeleteSandboxResponse deleted;
    const grpc::Status status = DeleteSandbox(context, sandbox_id, {}, &deleted);
    if (!status.ok()) return exam.Failed(status);
    return {IsGone(deleted), IsGone(deleted) ? "gone, confirmed" : "not confirmed"};
  });
}

int RunDoctor(Context& context, const Arguments& arguments) {
  const auto create = ReadSandboxOptions(arguments, /*with_env=*/false, context.environment);
  if (!create.ok()) return FailUsage(context, "doctor", create.status());
  Examination exam(context);
  Json extra = Json::object();
  exam.Check("settings", [&] { return CheckSettings(context.bridge.settings()); });
  const bool served = exam.Check("bridge", [&] { return CheckServer(context, exam, extra); });
  if (served && exam.Check("upstream", [&] { return CheckUpstream(context, exam); })) {
    if (arguments.Has("--sandbox")) {
      ShowCapabilities(context, exam, arguments.Value("--sandbox"), extra);
    } else if (arguments.Has("--quick")) {
      ShowCapabilities(context, exam, "", extra);
    } else {
      CheckLife(context, exam, *create, extra);
    }
  }
  return exam.Conclude(std::move(extra));
}

}  // namespace

std::vector<Command> DoctorCommands() {
  using K = Option::Kind;
  return {
      {"doctor", "[OPTIONS]", "Check the way from here to a working command",
       "Looks at the settings, the bridge and its upstream, then makes a sandbox, runs a command\n"
       "whose output is easily damaged, and deletes the sandbox. Exit code 0 when all is well.\n",
       CommandLine{.options = {{"--quick", 'q', K::kFlag, "", "Make no sandbox."},
                               {"--sandbox", 0, K::kValue, "ID",
                                "Make none, and show what this one can do."},
                               {"--image", 0, K::kValue, "REF", "Image of the test sandbox."}}},
       RunDoctor},
  };
}

}  // namespace bridge::cli
