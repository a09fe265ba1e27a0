// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/process_client.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/random.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/exec_script.h"
#include "bridge/opensandbox/process_maker.h"
#include "bridge/opensandbox/process_script.h"
#include "bridge/opensandbox/process_state.h"
#include "bridge/opensandbox/process_table.h"
#include "bridge/opensandbox/remote_command.h"

namespace bridge {
namespace {

constexpr int kGetTries = 3;
constexpr size_t kMaxPasswd = 1 << 20;

absl::Status Unsupported(std::string_view why) {
  return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE, why,
                   {.metadata = {{"feature", "process.start"}}});
}

// Where the bridge keeps what it knows of a process. Errors: the sandbox was too busy to tell where
// its folders are.
absl::StatusOr<std::string> FolderOf(const SandboxHandle& sandbox, const ProcessKey& key) {
  RETURN_IF_ERROR(sandbox.capabilities->unprobed);
  return ProcessFolder(sandbox.capabilities->scratch, key.nonce);
}

}  // namespace

Task<absl::StatusOr<SandboxHandle>> ProcessClient::Find(CallContext context, SandboxTarget target) {
  absl::StatusOr<SandboxHandle> sandbox =
      co_await FindSandbox(client_, background_, std::move(context), std::move(target));
  if (!sandbox.ok()) co_return sandbox.status();
  // Our own daemon does not need to be asked what its shell is; its terminals want bash all the
  // same.
  co_return sandbox;
}

Task<absl::StatusOr<ProcessClient::Started>> ProcessClient::Start(CallContext context,
                                                                  SandboxTarget target,
                                                                  ProcessSpec spec,
                                                                  bool on_attach) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  CO_RETURN_IF_ERROR(sandbox.capabilities->unprobed);
  if (!sandbox.capabilities->bash) co_return Unsupported("processes need bash in the image");
  if (sandbox.capabilities->scratch.empty()) {
    co_return Unsupported("processes need a writable directory in the sandbox");
  }
  StockUser user;
  if (spec.user.set()) {
    CO_ASSIGN_OR_RETURN(
        std::string passwd,
        co_await client_.ReadSmallFile(sandbox.context, sandbox.daemon, "/etc/passwd", kMaxPasswd));
    CO_ASSIGN_OR_RETURN(user, ResolveUser(spec.user, passwd));
  }
  ProcessKey key{.nonce = RandomHex(16), .terminal = spec.terminal.has_value()};
  const std::string folder = ProcessFolder(sandbox.capabilities->scratch, key.nonce);
  const std::string wrapper = ProcessWrapper(spec, user, folder, key.nonce);
  if (wrapper.size() > kMaxScriptBytes) {
    co_return InvalidField("spec", "arguments and environment exceed what Linux takes (128 KiB)");
  }
  Started started{.incarnation = sandbox.daemon->incarnation};
  ProcessPlan plan{std::move(key), folder, wrapper, on_attach};
  CO_ASSIGN_OR_RETURN(MadeProcess made, co_await MakeProcess(std::move(sandbox), std::move(plan)));
  started.process_id = std::move(made.process_id);
  started.pid = made.pid;
  co_return started;
}

Task<absl::StatusOr<std::unique_ptr<ProcessAttachment>>> ProcessClient::Attach(
    CallContext context, SandboxTarget target, std::string process_id, AttachOptions options) {
  CO_ASSIGN_OR_RETURN(ProcessKey key, ParseProcessId(process_id));
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  CO_ASSIGN_OR_RETURN(const std::string folder, FolderOf(sandbox, key));
  auto attachment = std::make_unique<ProcessAttachment>(std::move(sandbox), std::move(key), folder);
  CO_RETURN_IF_ERROR(co_await attachment->Open(options));
  co_return attachment;
}

