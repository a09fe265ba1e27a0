// SPDX-License-Identifier: Apache-2.0
//
// STR-08: a command that says nothing, or little, for hours. Time alone ends nothing, by any route,
// as long as the daemon gives the signs of life that belong to its route, as late as they may come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "bridge/base/clock.h"
#include "bridge/opensandbox/exec_files.h"
#include "bridge/opensandbox/exec_frames.h"
#include "bridge/opensandbox/exec_lines.h"
#include "bridge/opensandbox/exec_own.h"
#include "tests/fakes/fixed_directory.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/run_task.h"
#include "tests/opensandbox/scripted_daemon.h"

namespace bridge {
namespace {

// Just before a route takes its daemon for gone.
constexpr absl::Duration kGap = absl::Seconds(12);
constexpr int kSteps = 1200;  // four hours

// What a daemon has to say, piece by piece, when the test wants it said. Any thread.
class Speech {
 public:
  void Say(std::string bytes) {
    std::lock_guard<std::mutex> lock(mu_);
    pieces_.push_back(std::move(bytes));
    said_.notify_all();
  }
  // To the end, which is an empty piece.
  void Deliver(RawConnection& peer) {
    while (true) {
      std::unique_lock<std::mutex> lock(mu_);
      said_.wait(lock, [this] { return !pieces_.empty(); });
      const std::string piece = std::move(pieces_.front());
      pieces_.pop_front();
      lock.unlock();
      if (piece.empty()) return;
      peer.Write(Chunk(piece));
    }
  }

 private:
  std::mutex mu_;
  std::condition_variable said_;
  std::deque<std::string> pieces_;
};

struct Bench {
  explicit Bench(std::string url) : directory(std::move(url)), client(http, directory) {}
  ~Bench() {
    // What is left of an exec (the removal of its files) waits for the daemon, not for the clock.
    RunTask(loop, [this]() -> Task<void> { co_await background.Drain(loop, absl::Hours(1)); });
  }
  SandboxHandle sandbox() {
    return {client, background, CallContext(), directory.daemon(),
            std::make_shared<DaemonCapabilities>()};
  }
  std::unique_ptr<RemoteCommand> MakeCommand() {
    return std::make_unique<RemoteCommand>(client, CallContext(), directory.daemon(),
                                           CommandRequest{.command = "make"});
  }

  FakeClock clock;
  EventLoop loop{clock};
  HttpClient http{loop};
  TaskScope background;
  FixedDirectory directory;
  DaemonClient client;
};

struct Followed {
  absl::Status status;
  std::string out;
  std::optional<Outcome> outcome;
  ExecBatch last;
};

// One step. False: nothing more is to come.
Task<bool> Step(Exec& exec, Followed* all, absl::Duration patience = kGap) {
  all->status = co_await exec.Next(&all->last, patience);
  for (const ExecOutput& output : all->last.outputs) all->out += output.data;
  if (all->last.exited) all->outcome = all->last.exited;
  co_return all->status.ok() && !all->last.drained;
}

std::string Line(int number) { return "line " + std::to_string(number) + "\n"; }

std::string ExpectedOutput() {
  std::string all;
  for (int i = 0; i < kSteps; ++i) {
    if (i % 2 == 1) all += Line(i);
  }
  return all;
}

// A sign of life and a line of output by turns, each as late as it may be, and read before time
// goes on. `print` tells the daemon's form of a line.
template <class Print>
Task<Followed> FollowForHours(FakeClock& clock, Exec& exec, Speech& speech, std::string sign,
                              Print print, std::string end) {
  Followed all;
  bool more = true;
  for (int i = 0; i < kSteps && more; ++i) {
    clock.Advance(kGap);
    speech.Say(i % 2 == 1 ? print(Line(i)) : sign);
    more = co_await Step(exec, &all);
    more = more && !all.outcome;
  }
  speech.Say(end);
  speech.Say("");
  while (more) more = co_await Step(exec, &all);
  co_return all;
}

void ExpectDone(const Followed& all) {
  EXPECT_TRUE(all.status.ok()) << all.status;
  EXPECT_EQ(all.outcome, Outcome(ExitCode{7}));
  EXPECT_TRUE(all.out == ExpectedOutput()) << all.out.size();
  EXPECT_TRUE(all.last.drained);
}

// The daemon's heartbeats, every kHeartbeat and up to ten seconds late.
TEST(QuietExec, OnOurOwnDaemon) {
  constexpr absl::Duration kHeartbeat = absl::Seconds(3);
  Speech speech;
  RawServer daemon([&speech](RawConnection& peer) {
    const std::string started = ReadExecRequest(peer);
    peer.Write(kFramesHead + Chunk(EncodeExecFrame(ExecFrame::kStarted, 0, started)));
    speech.Deliver(peer);
  });
  Bench bench(daemon.Url(""));
  const Followed all = RunTask(bench.loop, [&]() -> Task<Followed> {
    const ExecSpec spec{.shell = "make"};
    OwnExec exec(bench.sandbox(), spec, kHeartbeat);
    Followed result;
    result.status = co_await exec.Begin();
    if (!result.status.ok()) co_return result;
    uint64_t offset = 0;
    const auto print = [&offset](const std::string& line) {
      const std::string frame = EncodeExecFrame(ExecFrame::kStdout, offset, line);
      offset += line.size();
      return frame;
    };
    const std::string total = std::to_string(ExpectedOutput().size());
    co_return co_await FollowForHours(
        bench.clock, exec, speech, EncodeExecFrame(ExecFrame::kHeartbeat, 0, ""), print,
        EncodeExecFrame(ExecFrame::kExited, 0, R"({"kind":"exited","code":7,"ran_ms":1})") +
            EncodeExecFrame(ExecFrame::kDrained, 0,
                            R"({"stdout_bytes":)" + total + R"(,"stderr_bytes":0})"));
  });
  ExpectDone(all);
  EXPECT_FALSE(all.last.lossy);
}

// The daemon's pings, every 3 s and up to twelve seconds late.
TEST(QuietExec, AsLines) {
  Speech speech;
  ScriptedDaemon daemon([&speech](RawConnection& peer) {
    peer.Write(kHead + Chunk(kInit));
    speech.Deliver(peer);
  });
  Bench bench(daemon.url());
  const Followed all = RunTask(bench.loop, [&]() -> Task<Followed> {
    Followed result;
    auto command = bench.MakeCommand();
    result.status = co_await command->AwaitId();
    if (!result.status.ok()) co_return result;
    LineExec exec(bench.sandbox(), std::move(command), ExecId(), /*kill_on_drop=*/true);
    const auto print = [](std::string line) {
      line.pop_back();
      return R"({"type":"stdout","text":")" + line + "\"}\n\n";
    };
    co_return co_await FollowForHours(bench.clock, exec, speech,
                                      "{\"type\":\"ping\",\"text\":\"pong\"}\n\n", print,
                                      "{\"type\":\"error\",\"error\":{\"evalue\":\"7\"}}\n\n");
  });
  ExpectDone(all);
}

// A stock daemon of which one asks again and again how large the outputs are.
class PolledDaemon {
 public:
  PolledDaemon(const ExecFolder& folder, Speech& speech)
      : folder_(folder), server_([this, &speech](RawConnection& peer) { Serve(peer, speech); }) {}

