// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/terminal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "fmt/format.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/exec_methods.h"

namespace bridge::epp {
namespace {

constexpr int64_t kMaxSide = 65535;
constexpr int64_t kDefaultRows = 24;
constexpr int64_t kDefaultColumns = 80;
constexpr absl::Duration kDeleteTimeout = absl::Seconds(5);

absl::Status ReadSize(const Params& params, v1::TerminalSize* size) {
  ASSIGN_OR_RETURN(const auto rows, params.Integer("rows", 1, kMaxSide));
  ASSIGN_OR_RETURN(const auto columns, params.Integer("cols", 1, kMaxSide));
  size->set_rows(static_cast<uint32_t>(rows.value_or(kDefaultRows)));
  size->set_columns(static_cast<uint32_t>(columns.value_or(kDefaultColumns)));
  return absl::OkStatus();
}

Task<absl::StatusOr<std::string>> StartShell(Call& call, std::string sandbox_id) {
  v1::StartProcessRequest request;
  request.set_sandbox_id(std::move(sandbox_id));
  if (absl::Status size = ReadSize(call.params(), request.mutable_spec()->mutable_terminal());
      !size.ok()) {
    co_return size;
  }
  const absl::StatusOr<v1::StartProcessResponse> started = co_await CallUnary(
      call.scope(), call.stubs().processes, &v1::ProcessService::Stub::PrepareAsyncStartProcess,
      std::move(request), call.environment().call_timeout);
  if (!started.ok()) co_return started.status();
  co_return started->process_id();
}

// Also when the call was cancelled: with a scope of its own.
Task<absl::Status> EndShell(Call& call, std::string sandbox_id, std::string process_id) {
  CallScope scope(call.environment().loop, call.scope().queue());
  const BridgeLink& link = *call.environment().link;
  scope.SetPeer(link.name(), link.remote(), link.authorization());
  v1::DeleteProcessRequest request;
  request.set_sandbox_id(std::move(sandbox_id));
  request.set_process_id(std::move(process_id));
  const absl::StatusOr<v1::DeleteProcessResponse> deleted = co_await CallUnary(
      scope, call.stubs().processes, &v1::ProcessService::Stub::PrepareAsyncDeleteProcess,
      std::move(request), kDeleteTimeout);
  co_return deleted.status();
}

// Attaches and reads up to `attached`. Not OK: the stream is over and finished.
Task<absl::Status> Attach(Terminal::Stream& stream, Call& call, const std::string& sandbox_id,
                          const std::string& process_id) {
  co_await stream.Start(call.stubs().processes,
                        &v1::ProcessService::Stub::PrepareAsyncAttachProcess);
  v1::AttachProcessRequest request;
  request.mutable_attach()->set_sandbox_id(sandbox_id);
  request.mutable_attach()->set_process_id(process_id);
  request.mutable_attach()->set_offset(0);
  v1::ProcessEvent event;
  bool open = co_await stream.Write(request);
  if (open) open = co_await stream.Read(&event);
  if (open && event.has_attached()) co_return absl::OkStatus();
  if (open) stream.TryCancel();
  absl::Status failure = co_await stream.Finish();
  if (failure.ok()) {
    failure = MakeError(ErrorReason::ERROR_REASON_INTERNAL, "the terminal ended before it began");
  }
  co_return failure;
}

// Output until the end of the stream; how the shell ended, as far as it was told.
Task<std::optional<ExitReport>> Relay(Terminal::Stream& stream, Call& call,
                                      const std::string& process_id) {
  std::optional<ExitReport> report;
  v1::ProcessEvent event;
  bool open = true;
  while (open) {
    open = co_await stream.Read(&event);
    if (!open) break;
    if (event.has_output()) {
      const std::string& data = event.output().data();
      call.environment().output.Write(RenderNotification(
          "pty.output",
          {{"process_id", process_id}, {"data_b64", absl::Base64Escape(absl::string_view(data))}}));
      const bool room = co_await call.OutputRoom();
      if (!room) stream.TryCancel();
    } else if (event.has_exited()) {
      report = ReportOutcome(event.exited().outcome());
    }
  }
  co_return report;
}

// Null also where the sandbox that is named does not have it.
absl::StatusOr<Terminal*> FindTerminal(Call& call, const std::string& process_id) {
  const auto& terminals = call.environment().terminals;
  const auto it = terminals.find(process_id);
  if (it == terminals.end()) return nullptr;
  const std::string& owner = it->second->sandbox_id();
  ASSIGN_OR_RETURN(const std::string sandbox_id, call.params().Text("sandbox_id", owner));
  return sandbox_id == owner ? it->second : nullptr;
}

absl::StatusOr<Terminal*> TerminalOf(Call& call) {
  ASSIGN_OR_RETURN(const std::string process_id, call.params().NonEmptyText("process_id"));
  ASSIGN_OR_RETURN(Terminal* const terminal, FindTerminal(call, process_id));
  if (terminal != nullptr) return terminal;
  return MakeError(ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND,
                   fmt::format("no terminal {:.128} is open", process_id));
}

// Runs the attached terminal to its end.
Task<ExitReport> RunTerminal(Terminal::Stream& stream, Call& call, const std::string& sandbox_id,
                             const std::string& process_id) {
  Terminal terminal(stream, sandbox_id);
  call.environment().terminals[process_id] = &terminal;
  bool writing = true;
  Waiter written;
  Spawn(
      nullptr, [&terminal] { return terminal.Write(); },
      [&writing, &written] {
        writing = false;
        written.Notify(true);
      });
  std::optional<ExitReport> report = co_await Relay(stream, call, process_id);
  call.environment().terminals.erase(process_id);
  terminal.Stop();
  while (writing) (void)co_await written.WaitUncancellable();
  const absl::Status finished = co_await stream.Finish();
  if (!report.has_value()) {
    report = ReportFailure(finished, terminal.closed() || call.scope().cancelled());
  }
  co_return *report;
}

}  // namespace

// --- Terminal

bool Terminal::Queue(std::string_view input) {
  if (queued_bytes_ + input.size() > kMaxQueuedBytes) return false;
  queued_bytes_ += input.size();
  for (; !input.empty(); input.remove_prefix(std::min(input.size(), kChunkBytes))) {
    auto* data = queue_.emplace_back().mutable_stdin();
    data->set_offset(offset_);
    data->set_data(std::string(input.substr(0, kChunkBytes)));
    offset_ += static_cast<int64_t>(data->data().size());
  }
  work_.Notify(true);
  return true;
}

void Terminal::Resize(uint32_t rows, uint32_t columns) {
  auto* size = queue_.emplace_back().mutable_resize();
  size->set_rows(rows);
  size->set_columns(columns);
  work_.Notify(true);
}

void Terminal::Close() {
  closed_ = true;
  stream_.TryCancel();
}

void Terminal::Stop() {
  stopped_ = true;
  work_.Notify(true);
}

Task<void> Terminal::Write() {
  bool open = true;
  while (!stopped_) {
    if (queue_.empty()) {
      (void)co_await work_.Wait();
      continue;
    }
    const v1::AttachProcessRequest message = std::move(queue_.front());
    queue_.pop_front();
    if (open) open = co_await stream_.Write(message);
    queued_bytes_ -= message.stdin().data().size();
  }
}

// --- Methods

Task<void> OpenTerminal(Call& call) {
  const absl::StatusOr<std::string> sandbox_id = call.params().NonEmptyText("sandbox_id");
  if (!sandbox_id.ok()) {
    call.Error(sandbox_id.status());
    co_return;
  }
  const absl::StatusOr<std::string> process_id = co_await StartShell(call, *sandbox_id);
  if (!process_id.ok()) {
    const absl::Status& failure = process_id.status();
    call.Error(IsUnknownSandbox(failure) ? UnknownSandbox(*sandbox_id) : failure);
    co_return;
  }
  Terminal::Stream stream(call.scope(), absl::InfiniteDuration());
  const absl::Status attached = co_await Attach(stream, call, *sandbox_id, *process_id);
  if (!attached.ok()) {
    (void)co_await EndShell(call, *sandbox_id, *process_id);
    call.Error(attached);
    co_return;
  }
  call.Result({{"process_id", *process_id}});
  const ExitReport report = co_await RunTerminal(stream, call, *sandbox_id, *process_id);
  // Whatever ended the conversation with it: nothing stays behind.
  (void)co_await EndShell(call, *sandbox_id, *process_id);
  Json params = {
      {"process_id", *process_id}, {"exit_code", report.code}, {"reason", report.reason}};
  if (!report.signal.empty()) params["signal"] = report.signal;
  call.environment().output.Write(RenderNotification("pty.exit", params));
}

Task<absl::StatusOr<Json>> WriteTerminal(Call& call) {
  const absl::StatusOr<Terminal*> terminal = TerminalOf(call);
  if (!terminal.ok()) co_return terminal.status();
  const absl::StatusOr<std::string> text = call.params().Text("data_b64");
  if (!text.ok()) co_return text.status();
  std::string input;
  if (!absl::Base64Unescape(*text, &input)) co_return InvalidField("data_b64", "is not base64");
  if (!(*terminal)->Queue(input)) {
    co_return TooLarge("input that the terminal has not taken yet", -1, Terminal::kMaxQueuedBytes,
                       "wait until the program reads");
  }
  co_return Json::object();
}

Task<absl::StatusOr<Json>> ResizeTerminal(Call& call) {
  const absl::StatusOr<Terminal*> terminal = TerminalOf(call);
  if (!terminal.ok()) co_return terminal.status();
  v1::TerminalSize size;
  if (absl::Status read = ReadSize(call.params(), &size); !read.ok()) co_return read;
  (*terminal)->Resize(size.rows(), size.columns());
  co_return Json::object();
}

Task<absl::StatusOr<Json>> CloseTerminal(Call& call) {
  const absl::StatusOr<std::string> process_id = call.params().NonEmptyText("process_id");
  if (!process_id.ok()) co_return process_id.status();
  const absl::StatusOr<Terminal*> terminal = FindTerminal(call, *process_id);
  if (!terminal.ok()) co_return terminal.status();
  if (*terminal != nullptr) {
    (*terminal)->Close();
    co_return Json::object();
  }
  // Closed already, or opened by another plugin process.
  const absl::StatusOr<std::string> sandbox_id = call.params().NonEmptyText("sandbox_id");
  if (!sandbox_id.ok()) co_return sandbox_id.status();
  const absl::Status ended = co_await EndShell(call, *sandbox_id, *process_id);
  if (!ended.ok() && !IsUnknownSandbox(ended) &&
      ReasonOf(ended) != ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND) {
    co_return ended;
  }
  co_return Json::object();
}

}  // namespace bridge::epp
