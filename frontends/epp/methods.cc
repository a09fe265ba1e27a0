// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/methods.h"

#include "frontends/epp/exec_methods.h"
#include "frontends/epp/file_methods.h"
#include "frontends/epp/file_transfer.h"
#include "frontends/epp/process_methods.h"
#include "frontends/epp/sandbox_methods.h"
#include "frontends/epp/terminal.h"

namespace bridge::epp {
namespace {

template <Handler handler>
Task<void> Answering(Call& call) {
  const absl::StatusOr<Json> result = co_await handler(call);
  if (result.ok()) {
    call.Result(*result);
  } else {
    call.Error(result.status());
  }
}

constexpr MethodEntry kMethods[] = {
    {"sandbox.create", AtEnd::kCancel, Answering<CreateSandbox>},
    {"sandbox.connect", AtEnd::kFinish, Answering<ConnectSandbox>},
    {"sandbox.get", AtEnd::kCancel, Answering<GetSandbox>},
    {"sandbox.list", AtEnd::kCancel, Answering<ListSandboxes>},
    {"sandbox.kill", AtEnd::kFinish, Answering<KillSandbox>},
    {"sandbox.set_timeout", AtEnd::kFinish, Answering<SetSandboxTimeout>},
    {"sandbox.pause", AtEnd::kFinish, Answering<PauseSandbox>},
    {"sandbox.resume", AtEnd::kFinish, Answering<ResumeSandbox>},
    {"exec.start", AtEnd::kCancel, StartExec},
    {"exec.run", AtEnd::kCancel, Answering<RunExec>},
    {"process.list", AtEnd::kCancel, Answering<ListProcesses>},
    {"process.signal", AtEnd::kFinish, Answering<SignalProcess>},
    {"process.kill", AtEnd::kFinish, Answering<KillProcess>},
    {"process.stdin", AtEnd::kCancel, Answering<WriteProcessStdin>},
    {"files.read", AtEnd::kCancel, ReadFile},
    {"files.write", AtEnd::kCancel, Answering<WriteFile>},
    {"files.list", AtEnd::kCancel, ListFiles},
    {"files.stat", AtEnd::kCancel, Answering<StatFile>},
    {"files.mkdir", AtEnd::kFinish, Answering<MakeDirectory>},
    {"files.remove", AtEnd::kFinish, Answering<RemoveFile>},
    {"files.move", AtEnd::kFinish, Answering<MoveFile>},
    {"files.search", AtEnd::kCancel, SearchFiles},
    {"files.chmod", AtEnd::kFinish, Answering<ChangeFileMode>},
    {"ports.url", AtEnd::kCancel, Answering<PortUrl>},
    {"pty.open", AtEnd::kCancel, OpenTerminal},
    {"pty.write", AtEnd::kCancel, Answering<WriteTerminal>},
    {"pty.resize", AtEnd::kCancel, Answering<ResizeTerminal>},
    {"pty.close", AtEnd::kFinish, Answering<CloseTerminal>},
};

}  // namespace

absl::Span<const MethodEntry> AllMethods() { return kMethods; }

const MethodEntry* FindMethod(std::string_view name) {
  for (const MethodEntry& method : kMethods) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

}  // namespace bridge::epp