  std::string url() const { return server_.Url(""); }
  void Print(const std::string& text) {
    std::lock_guard<std::mutex> lock(mu_);
    out_ += text;
  }

 private:
  void Serve(RawConnection& peer, Speech& speech) {
    while (true) {
      const std::string head = peer.ReadHead();
      if (head.empty()) return;
      if (head.starts_with("POST /command ")) {
        peer.Write(kHead + Chunk(kInit));
        return speech.Deliver(peer);
      }
      peer.Write(Answer(head));
    }
  }
  std::string Answer(const std::string& head) {
    std::lock_guard<std::mutex> lock(mu_);
    if (head.starts_with("GET /files/info")) {
      const auto file = [](const std::string& path, size_t size) {
        return "\"" + path + R"(":{"path":")" + path + R"(","size":)" + std::to_string(size) + "}";
      };
      return Json(200, "{" + file(folder_.out(), out_.size()) + "," + file(folder_.err(), 0) + "}");
    }
    const bool out = head.starts_with("GET /files/download?path=" + QueryEscape(folder_.out()));
    const std::string all = out ? out_ : "";
    const size_t range = head.find("bytes=");
    if (range == std::string::npos) return Json(200, all);
    const size_t from = std::stoul(head.substr(range + 6));
    const std::string size = std::to_string(all.size());
    if (from >= all.size()) {
      return "HTTP/1.1 416 X\r\nContent-Range: bytes */" + size + "\r\nContent-Length: 0\r\n\r\n";
    }
    return "HTTP/1.1 206 X\r\nContent-Range: bytes " + std::to_string(from) + "-" +
           std::to_string(all.size() - 1) + "/" + size +
           "\r\nContent-Length: " + std::to_string(all.size() - from) + "\r\n\r\n" +
           all.substr(from);
  }

  const ExecFolder folder_;
  std::mutex mu_;
  std::string out_;  // guarded by mu_
  RawServer server_;
};

// Here the bridge asks; the daemon's pings do not even come.
TEST(QuietExec, ByFiles) {
  const ExecFolder folder("/tmp", std::string(32, '0'));
  Speech speech;
  PolledDaemon daemon(folder, speech);
  Bench bench(daemon.url());
  const Followed all = RunTask(bench.loop, [&]() -> Task<Followed> {
    Followed result;
    auto command = bench.MakeCommand();
    result.status = co_await command->AwaitId();
    if (!result.status.ok()) co_return result;
    FileExec exec(bench.sandbox(), std::move(command), folder, ExecId(), FileExec::OnDrop::kKill,
                  false);
    size_t printed = 0;
    bool more = true;
    for (int i = 0; i < kSteps && more; ++i) {
      bench.clock.Advance(kGap);
      if (i % 2 == 1) {
        daemon.Print(Line(i));
        printed += Line(i).size();
      }
      // A look each, without waiting for the clock, and what it finds before time goes on.
      more = co_await Step(exec, &result, absl::ZeroDuration());
      while (more && result.out.size() < printed) {
        more = co_await Step(exec, &result, absl::ZeroDuration());
      }
      more = more && !result.outcome;
    }
    speech.Say("{\"type\":\"error\",\"error\":{\"evalue\":\"7\"}}\n\n");
    speech.Say("");
    while (more) more = co_await Step(exec, &result, absl::ZeroDuration());
    co_return result;
  });
  ExpectDone(all);
  EXPECT_FALSE(all.last.lossy);
}

}  // namespace
}  // namespace bridge
