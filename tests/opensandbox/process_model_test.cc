// SPDX-License-Identifier: Apache-2.0
//
// A process under random use, checked against a model of a few lines: whatever clients and bridges
// come and go, what is delivered is what the program printed, byte by byte by its numbers, or a gap
// that is declared; it ends once and in the way it ended; what is typed reaches it at most once;
// and nothing is left of it. SANDBOX_MODEL_SEED runs one sequence, SANDBOX_MODEL_RUNS more of them.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "bridge/base/error.h"
#include "bridge/opensandbox/process_client.h"
#include "tests/fakes/execd_process.h"
#include "tests/opensandbox/process_model.h"

namespace bridge {
namespace {

using R = ErrorReason;

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr int kSteps = 40;
constexpr int kCodeAtEof = 5;

struct Case {
  bool terminal = false;
  bool own = false;
  unsigned seed = 0;
};

class ProcessModel {
 public:
  explicit ProcessModel(const Case& with)
      : case_(with),
        random_(with.seed),
        execd_(with.own ? std::vector<std::string>{} : std::vector<std::string>{"--extras=false"}),
        bridge_(std::make_unique<Bridge>(execd_.url())) {}

 private:
  struct Holder {
    std::unique_ptr<ProcessAttachment> attachment;
    int64_t next = 0;
    int64_t typed = 0;
  };

  ProcessClient& processes() { return bridge_->processes; }
  template <class F>
  auto Do(F f) {
    return RunTask(bridge_->bench.loop, std::move(f));
  }
  int Pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  // An attachment belongs to its loop.
  void Drop(std::unique_ptr<Holder>* holder) {
    Do([holder]() -> Task<void> {
      holder->reset();
      co_return;
    });
  }
  void Log(const std::string& what) { log_ += "\n  " + what; }

 public:
  void Run() {
    Start();
    for (int step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) Step();
    const auto existed = Do([&] { return processes().Delete({}, box_, id_); });
    EXPECT_TRUE(existed.ok() && *existed) << existed.status() << log_;
    Drop(&held_);
    EXPECT_TRUE(SurvivorsWith(marker_).empty()) << "a process is left" << log_;
  }

 private:
  void Start() {
    marker_ = "model-" + std::to_string(getpid()) + "-" + std::to_string(case_.seed);
    ProcessSpec spec{.argv = {"python3", "-c", kProgram, marker_}};
    if (case_.terminal) spec.terminal = TerminalSize{24, 80};
    const auto started = Do([&] { return processes().Start({}, box_, spec, Pick(2) == 0); });
    ASSERT_TRUE(started.ok()) << started.status();
    id_ = started->process_id;
    Log("start");
    expected_ = "ready\n";
    Attach(0, false, false);
  }

  void Step() {
    switch (Pick(12)) {
      case 0:
      case 1:
        return Echo();
      case 2:
        return Burst();
      case 3:
        return SignalIt();
      case 4:
        return Resize();
      case 5:
        return Detach();
      case 6:
        return AttachAnywhere();
      case 7:
        return SecondHolder();
      case 8:
        return RestartBridge();
      case 9:
        return InFlight();
      case 10:
        return Pick(3) == 0 ? End() : Echo();
      default:
        return RunAgain();
    }
  }

  // ---- steps