Task<absl::StatusOr<ProcessInfo>> ProcessClient::Get(CallContext context, SandboxTarget target,
                                                     std::string process_id) {
  CO_ASSIGN_OR_RETURN(ProcessKey key, ParseProcessId(process_id));
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  CO_ASSIGN_OR_RETURN(const std::string folder, FolderOf(sandbox, key));
  // How many markers are among the daemon's bytes is known if none was printed while we asked. In
  // this order: a wrapper that does not run when it had begun before has ended.
  ProcessRecord record;
  PtyState state;
  for (int tries = 0; tries < kGetTries; ++tries) {
    CO_ASSIGN_OR_RETURN(record, co_await FetchProcessRecord(sandbox, folder));
    CO_ASSIGN_OR_RETURN(state, co_await FetchPtyState(sandbox, key.session));
    CO_ASSIGN_OR_RETURN(const ProcessMarks after, co_await FetchProcessMarks(sandbox, folder));
    if (record.marks.count == after.count) break;
  }
  ProcessNumbering numbering(key.terminal);
  numbering.Begin(record.marks.count);
  ProcessInfo info{.process_id = std::move(process_id),
                   .terminal = key.terminal,
                   .output_offset = numbering.ToApi(state.output_offset)};
  DescribeProcess(record, state, &info);
  co_return info;
}

Task<absl::StatusOr<std::vector<ProcessInfo>>> ProcessClient::List(CallContext context,
                                                                   SandboxTarget target, bool all) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  CO_RETURN_IF_ERROR(sandbox.capabilities->unprobed);
  std::vector<std::string> lines;
  // Without a folder nothing can have been started.
  if (!sandbox.capabilities->scratch.empty()) {
    CO_ASSIGN_OR_RETURN(int code,
                        co_await RunScript(client_, sandbox.context, sandbox.daemon,
                                           ListOwnScript(sandbox.capabilities->scratch), &lines));
    (void)code;
  }
  std::vector<ProcessInfo> own;
  for (const std::string& line : lines) {
    const auto record = ParseProcessRecord(line);
    const auto key = ParseProcessId(record ? record->process_id : "");
    if (!key.ok()) continue;
    ProcessInfo info{.process_id = record->process_id, .terminal = key->terminal};
    PtyState state;
    if (record->pid == 0) {
      // A folder outlives a daemon and all that it knew: what is in it is no process any more.
      const auto known = co_await FetchPtyState(sandbox, key->session);
      if (ReasonOf(known.status()) == ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND) continue;
      if (!known.ok()) co_return known.status();
      state = *known;
    }
    DescribeProcess(*record, state, &info);
    own.push_back(std::move(info));
  }
  if (!all) co_return own;
  CO_ASSIGN_OR_RETURN(std::vector<ProcessInfo> everything,
                      co_await ListProcessTable(std::move(sandbox), execs_));
  for (ProcessInfo& ours : own) {
    bool found = false;
    for (ProcessInfo& any : everything) {
      if (ours.pid == 0 || any.pid != ours.pid) continue;
      any.process_id = ours.process_id;
      any.terminal = ours.terminal;
      found = true;
    }
    if (!found) everything.push_back(std::move(ours));
  }
  co_return everything;
}

Task<absl::Status> ProcessClient::Signal(CallContext context, SandboxTarget target,
                                         std::string process_id, ProcessSignal signal) {
  CO_ASSIGN_OR_RETURN(ProcessKey key, ParseProcessId(process_id));
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  CO_ASSIGN_OR_RETURN(const std::string folder, FolderOf(sandbox, key));
  CO_ASSIGN_OR_RETURN(
      int code,
      co_await RunScript(client_, sandbox.context, sandbox.daemon,
                         SignalProcessScript(folder, signal.signal, signal.group), nullptr));
  co_return SignalScriptError(code);
}

Task<absl::Status> ProcessClient::SignalPid(CallContext context, SandboxTarget target, int64_t pid,
                                            ProcessSignal signal) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  co_return co_await bridge::SignalPid(std::move(sandbox), pid, signal);
}

Task<absl::StatusOr<bool>> ProcessClient::Delete(CallContext context, SandboxTarget target,
                                                 std::string process_id) {
  CO_ASSIGN_OR_RETURN(ProcessKey key, ParseProcessId(process_id));
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  CO_ASSIGN_OR_RETURN(std::string folder, FolderOf(sandbox, key));
  co_return co_await ForgetProcess(std::move(sandbox), std::move(key), std::move(folder));
}

}  // namespace bridge
