// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/session.h"

#include <cmath>
#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "fmt/format.h"
#include "frontends/epp/errors.h"
#include "frontends/epp/manifest.h"

namespace bridge::epp {
namespace {

constexpr double kMaxHttpTimeoutSeconds = 3600;

Json ParsedConstant(std::string_view text) { return Json::parse(text, nullptr, false); }

// Methods of EPP/1 and of its host that this provider does not offer: a typed refusal, not
// "unknown".
std::string_view FeatureOfMethod(std::string_view method) {
  const std::string_view family = method.substr(0, method.find('.'));
  if (family == "code" || family == "templates" || family == "template") return family;
  if (method == "files.watch" || family == "storage" || family == "network") return method;
  if (method == "files.upload_url" || method == "files.download_url") return "files.transfer";
  if (method == "ports.domain" || method == "sessions.list") return method;
  return {};
}

}  // namespace

Session::Session(EventLoop& loop, Output& output, PendingBytes& pending, SessionOptions options)
    : loop_(loop),
      output_(output),
      pending_(pending),
      options_(std::move(options)),
      environment_{.loop = loop, .output = output, .make_link = options_.make_link},
      shutdown_timer_(
          loop,
          [](void* self) {
            auto* session = static_cast<Session*>(self);
            session->CancelCalls(/*all=*/true);
            session->AnswerShutdown();
          },
          this) {}

Session::~Session() {
  loop_.RunAndWait([this] { shutdown_timer_.Clear(); });
  environment_.stubs.reset();
  environment_.link.reset();
}

void Session::OnMessage(Message message) {
  loop_.Post([this, message = std::make_shared<Message>(std::move(message))] {
    Handle(std::move(*message));
  });
}

void Session::OnEndOfInput() { Terminate(); }

void Session::Terminate() {
  loop_.Post([this] { BeginEnd(); });
}

bool Session::WaitUntilOver() {
  const absl::Time begin = absl::Now();
  bool clean = true;
  {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [this] { return ending_; });
    clean = changed_.wait_for(lock, absl::ToChronoNanoseconds(options_.end_within),
                              [this] { return idle_; });
  }
  if (clean && environment_.link != nullptr) {
    clean = environment_.link->Settle(options_.end_within - (absl::Now() - begin));
  }
  loop_.RunAndWait([this] {
    shutdown_timer_.Clear();
    AnswerShutdown();
  });
  return clean;
}

// --- Messages

void Session::Reply(const Message& message, std::string line) {
  pending_.Give(message.bytes);
  if (!message.id.empty()) output_.Write(std::move(line));
}

void Session::Handle(Message message) {
  if (!message.error.ok()) {
    return Reply(message, message.id.empty() ? "" : RenderError(message.id, message.error));
  }
  if (message.id.empty()) {
    HandleNotification(message);
    return Reply(message, {});
  }
  if (message.method == "initialize") return Initialize(message);
  if (message.method == "shutdown") {
    shutdown_ids_.push_back(message.id);
    pending_.Give(message.bytes);
    if (state_ == State::kEnding && !shutdown_timer_.armed()) AnswerShutdown();
    return BeginEnd();
  }
  const MethodEntry* method = FindMethod(message.method);
  absl::Status refusal;
  if (method == nullptr) {
    const std::string_view feature = FeatureOfMethod(message.method);
    refusal =
        feature.empty()
            ? ProtocolError(kMethodNotFound, fmt::format("unknown method {:.64}", message.method))
            : Unsupported(feature, fmt::format("this provider has no {}", feature));
  } else if (state_ == State::kNew) {
    refusal = ProtocolError(kInvalidRequest, "the first request must be initialize");
  } else if (state_ == State::kEnding) {
    refusal = MakeError(ErrorReason::ERROR_REASON_DRAINING, "the provider is shutting down");
  }
  if (!refusal.ok()) return Reply(message, RenderError(message.id, refusal));
  StartCall(std::move(message), *method);
}

void Session::HandleNotification(const Message& message) {
  if (message.method != "$/cancel") return;
  const auto id = message.params.find("id");
  if (id == message.params.end()) return;
  // A cancelled call may end inside Cancel() and leave the list: collect first.
  std::vector<CallScope*> scopes;
  for (const auto& running : calls_) {
    if (running->id == *id) scopes.push_back(&running->call.scope());
  }
  for (CallScope* scope : scopes) scope->Cancel();
}

void Session::Initialize(const Message& message) {
  absl::StatusOr<Json> result = absl::UnknownError("");
  if (state_ == State::kNew) {
    result = InitializeResult(message.params);
  } else {
    result = ProtocolError(kInvalidRequest, "initialize comes once, at the beginning");
  }
  if (result.ok()) state_ = State::kInitialized;
  Reply(message,
        result.ok() ? RenderResult(message.id, *result) : RenderError(message.id, result.status()));
}

