// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/faults/fault_injector.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "bridge/local/faults/fault_hook.h"
#include "bridge/local/http/router.h"

namespace bridge::local::faults {
namespace {

bool Fits(const Rule& rule, Half half, const http::Request& request) {
  if (rule.half() != ANY && rule.half() != half) return false;
  if (!rule.method().empty() && rule.method() != request.method) return false;
  if (!rule.route().empty() && !http::MatchPattern(rule.route(), request.path, nullptr)) {
    return false;
  }
  return request.raw_query.find(rule.query_contains()) != std::string::npos;
}

// Several rules of one exchange, one after the other.
class HookChain final : public http::Hook {
 public:
  explicit HookChain(const std::vector<Action>& actions) {
    for (const Action& action : actions) hooks_.push_back(std::make_unique<FaultHook>(action));
  }

  bool BeforeHandler(http::Exchange& exchange) override {
    return std::any_of(hooks_.begin(), hooks_.end(),
                       [&](const auto& hook) { return hook->BeforeHandler(exchange); });
  }
  void BeforeHead(http::Exchange& exchange, http::Response& head) override {
    for (const auto& hook : hooks_) hook->BeforeHead(exchange, head);
  }
  After BeforeBody(http::Exchange& exchange, std::string& bytes) override {
    After after = After::kGoOn;
    for (const auto& hook : hooks_) {
      const After wanted = hook->BeforeBody(exchange, bytes);
      if (wanted != After::kGoOn) after = wanted;
    }
    return after;
  }
  void BeforeEnd(http::Exchange& exchange, std::string& bytes) override {
    for (const auto& hook : hooks_) hook->BeforeEnd(exchange, bytes);
  }
  void AfterHandler(http::Exchange& exchange) override {
    for (const auto& hook : hooks_) hook->AfterHandler(exchange);
  }

 private:
  std::vector<std::unique_ptr<FaultHook>> hooks_;
};

class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text.empty()) return;
    text = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " +
           message;
  }
  std::string text;
};

}  // namespace

void FaultInjector::SetPlan(FaultPlan plan) {
  const std::lock_guard lock(mu_);
  rules_.clear();
  for (Rule& rule : *plan.mutable_rule()) rules_.push_back({std::move(rule)});
}

absl::Status FaultInjector::SetPlanText(std::string_view text) {
  FaultPlan plan;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(std::string(text), &plan)) {
    return absl::InvalidArgumentError("fault plan: " + error.text);
  }
  SetPlan(std::move(plan));
  return absl::OkStatus();
}

int FaultInjector::fired(size_t rule) const {
  const std::lock_guard lock(mu_);
  return rule < rules_.size() ? rules_[rule].fired : 0;
}

std::vector<Action> FaultInjector::ActionsFor(Half half, const http::Request& request) {
  std::vector<Action> actions;
  const std::lock_guard lock(mu_);
  for (Counted& counted : rules_) {
    const Rule& rule = counted.rule;
    if (!Fits(rule, half, request)) continue;
    const int number = ++counted.seen;
    const int first = std::max(rule.first(), 1);
    if (number < first || (rule.times() > 0 && number >= first + rule.times())) continue;
    ++counted.fired;
    actions.push_back(rule.action());
  }
  return actions;
}

http::HookFactory FaultInjector::Hooks(Half half) {
  return [this, half](const http::Request& request) -> std::unique_ptr<http::Hook> {
    const std::vector<Action> actions = ActionsFor(half, request);
    if (actions.empty()) return nullptr;
    return std::make_unique<HookChain>(actions);
  };
}

}  // namespace bridge::local::faults