  void Echo() {
    if (!held_ || outcome_) return;
    const std::string text = std::to_string(++lines_);
    Log("echo " + text);
    Type("e " + text + "\n");
    expected_ += "=" + text + "\n";
    CatchUp();
  }
  void Burst() {
    if (!held_ || outcome_) return;
    const size_t size = static_cast<size_t>(Pick(400'000));
    Log("burst " + std::to_string(size));
    Type("b " + std::to_string(size) + "\n");
    expected_ += Pattern(size);
    CatchUp();
  }
  void SignalIt() {
    const bool group = Pick(2) == 0;
    const bool interrupt = Pick(2) == 0;
    Log(std::string("signal ") + (interrupt ? "INT" : "USR1") + (group ? " to the group" : ""));
    const ProcessSignal signal{interrupt ? SIGINT : SIGUSR1, group};
    const absl::Status sent = Do([&] { return processes().Signal({}, box_, id_, signal); });
    if (outcome_) {
      EXPECT_EQ(ReasonOf(sent), R::ERROR_REASON_PROCESS_NOT_FOUND) << sent << log_;
      return;
    }
    EXPECT_TRUE(sent.ok()) << sent << log_;
    expected_ += interrupt ? "I\n" : "U\n";
    CatchUp();
  }
  void Resize() {
    if (!held_ || !case_.terminal || outcome_) return;
    const TerminalSize size{static_cast<uint16_t>(++rows_), 81};
    Log("resize " + std::to_string(rows_));
    const absl::Status status = Do([&] { return held_->attachment->Resize(size); });
    EXPECT_TRUE(status.ok()) << status << log_;
    expected_ += "W" + std::to_string(rows_) + " 81\n";
    CatchUp();
  }
  void Detach() {
    Log("detach");
    Drop(&held_);
  }
  void AttachAnywhere() {
    const int64_t offset = Pick(static_cast<int>(expected_.size()) + 1);
    Attach(offset, /*takeover=*/held_ != nullptr || Pick(2) == 0, false);
  }
  void SecondHolder() {
    if (!held_ || outcome_) return;
    Log("second holder");
    const auto second = TryAttach({.offset = 0});
    EXPECT_EQ(ReasonOf(second.status()), R::ERROR_REASON_ALREADY_ATTACHED)
        << second.status() << log_;
    const auto ahead =
        TryAttach({.offset = static_cast<int64_t>(expected_.size()) + 1, .takeover = true});
    EXPECT_EQ(ReasonOf(ahead.status()), R::ERROR_REASON_INVALID_ARGUMENT) << ahead.status() << log_;
    Echo();  // the first one still holds it
  }
  void RestartBridge() {
    Log("new bridge");
    Drop(&held_);
    bridge_ = std::make_unique<Bridge>(execd_.url());
  }
  // What was sent when the connection was lost arrived once or not at all.
  void InFlight() {
    if (!held_ || outcome_) return;
    const std::string text = std::to_string(++lines_);
    Log("in flight " + text);
    Type("e " + text + "\n");
    Drop(&held_);
    const int64_t known = static_cast<int64_t>(expected_.size());
    auto attached = TryAttach({.offset = known, .takeover = true});
    ASSERT_TRUE(attached.ok()) << attached.status() << log_;
    held_ = std::make_unique<Holder>(Holder{*std::move(attached), known, 0});
    const std::string sync = std::to_string(++lines_);
    Type("e " + sync + "\n");
    const std::string end = "=" + sync + "\n";
    std::string seen;
    while (!seen.ends_with(end) && !::testing::Test::HasFailure()) seen += ReadOutput();
    EXPECT_TRUE(seen == end || seen == "=" + text + "\n" + end) << seen << log_;
    expected_ += seen;
  }
  void End() {
    if (!held_ || outcome_) return;
    switch (Pick(3)) {
      case 0:
        Log("exit");
        Type("x 7\n");
        outcome_ = ExitCode{7};
        break;
      case 1: {
        Log("eof");
        const absl::Status status = Do([&] { return held_->attachment->SendEof(); });
        EXPECT_TRUE(status.ok()) << status << log_;
        expected_ += "EOF\n";
        outcome_ = ExitCode{kCodeAtEof};
        break;
      }
      default: {
        Log("kill");
        const absl::Status status =
            Do([&] { return processes().Signal({}, box_, id_, {SIGKILL, Pick(2) == 0}); });
        EXPECT_TRUE(status.ok()) << status << log_;
        outcome_ = CancelledEnd{true, Signalled{SIGKILL}};
      }
    }
    ReadToEnd();
    Drop(&held_);
  }
  void RunAgain() {
    if (!outcome_) return;
    Attach(static_cast<int64_t>(expected_.size()), Pick(2) == 0, /*restart=*/true);
  }

  // ---- what steps are made of

  absl::StatusOr<std::unique_ptr<ProcessAttachment>> TryAttach(AttachOptions options) {
    return Do([&] { return processes().Attach({}, box_, id_, options); });
  }

  void Attach(int64_t offset, bool takeover, bool restart) {
    Log("attach at " + std::to_string(offset) + " of " + std::to_string(expected_.size()) +
        (takeover ? " taking over" : "") + (restart ? " running again" : ""));
    std::unique_ptr<Holder> old = std::move(held_);
    auto attached =
        TryAttach({.offset = offset, .takeover = takeover, .restart_if_exited = restart});
    if (ReasonOf(attached.status()) == R::ERROR_REASON_REPLAY_GAP) {
      const int64_t first = std::stoll(MetadataOf(attached.status()).at("first_available"));
      Log("gap up to " + std::to_string(first));
      EXPECT_GT(first, offset) << log_;
      // 1 MiB of the daemon's, which may hold marks too.
      EXPECT_LE(first, static_cast<int64_t>(expected_.size()) - (1 << 20) + 4096) << log_;
      offset = first;
      attached = TryAttach({.offset = offset, .takeover = true, .restart_if_exited = restart});
    }
    ASSERT_TRUE(attached.ok()) << attached.status() << log_;
    held_ = std::make_unique<Holder>(Holder{*std::move(attached), offset, 0});
    if (outcome_ && restart) {
      outcome_.reset();
      expected_ += "ready\n";
      rows_ = 100;
    }
    if (outcome_) {
      ReadToEnd();
      Drop(&held_);
      Drop(&old);
      return;
    }
    CatchUp();
    if (old) AwaitDisplaced(*old);
    Drop(&old);
  }

  void AwaitDisplaced(Holder& old) {
    for (int i = 0; i < 10'000; ++i) {
      const auto event = NextEvent(old);
      if (!event.ok()) {  // a bare end of the connection is all that some daemons manage
        EXPECT_EQ(ReasonOf(event.status()), R::ERROR_REASON_SANDBOX_UNREACHABLE) << log_;
        return;
      }
      if (std::holds_alternative<Displaced>(*event)) return;
    }
    ADD_FAILURE() << "was not displaced" << log_;
  }

  void Type(const std::string& text) {
    const absl::Status sent = Do([&] { return held_->attachment->SendInput(held_->typed, text); });
    EXPECT_TRUE(sent.ok()) << sent << log_;
    held_->typed += static_cast<int64_t>(text.size());
  }

  absl::StatusOr<ProcessEvent> NextEvent(Holder& holder) {
    return Do([&]() -> Task<absl::StatusOr<ProcessEvent>> {
      std::optional<absl::StatusOr<ProcessEvent>> event;
      const bool came = co_await RunWithin(bridge_->bench.loop, kPatience, [&]() -> Task<void> {
        event.emplace(co_await holder.attachment->Next());
      });
      if (!came) co_return absl::DeadlineExceededError("nothing came");
      co_return *std::move(event);
    });
  }

  // The next output, checked by its number; empty: another event.
  std::string ReadOutput() {
    const auto event = NextEvent(*held_);
    EXPECT_TRUE(event.ok()) << event.status() << log_;
    if (!event.ok()) return "";
    const auto* output = std::get_if<ProcessOutput>(&*event);
    if (output == nullptr) {
      EXPECT_FALSE(std::holds_alternative<ProcessExited>(*event)) << "it did not end" << log_;
      return "";
    }
    EXPECT_EQ(output->offset, held_->next) << log_;
    held_->next = output->offset + static_cast<int64_t>(output->data.size());
    return output->data;
  }

  // All that is expected arrives, here or, when nobody holds it, in the daemon.
  void CatchUp() {
    const auto end = static_cast<int64_t>(expected_.size());
    if (!held_) {
      for (int i = 0; i < 3000; ++i) {
        const auto info = Do([&] { return processes().Get({}, box_, id_); });
        ASSERT_TRUE(info.ok()) << info.status() << log_;
        if (info->output_offset == end) return;
        ASSERT_LT(info->output_offset, end) << log_;
        usleep(10'000);
      }
      FAIL() << "the output did not come" << log_;
    }
    while (held_->next < end && !::testing::Test::HasFailure()) {
      const auto at = static_cast<size_t>(held_->next);
      const std::string data = ReadOutput();
      EXPECT_TRUE(data == expected_.substr(at, data.size())) << "at " << at << log_;
    }
  }

  void ReadToEnd() {
    CatchUp();
    std::optional<Outcome> outcome;
    bool drained = false;
    while (!drained && !::testing::Test::HasFailure()) {
      const auto event = NextEvent(*held_);
      ASSERT_TRUE(event.ok()) << event.status() << log_;
      if (const auto* exited = std::get_if<ProcessExited>(&*event)) {
        EXPECT_FALSE(outcome.has_value()) << "it ended twice" << log_;
        outcome = exited->outcome;
      }
      if (const auto* last = std::get_if<ProcessDrained>(&*event)) {
        EXPECT_EQ(last->end_offset, static_cast<int64_t>(expected_.size())) << log_;
        drained = true;
      }
      const auto* output = std::get_if<ProcessOutput>(&*event);
      EXPECT_EQ(output, nullptr) << "more than was printed" << log_;
    }
    EXPECT_EQ(outcome, outcome_) << log_;
  }

  const Case case_;
  std::mt19937 random_;
  ExecdProcess execd_;
  std::unique_ptr<Bridge> bridge_;
  const SandboxTarget box_{"box", ""};
  std::string marker_;
  std::string id_;
  std::unique_ptr<Holder> held_;
  std::string expected_;            // everything that it has printed
  std::optional<Outcome> outcome_;  // it has ended
  int lines_ = 0;
  int rows_ = 100;
  std::string log_ = "\nsteps:";
};

std::vector<Case> Cases() {
  const char* one = std::getenv("SANDBOX_MODEL_SEED");
  const char* runs = std::getenv("SANDBOX_MODEL_RUNS");
  const unsigned first = one != nullptr ? static_cast<unsigned>(std::atoi(one)) : 1;
  const unsigned count = one != nullptr ? 1 : runs != nullptr ? std::atoi(runs) : 4;
  std::vector<Case> cases;
  for (unsigned seed = first; seed < first + count; ++seed) {
    for (const bool terminal : {false, true}) {
      for (const bool own : {false, true}) cases.push_back({terminal, own, seed});
    }
  }
  return cases;
}

class ProcessModelTest : public ::testing::TestWithParam<Case> {};

TEST_P(ProcessModelTest, HoldsUnderRandomUse) { ProcessModel(GetParam()).Run(); }

INSTANTIATE_TEST_SUITE_P(Seeds, ProcessModelTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) {
                           return std::string(info.param.terminal ? "terminal_" : "pipes_") +
                                  (info.param.own ? "own_" : "stock_") +
                                  std::to_string(info.param.seed);
                         });

}  // namespace
}  // namespace bridge