absl::StatusOr<Json> Session::InitializeResult(const Json& raw_params) {
  const Params params(raw_params);
  ASSIGN_OR_RETURN(const std::string protocol, params.Text("protocol", manifest::kProtocol));
  if (protocol != manifest::kProtocol) {
    return ProtocolError(kInvalidRequest,
                         fmt::format("protocol: this provider speaks {}", manifest::kProtocol));
  }
  const Json* config = params.Find("config");
  if (config != nullptr && !config->is_object()) {
    return ProtocolError(kInvalidParams, "config: must be an object");
  }
  ASSIGN_OR_RETURN(environment_.config, ParseConfig(config == nullptr ? Json::object() : *config));
  const Json* core = params.Find("core");
  if (core != nullptr && core->is_object()) {
    const auto seconds = Params(*core).Number("http_timeout");
    if (seconds.ok() && seconds->has_value() && std::isfinite(**seconds) && **seconds > 0) {
      environment_.call_timeout = absl::Seconds(std::min(**seconds, kMaxHttpTimeoutSeconds));
    }
  }
  return Json{{"protocol", manifest::kProtocol},
              {"operation_contract_version", manifest::kOperationContractVersion},
              {"operations", ParsedConstant(manifest::kOperations)},
              {"workflow_inputs", ParsedConstant(manifest::kWorkflowInputs)},
              {"startup_modes", ParsedConstant(manifest::kStartupModes)},
              {"features", ParsedConstant(manifest::kFeatures)},
              {"plugin", {{"name", manifest::kProviderId}, {"version", manifest::kVersion}}}};
}

// --- Calls

absl::Status Session::Connect(Call& call) {
  if (environment_.link == nullptr) {
    ASSIGN_OR_RETURN(environment_.link, environment_.make_link(environment_.config));
    environment_.stubs = std::make_unique<Stubs>(environment_.link->channel());
  }
  call.scope().SetPeer(environment_.link->name(), environment_.link->remote(),
                       environment_.link->authorization());
  return absl::OkStatus();
}

void Session::StartCall(Message message, const MethodEntry& method) {
  if (completions_ == nullptr) completions_ = std::make_unique<CompletionThread>();
  Json id = Json::parse(message.id, nullptr, false);
  calls_.push_back(
      std::make_unique<Running>(environment_, completions_->queue(), std::move(message), method));
  const auto position = std::prev(calls_.end());
  Running& running = **position;
  running.id = std::move(id);
  running.call.on_answer = [this](size_t bytes) { pending_.Give(bytes); };
  Spawn(
      &running.call.scope().stop(), [this, &running] { return Run(running); },
      [this, position] { OnCallOver(position); });
}

Task<void> Session::Run(Running& running) {
  if (const absl::Status connected = Connect(running.call); !connected.ok()) {
    running.call.Error(connected);
    co_return;
  }
  co_await running.method.run(running.call);
}

// The task's frame still exists: the call's memory is freed in a later turn.
void Session::OnCallOver(std::list<std::unique_ptr<Running>>::iterator position) {
  Call& call = (*position)->call;
  if (!call.answered()) {
    call.Error(MakeError(ErrorReason::ERROR_REASON_INTERNAL, "the call ended without an answer"));
  }
  const std::shared_ptr<Running> over = std::move(*position);
  calls_.erase(position);
  loop_.Post([over] {});
  CheckIdle();
}

// --- The end

void Session::BeginEnd() {
  if (state_ == State::kEnding) return;
  state_ = State::kEnding;
  shutdown_timer_.SetAt(loop_.Now() + options_.answer_shutdown_within);
  CancelCalls(/*all=*/false);
  {
    std::lock_guard lock(mu_);
    ending_ = true;
  }
  changed_.notify_all();
  CheckIdle();
}

void Session::CancelCalls(bool all) {
  std::vector<CallScope*> scopes;
  for (const auto& running : calls_) {
    if (all || running->method.at_end == AtEnd::kCancel) {
      scopes.push_back(&running->call.scope());
    }
  }
  for (CallScope* scope : scopes) scope->Cancel();
}

void Session::AnswerShutdown() {
  for (const std::string& id : std::exchange(shutdown_ids_, {})) {
    output_.Write(RenderResult(id, Json::object()));
  }
}

void Session::CheckIdle() {
  if (state_ != State::kEnding || !calls_.empty()) return;
  {
    std::lock_guard lock(mu_);
    idle_ = true;
  }
  changed_.notify_all();
}

}  // namespace bridge::epp
