// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/execs.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "bridge/local/execd/extra/exec_streams.h"
#include "bridge/local/execd/extra/request.h"

namespace bridge::local::execd::extra {
namespace {

using http::Exchange;

constexpr size_t kMaxRunning = 512;
constexpr size_t kMaxEnded = 1024;
constexpr absl::Duration kEndedLife = absl::Hours(24);
constexpr size_t kMaxBodyBytes = 16 << 20;
constexpr absl::Duration kKillPatience = absl::Seconds(5);

void ReplyObject(Exchange& exchange, int status, std::string json) {
  (void)exchange.Respond({status, {{"Content-Type", "application/json"}}, std::move(json)});
}

Failure NoSuchExec() { return {404, "NOT_FOUND", "there is no exec of this id"}; }

Failure Cancelled() {
  return {409, "EXEC_CANCELLED", "it was ended before it was started", 0, "exec_id"};
}

// The query of an attachment.
std::optional<Failure> ReadPlace(const http::Request& request, ReadPlan* plan) {
  StrictQuery query(request);
  std::optional<int64_t> out, err, heartbeat;
  std::optional<std::string> on_disconnect;
  query.Integer("stdout", 0, INT64_MAX, &out);
  query.Integer("stderr", 0, INT64_MAX, &err);
  query.Integer("heartbeat_ms", 100, 3'600'000, &heartbeat);
  query.String("on_disconnect", &on_disconnect);
  if (on_disconnect && *on_disconnect != "kill" && *on_disconnect != "detach") {
    query.Fail("on_disconnect", "must be \"kill\" or \"detach\"");
  }
  plan->out = out.value_or(0);
  plan->err = err.value_or(0);
  plan->kill_on_disconnect = on_disconnect == "kill";
  if (heartbeat) plan->heartbeat = absl::Milliseconds(*heartbeat);
  return query.Finish();
}

}  // namespace

void Execs::AddRoutes(http::Router& router) {
  router.Add("POST", "/v1/exec", [this](Exchange& x) { Start(x); });
  router.Add("GET", "/v1/exec", [this](Exchange& x) { List(x); });
  router.Add("GET", "/v1/exec/ws", [this](Exchange& x) { StartSocket(x); });
  router.Add("GET", "/v1/exec/{id}", [this](Exchange& x) { Info(x); });
  router.Add("DELETE", "/v1/exec/{id}", [this](Exchange& x) { Remove(x); });
  router.Add("GET", "/v1/exec/{id}/output", [this](Exchange& x) { Output(x); });
  router.Add("GET", "/v1/exec/{id}/ws", [this](Exchange& x) { AttachSocket(x); });
  router.Add("PUT", "/v1/exec/{id}/stdin", [this](Exchange& x) { Input(x); });
  router.Add("POST", "/v1/exec/{id}/signal", [this](Exchange& x) { Signal(x); });
}

std::shared_ptr<Exec> Execs::FindOrNull(const std::string& id) {
  const auto has_id = [&id](const auto& exec) { return exec->id() == id; };
  if (const auto it = std::ranges::find_if(running_, has_id); it != running_.end()) return *it;
  const auto it = std::ranges::find_if(ended_, has_id);
  return it == ended_.end() ? nullptr : *it;
}

// From here on a DELETE of this id finds it.
std::optional<Failure> Execs::Admit(const std::string& id, StartingExecs::Place* place) {
  const std::lock_guard lock(mu_);
  ForgetOld();
  if (!id.empty()) {
    if (cancelled_.Contains(id, absl::Now())) return Cancelled();
    if (starting_.FindOrNull(id) != nullptr || FindOrNull(id) != nullptr) {
      return Failure{409, "EXEC_EXISTS", "there is an exec of this id already", 0, "exec_id"};
    }
  }
  if (running_.size() + starting_.wanted() >= kMaxRunning) {
    Failure many{429, "TOO_MANY", "too many execs are running"};
    return many.With("limit", std::to_string(kMaxRunning));
  }
  *place = starting_.Add(id);
  return std::nullopt;
}

std::variant<std::shared_ptr<Exec>, Failure> Execs::Make(const ExecSpec& spec) {
  StartingExecs::Place place;
  if (auto failure = Admit(spec.id, &place)) return *std::move(failure);
  auto started = Exec::Start(processes_, timer_, spec, place->cancelled);
  const auto* exec = std::get_if<std::shared_ptr<Exec>>(&started);
  std::unique_lock lock(mu_);
  const bool cancelled = place->cancelled;
  if (cancelled && exec != nullptr) {
    // The DELETE waits for this one to be gone.
    lock.unlock();
    (*exec)->Kill();
    (*exec)->AwaitEnd(kKillPatience);
    lock.lock();
  }
  starting_.Remove(place);
  settled_.notify_all();
  if (cancelled && (exec == nullptr || !(*exec)->running())) return Cancelled();
  if (exec != nullptr) running_.push_back(*exec);
  return started;
}

void Execs::ForgetOld() {
  for (std::shared_ptr<Exec>& exec : running_) {
    if (!exec->running()) ended_.push_back(std::move(exec));
  }
  std::erase(running_, nullptr);
  const absl::Time now = absl::Now();
  while (!ended_.empty()) {
    const auto finished = ended_.front()->finished_at();
    const bool old = finished && (ended_.size() > kMaxEnded || now - *finished > kEndedLife);
    if (!old) return;
    ended_.pop_front();
  }
}

std::shared_ptr<Exec> Execs::Find(Exchange& exchange) {
  const std::string& id = exchange.request().param("id");
  {
    const std::lock_guard lock(mu_);
    if (auto exec = FindOrNull(id)) return exec;
  }
  Reply(exchange, NoSuchExec());
  return nullptr;
}

void Execs::Start(Exchange& exchange) {
  if (const auto failure = StrictQuery(exchange.request()).Finish()) {
    return Reply(exchange, *failure);
  }
  const auto body = exchange.ReadAll(kMaxBodyBytes);
  if (!body.ok()) return Reply(exchange, Invalid("", "the body is too long or broke off"));
  ExecSpec spec;
  if (const auto failure = ParseExecSpec(*body, &spec)) return Reply(exchange, *failure);
  auto made = Make(spec);
  if (const auto* failure = std::get_if<Failure>(&made)) return Reply(exchange, *failure);
  const auto exec = std::get<std::shared_ptr<Exec>>(made);
  if (!spec.stream) {
    exec->Go();
    return ReplyObject(exchange, 201, exec->StartedJson());
  }
  auto reader = std::get<std::unique_ptr<Exec::Reader>>(exec->Attach(0, 0));
  exec->Go();
  StreamOverHttp(exchange, *exec, *reader, {0, 0, spec.kill_on_disconnect, spec.heartbeat});
}

void Execs::StartSocket(Exchange& exchange) {
  if (const auto failure = StrictQuery(exchange.request()).Finish()) {
    return Reply(exchange, *failure);
  }
  if (!exchange.IsWebSocket()) return Reply(exchange, Invalid("", "this wants a WebSocket"));
  auto socket = AcceptSocket(exchange);
  if (!socket) return;
  const auto first = socket->Read(absl::Seconds(60));
  if (!first.ok()) return;
  ExecSpec spec;
  std::optional<Failure> failure;
  if (first->kind != http::WebSocket::Kind::kText) {
    failure = Invalid("", "the first message must be the text of the request");
  } else {
    failure = ParseExecSpec(first->data, &spec);
  }
  if (!failure && !spec.stream) failure = Invalid("stream", "stream has no meaning here");
  if (failure) return CloseWith(*socket, *failure);
  auto writer = ReadyThread::Make();
  if (!writer) return CloseWith(*socket, NoRoom());
  auto made = Make(spec);
  if (const auto* refused = std::get_if<Failure>(&made)) return CloseWith(*socket, *refused);
  const auto exec = std::get<std::shared_ptr<Exec>>(made);
  auto reader = std::get<std::unique_ptr<Exec::Reader>>(exec->Attach(0, 0));
  exec->Go();
  StreamOverSocket(*socket, *exec, *reader, {0, 0, spec.kill_on_disconnect, spec.heartbeat},
                   *std::move(writer));
}

void Execs::List(Exchange& exchange) {
  if (const auto failure = StrictQuery(exchange.request()).Finish()) {
    return Reply(exchange, *failure);
  }
  std::vector<std::shared_ptr<Exec>> execs;
  {
    const std::lock_guard lock(mu_);
    ForgetOld();
    execs.assign(ended_.begin(), ended_.end());
    execs.insert(execs.end(), running_.begin(), running_.end());
  }
  std::ranges::sort(execs, {}, &Exec::started_at);
  std::string json = "{\"execs\":[";
  for (const auto& exec : execs) {
    if (json.back() != '[') json += ',';
    json += exec->InfoJson();
  }
  ReplyObject(exchange, 200, json + "]}");
}

void Execs::Info(Exchange& exchange) {
  if (const auto exec = Find(exchange)) ReplyObject(exchange, 200, exec->InfoJson());
}

void Execs::Output(Exchange& exchange) {
  const auto exec = Find(exchange);
  if (!exec) return;
  ReadPlan plan;
  if (const auto failure = ReadPlace(exchange.request(), &plan)) return Reply(exchange, *failure);
  auto attached = exec->Attach(plan.out, plan.err);
  if (const auto* failure = std::get_if<Failure>(&attached)) return Reply(exchange, *failure);
  StreamOverHttp(exchange, *exec, *std::get<std::unique_ptr<Exec::Reader>>(attached), plan);
}

void Execs::AttachSocket(Exchange& exchange) {
  const auto exec = Find(exchange);
  if (!exec) return;
  ReadPlan plan;
  if (const auto failure = ReadPlace(exchange.request(), &plan)) return Reply(exchange, *failure);
  if (!exchange.IsWebSocket()) return Reply(exchange, Invalid("", "this wants a WebSocket"));
  auto attached = exec->Attach(plan.out, plan.err);
  if (const auto* failure = std::get_if<Failure>(&attached)) return Reply(exchange, *failure);
  auto writer = ReadyThread::Make();
  if (!writer) return Reply(exchange, NoRoom());
  const auto socket = AcceptSocket(exchange);
  if (!socket) return;
  StreamOverSocket(*socket, *exec, *std::get<std::unique_ptr<Exec::Reader>>(attached), plan,
                   *std::move(writer));
}

void Execs::Input(Exchange& exchange) {
  const auto exec = Find(exchange);
  if (!exec) return;
  StrictQuery query(exchange.request());
  std::optional<int64_t> offset;
  bool eof = false;
  query.Integer("offset", 0, INT64_MAX, &offset);
  query.Flag("eof", &eof);
  if (!offset) query.Fail("offset", "is missing");
  if (const auto failure = query.Finish()) return Reply(exchange, *failure);
  if (const auto failure = FeedInput(exchange, *exec, *offset, eof)) {
    return Reply(exchange, *failure);
  }
  if (!exchange.PeerClosed()) {
    ReplyObject(exchange, 200, "{\"taken\":" + std::to_string(exec->taken()) + "}");
  }
}

void Execs::Signal(Exchange& exchange) {
  const auto exec = Find(exchange);
  if (!exec) return;
  const auto body = exchange.ReadAll(kMaxBodyBytes);
  if (!body.ok()) return;
  int number = 0;
  bool group = true;
  if (const auto failure = ParseExecSignal(*body, &number, &group)) {
    return Reply(exchange, *failure);
  }
  if (const auto failure = exec->Signal(number, group)) return Reply(exchange, *failure);
  ReplyObject(exchange, 200, "{}");
}

void Execs::Remove(Exchange& exchange) {
  bool keep = false;
  StrictQuery query(exchange.request());
  query.Flag("keep", &keep);
  if (const auto failure = query.Finish()) return Reply(exchange, *failure);
  const std::string& id = exchange.request().param("id");
  std::shared_ptr<Exec> exec;
  {
    std::unique_lock lock(mu_);
    if (StartingExec* starting = starting_.FindOrNull(id)) {
      starting->cancelled = true;
      settled_.wait_for(lock, absl::ToChronoMilliseconds(2 * kKillPatience),
                        [&] { return starting_.FindOrNull(id) == nullptr; });
    }
    exec = FindOrNull(id);
    // Its start may still be on its way here.
    if (exec == nullptr && IsExecId(id)) cancelled_.Add(id, absl::Now());
  }
  if (exec == nullptr) return Reply(exchange, NoSuchExec());
  exec->Kill();
  if (!exec->AwaitEnd(kKillPatience)) {
    return Reply(exchange, {409, "STILL_RUNNING", "it was killed but has not ended yet"});
  }
  if (!keep) {
    const std::lock_guard lock(mu_);
    std::erase(running_, exec);
    std::erase(ended_, exec);
  }
  ReplyObject(exchange, 200, exec->InfoJson());
}

}  // namespace bridge::local::execd::extra
