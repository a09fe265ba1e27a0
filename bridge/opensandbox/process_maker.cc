// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_maker.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/process_script.h"
#include "bridge/opensandbox/remote_command.h"
#include "bridge/opensandbox/shared_result.h"

namespace bridge {
namespace {

constexpr absl::Duration kSmallLimit = absl::Seconds(10);
constexpr absl::Duration kBackgroundLimit = absl::Seconds(30);
// So long a step that is under way when the call is cut may take to end by itself.
constexpr absl::Duration kCutPatience = absl::Seconds(5);
constexpr size_t kMaxSmallBody = 64 * 1024;

// What the call and the task that works for it have in common.
struct Making {
  bool wanted = true;  // until the call is cut
  Waiter cut;
  std::shared_ptr<SharedResult<absl::StatusOr<MadeProcess>>> result =
      std::make_shared<SharedResult<absl::StatusOr<MadeProcess>>>();
};

absl::Status Cut() { return MakeError(ErrorReason::ERROR_REASON_CANCELLED, "cancelled"); }

Task<absl::StatusOr<std::string>> MakeSession(SandboxHandle sandbox, std::string wrapper) {
  HttpRequest request =
      sandbox.client.Request(sandbox.context, *sandbox.daemon, "POST", "/pty", kSmallLimit);
  request.headers.Set("Content-Type", "application/json");
  request.body = PtyRequestJson(wrapper);
  request.resend = Resend::kNever;
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon,
                                                    std::move(request), kMaxSmallBody));
  if (response.status != 201 && response.status != 200) {
    co_return DaemonError(response, "make a process");
  }
  co_return ParsePtyId(response.body);
}

// What remains to be done once there is a session.
Task<absl::StatusOr<MadeProcess>> Finish(SandboxHandle sandbox, ProcessPlan plan,
                                         std::shared_ptr<Making> making) {
  if (!making->wanted) co_return Cut();
  MadeProcess made{.process_id = FormatProcessId(plan.key)};
  CO_ASSIGN_OR_RETURN(int code,
                      co_await RunScript(sandbox.client, sandbox.context, sandbox.daemon,
                                         RegisterScript(plan.folder, made.process_id), nullptr));
  if (code != 0) {
    co_return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                        "processes need a writable directory in the sandbox",
                        {.metadata = {{"feature", "process.start"}}});
  }
  if (plan.on_attach) co_return made;
  if (!making->wanted) co_return Cut();
  // The daemon starts what somebody attaches to.
  auto attachment = std::make_unique<ProcessAttachment>(sandbox, plan.key, plan.folder);
  const AttachOptions from_the_start{.offset = 0};
  CO_RETURN_IF_ERROR(co_await attachment->Open(from_the_start));
  attachment.reset();
  std::vector<std::string> lines;
  CO_ASSIGN_OR_RETURN(code, co_await RunScript(sandbox.client, sandbox.context, sandbox.daemon,
                                               AwaitStartScript(plan.folder), &lines));
  if (!lines.empty()) {
    (void)std::from_chars(lines[0].data(), lines[0].data() + lines[0].size(), made.pid);
    made.pid = std::max<int64_t>(0, made.pid);
  }
  co_return made;
}

Task<void> Make(SandboxHandle sandbox, ProcessPlan plan, std::shared_ptr<Making> making) {
  absl::StatusOr<std::string> session = co_await MakeSession(sandbox, plan.wrapper);
  if (!session.ok()) {
    making->result->Set(session.status());
    co_return;
  }
  plan.key.session = *std::move(session);
  absl::StatusOr<MadeProcess> made = Cut();
  auto work = [&]() -> Task<void> { made = co_await Finish(sandbox, plan, making); };
  auto alarm = [&]() -> Task<void> {
    if (making->wanted) (void)co_await making->cut.Wait();
    (void)co_await sandbox.loop().Sleep(kCutPatience);
  };
  co_await RunBoth(work, alarm);
  const bool told = made.ok() && making->wanted;
  making->result->Set(made);
  if (!told) {
    (void)co_await ForgetProcess(sandbox.ForBackground(kBackgroundLimit), plan.key, plan.folder);
  }
}

}  // namespace

Task<absl::StatusOr<MadeProcess>> MakeProcess(SandboxHandle sandbox, ProcessPlan plan) {
  const auto making = std::make_shared<Making>();
  SandboxHandle lasting = sandbox.ForBackground(kBackgroundLimit);
  lasting.context.deadline = std::max(lasting.context.deadline, sandbox.context.deadline);
  sandbox.background.Start("make a process",
                           [lasting, plan = std::move(plan), making]() -> Task<void> {
                             co_await Make(lasting, plan, making);
                           });
  const auto made = co_await SharedResult<absl::StatusOr<MadeProcess>>::Wait(making->result);
  if (made) co_return *made;
  making->wanted = false;
  making->cut.Notify(true);
  co_return Cut();
}

Task<absl::StatusOr<bool>> ForgetProcess(SandboxHandle sandbox, ProcessKey key,
                                         std::string folder) {
  if (key.terminal) {
    // The daemon kills one group, and a hang-up reaches one more: a shell's other jobs would stay.
    (void)co_await RunScript(sandbox.client, sandbox.context, sandbox.daemon,
                             EndSessionScript(folder), nullptr);
  }
  HttpRequest request = sandbox.client.Request(sandbox.context, *sandbox.daemon, "DELETE",
                                               "/pty/" + QueryEscape(key.session), kSmallLimit);
  CO_ASSIGN_OR_RETURN(HttpResponse response,
                      co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon,
                                                    std::move(request), kMaxSmallBody));
  if (response.status != 200 && response.status != 404) {
    co_return DaemonError(response, "end a process");
  }
  HttpRequest remove =
      sandbox.client.Request(sandbox.context, *sandbox.daemon, "DELETE",
                             "/directories?path=" + QueryEscape(folder), kSmallLimit);
  (void)co_await sandbox.client.Fetch(sandbox.context, sandbox.daemon, std::move(remove),
                                      kMaxSmallBody);
  co_return response.status == 200;
}

}  // namespace bridge
