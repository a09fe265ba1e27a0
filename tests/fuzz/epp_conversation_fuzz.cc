// SPDX-License-Identifier: Apache-2.0
//
// A conversation of the EPP plugin with a host whose bytes may be anything: line reader, parser,
// dispatcher, methods, writer. The bridge behind it fails every call, at once. Whatever comes,
// every line that goes back is a JSON-RPC object that a host takes, each request is answered once,
// and nothing is answered that was not asked.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "bridge/base/clock.h"
#include "bridge/base/utf8.h"
#include "bridge/net/event_loop.h"
#include "frontends/epp/json_scan.h"
#include "frontends/epp/line_splitter.h"
#include "frontends/epp/message.h"
#include "frontends/epp/output.h"
#include "frontends/epp/session.h"
#include "tests/fuzz/fuzz.h"

namespace bridge::epp {
namespace {

constexpr size_t kMaxPendingBytes = 64 * 1024 * 1024;

// A channel that fails every call by itself.
class BrokenLink final : public BridgeLink {
 public:
  std::shared_ptr<grpc::Channel> channel() override {
    return grpc::CreateChannel("nowhere", nullptr);
  }
  std::string name() const override { return "no bridge"; }
  bool Settle(absl::Duration) override { return true; }
};

// Counts how often each id was asked with, on the way to the session.
class Reader final : public LineSink {
 public:
  Reader(Session& session, PendingBytes& pending) : session_(session), pending_(pending) {}
  void OnLine(std::string line) override { Give(ParseMessage(std::move(line))); }
  void OnOverlong(std::string_view beginning, uint64_t line_bytes) override {
    Give(OverlongMessage(beginning, line_bytes));
  }
  std::map<std::string, int> asked;

 private:
  void Give(Message message) {
    if (!message.id.empty()) ++asked[message.id];
    pending_.Take(message.bytes);
    session_.OnMessage(std::move(message));
  }

  Session& session_;
  PendingBytes& pending_;
};

std::string ReadAll(int fd) {
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  return text;
}

std::string CheckLine(std::string_view line, std::map<std::string, int>* asked) {
  if (line.size() > kMaxLineBytes) return "too long";
  if (!IsValidUtf8(line)) return "no UTF-8";
  // An id comes back as the host wrote it, and may be what only the host's own parser reads.
  std::string strict(line);
  ScanJson(&strict);
  const Json message = Json::parse(strict, nullptr, /*allow_exceptions=*/false);
  if (!message.is_object() || message.value("jsonrpc", Json()) != "2.0")
    return "no JSON-RPC object";
  if (message.contains("method")) return {};
  if (message.contains("result") == message.contains("error")) return "neither result nor error";
  if (!message.contains("id")) return "an answer without id";
  // Ids are answered as they were written, so the text is searched for.
  for (auto& [id, count] : *asked) {
    if (line.find("\"id\":" + id + ",") != line.npos && count > 0) {
      --count;
      return {};
    }
  }
  return "an answer that nobody asked for";
}

std::string Check(std::string_view output, std::map<std::string, int> asked) {
  while (!output.empty()) {
    const size_t end = output.find('\n');
    if (end == output.npos) return "half a line";
    const std::string_view line = output.substr(0, end + 1);
    if (std::string wrong = CheckLine(line, &asked); !wrong.empty()) {
      return wrong + ": " + std::string(line.substr(0, 500));
    }
    output.remove_prefix(end + 1);
  }
  for (const auto& [id, count] : asked) {
    if (count > 0) return "not answered: " + id.substr(0, 500);
  }
  return {};
}

// Returns what a host would end the plugin for; empty if there is nothing.
std::string PlayConversation(std::string_view bytes, size_t piece) {
  signal(SIGPIPE, SIG_IGN);
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return {};  // not what is tested here
  std::string written;
  std::thread host([&] { written = ReadAll(fds[0]); });
  std::map<std::string, int> asked;
  {
    EventLoop loop(Clock::Real(), "fuzz");
    PendingBytes pending(kMaxPendingBytes);
    Session* session = nullptr;
    Output output(fds[1], [&] { session->Terminate(); });
    Session actual(loop, output, pending, {.make_link = [](const Config&) {
                     return std::unique_ptr<BridgeLink>(std::make_unique<BrokenLink>());
                   }});
    session = &actual;
    Reader reader(actual, pending);
    LineSplitter splitter(kMaxLineBytes, reader);
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
      splitter.Feed(bytes.substr(0, piece));
    }
    splitter.Finish();
    actual.OnEndOfInput();
    actual.WaitUntilOver();
    output.Flush(absl::Seconds(30));
    asked = std::move(reader.asked);
  }
  close(fds[1]);
  host.join();
  close(fds[0]);
  return Check(written, std::move(asked));
}

}  // namespace
}  // namespace bridge::epp

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = bridge::FuzzText(data, size);
  const size_t piece = bridge::TakeChoice(&text) + 1u;
  const std::string wrong = bridge::epp::PlayConversation(text, piece);
  if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
  FUZZ_CHECK(wrong.empty());
  return 0;
}
