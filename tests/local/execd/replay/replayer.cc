// SPDX-License-Identifier: Apache-2.0
#include "tests/local/execd/replay/replayer.h"

#include <atomic>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>

#include "absl/time/clock.h"
#include "bridge/local/http/websocket_frame.h"

namespace bridge::local::execd {
namespace {

constexpr char kStillRunning[] = " (still running)";
constexpr char kStillAttached[] = " (still attached)";

bool IsTerminal(const std::string& chunk) {
  return chunk.find("\"type\":\"execution_complete\"") != std::string::npos ||
         chunk.find("\"type\":\"error\"") != std::string::npos || chunk.starts_with("{\"code\":");
}

// "wait 1.8 s", "sleep 1.6 s"
absl::Duration WaitOf(const std::string& text) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex("(wait|sleep) ([0-9.]+) s"))) {
    return absl::ZeroDuration();
  }
  return absl::Seconds(std::stod(match[2].str()));
}

std::string FirstId(const std::string& text) {
  std::smatch match;
  static const std::regex kId(
      "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}");
  return std::regex_search(text, match, kId) ? match.str() : "";
}

}  // namespace

struct Replayer::Live {
  std::thread thread;
  Differences differences;
  std::atomic<bool> begun{false};
};

Replayer::Replayer(const ReplayOptions& options)
    : options_(options), recordings_(LoadRecordings(options.file)) {}

Replayer::~Replayer() {
  for (auto& [name, live] : live_) {
    if (live->thread.joinable()) live->thread.join();
  }
  for (std::thread& helper : helpers_) helper.join();
}

const Recording* Replayer::Find(const std::string& name) const {
  for (const Recording& recording : recordings_) {
    if (recording.name == name) return &recording;
  }
  return nullptr;
}

std::map<std::string, Differences> Replayer::Run() {
  std::map<std::string, Differences> out;
  for (const Recording& recording : recordings_) {
    const bool wanted = options_.only.empty() || options_.only.count(recording.name) != 0;
    if (!wanted || options_.skip.count(recording.name) != 0 || recording.target != "execd")
      continue;
    if (live_.count(recording.name) != 0) continue;  // its turn has been
    Prepare(recording);
    out[recording.name] = Play(recording);
  }
  for (auto& [name, live] : live_) {
    live->thread.join();
    out[name] = live->differences;
  }
  return out;
}

void Replayer::Prepare(const Recording& recording) {
  for (std::thread& helper : helpers_) helper.join();
  helpers_.clear();
  for (const std::string& item : recording.setup) {
    for (const char* suffix : {kStillRunning, kStillAttached}) {
      if (!item.ends_with(suffix) || item.starts_with("sh: ")) continue;
      const std::string name = item.substr(0, item.size() - std::string(suffix).size());
      if (live_.count(name) == 0) StartLive(*Find(name));
    }
    if (item.starts_with("sh: ")) {
      std::string command = item.substr(4);
      if (command.ends_with(kStillRunning)) {
        command.resize(command.size() - std::string(kStillRunning).size());
        helpers_.emplace_back([this, command] { RunShell(command); });
        absl::SleepFor(absl::Milliseconds(300));
      } else if (shells_done_.insert(command).second) {
        RunShell(command.substr(0, command.find(", wait ")));
      }
    }
    if (item == "sleep until finished" && shells_done_.insert(item).second) {
      absl::SleepFor(absl::Seconds(3.2));
    }
    absl::SleepFor(WaitOf(item));
  }
}

void Replayer::RunShell(const std::string& command) {
  RawClient client(options_.port);
  // The text of a recording is read by a shell once more than here: its JSON was written by hand.
  const std::string body = nlohmann::json({{"command", command}}).dump();
  client.Send("POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  client.Read(false, [](const RawAnswer& answer) { return IsTerminal(answer.chunks.back()); });
}

void Replayer::StartLive(const Recording& recording) {
  auto live = std::make_unique<Live>();
  Live* raw = live.get();
  live_[recording.name] = std::move(live);
  raw->thread = std::thread([this, raw, &recording] { raw->differences = Play(recording); });
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (absl::Now() < deadline) {
    {
      const std::lock_guard lock(mu_);
      if (ids_.count(recording.name) != 0) break;
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
  // The recorder let them run for 0.2 to 0.4 s as well.
  absl::SleepFor(absl::Milliseconds(recording.websocket ? 150 : 400));
}

std::string Replayer::Fill(const Recording& recording, const std::string& text) {
  std::string out = text;
  for (const auto& [name, recorded_value] : recording.bindings) {
    const std::lock_guard lock(mu_);
    std::string value = name == "last_modified" ? last_modified_ : recorded_value;
    for (std::string item : recording.setup) {
      item = item.substr(0, item.find(" (still "));
      if (const auto it = ids_.find(item); name != "last_modified" && it != ids_.end()) {
        value = it->second;
        break;
      }
    }
    const std::string placeholder = "{" + name + "}";
    for (size_t at; (at = out.find(placeholder)) != std::string::npos;) {
      out.replace(at, placeholder.size(), value);
    }
  }
  return out;
}

std::string Replayer::Request(const Recording& recording) {
  http::Headers headers;
  for (const auto& [name, value] : recording.request_headers) {
    headers.Add(name, Fill(recording, value));
  }
  for (const auto& [name, value] : options_.extra_headers) headers.Add(name, value);
  return RequestHead(recording.method, Fill(recording, recording.path), headers) + recording.body;
}

void Replayer::LearnId(const std::string& name, const std::string& id) {
  const std::lock_guard lock(mu_);
  if (!id.empty()) ids_[name] = id;
}

void Replayer::Learn(const std::string& name, const RawAnswer& answer) {
  if (!answer.chunks.empty()) LearnId(name, FirstId(answer.chunks[0]));
  if (const auto modified = answer.headers.Get("Last-Modified")) {
    const std::lock_guard lock(mu_);
    last_modified_ = std::string(*modified);
  }
}

Differences Replayer::Play(const Recording& recording) {
  if (recording.name.starts_with("background-status-race")) return PlayRace();
  if (recording.name.starts_with("keepalive-")) return PlayKeepAlive(recording);
  return recording.websocket ? PlaySocket(recording) : PlayAnswer(recording);
}

Differences Replayer::PlayAnswer(const Recording& recording) {
  RawClient client(options_.port);
  client.Send(Request(recording));
  const bool cut_by_client = !recording.complete && recording.closed_by == "client";
  const bool to_end = options_.read_to_end.count(recording.name) != 0 ||
                      (!cut_by_client && recording.framing != "chunked");
  const RawAnswer answer = client.Read(recording.method == "HEAD", [&](const RawAnswer& so_far) {
    Learn(recording.name, so_far);
    if (cut_by_client) return so_far.chunks.size() >= recording.chunks.size();
    return !to_end && IsTerminal(so_far.chunks.back());
  });
  Learn(recording.name, answer);
  Differences out = CompareAnswers(recording, answer, to_end);
  if (recording.closed_by == "server" && !client.Ended(absl::Seconds(5))) {
    out.emplace_back("the server did not end the connection");
  }
  return out;
}

// The second request of the pair goes over the first one's connection.
Differences Replayer::PlayKeepAlive(const Recording& recording) {
  if (!kept_) kept_ = std::make_unique<RawClient>(options_.port);
  kept_->Send(Request(recording));
  return CompareAnswers(recording, kept_->Read(false), true);
}

// A background command whose status is asked for as soon as its id is known.
Differences Replayer::PlayRace() {
  RawClient client(options_.port);
  const std::string body = "{\"command\":\"sleep 1\",\"background\":true}";
  client.Send("POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  RawClient second(options_.port);
  const RawAnswer started = client.Read(false, [](const RawAnswer&) { return true; });
  const std::string id = FirstId(started.Body());
  second.Send("GET /command/status/" + id + " HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawAnswer status = second.Read(false);
  if (status.status == 404 && status.Body().find("command not found: " + id) != std::string::npos) {
    return {};
  }
  return {"status right after init: " + std::to_string(status.status) + " " + status.Body()};
}

namespace {

// Reads frames into a story, answers the server's pings and close frames.
class FrameReader {
 public:
  FrameReader(RawClient& client) : client_(client), thread_([this] { Loop(); }) {}
  ~FrameReader() {
    client_.socket().Shutdown();
    thread_.join();
  }
  int texts() {
    const std::lock_guard lock(mu_);
    return texts_;
  }
  size_t output() {
    const std::lock_guard lock(mu_);
    return story_.out.size() + story_.err.size();
  }
  bool closed() {
    const std::lock_guard lock(mu_);
    return closed_;
  }
  SocketStory story() {
    const std::lock_guard lock(mu_);
    return story_;
  }
  void Send(int opcode, const std::string& payload) {
    const std::lock_guard lock(write_mu_);
    (void)client_.socket().Write(http::EncodeFrame(static_cast<uint8_t>(opcode), payload, true,
                                                   std::array<uint8_t, 4>{1, 2, 3, 4}));
    if (opcode == 8) sent_close_ = true;
  }

 private:
  void Loop() {
    http::WebSocketFrameParser parser(/*expect_mask=*/false, 64 << 20);
    parser.Feed(client_.TakeBuffered());
    char bytes[65536];
    while (true) {
      while (true) {
        const auto frame = parser.Next();
        if (!frame.ok() || !*frame) break;
        Take(**frame);
      }
      const auto n = client_.socket().Read(bytes, sizeof(bytes));
      if (!n.ok() || *n == 0) break;
      parser.Feed(std::string_view(bytes, *n));
    }
    const std::lock_guard lock(mu_);
    closed_ = true;
  }
  void Take(const http::WebSocketFrame& frame) {
    {
      const std::lock_guard lock(mu_);
      story_.Add(frame.opcode, frame.payload);
      if (frame.opcode == 1) ++texts_;
      if (frame.opcode == 8) closed_ = true;
    }
    if (frame.opcode == 9) Send(10, frame.payload);
    if (frame.opcode == 8 && !sent_close_) Send(8, frame.payload.substr(0, 2));
  }

  RawClient& client_;
  std::mutex mu_;
  std::mutex write_mu_;
  std::atomic<bool> sent_close_{false};
  SocketStory story_;
  int texts_ = 0;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace

Differences Replayer::PlaySocket(const Recording& recording) {
  RawClient client(options_.port);
  client.Send(Request(recording));
  const RawAnswer answer = client.Read(recording.status == 101);
  if (recording.status != 101 || answer.status != 101) {
    return CompareAnswers(recording, answer, true);
  }
  Differences out = CompareAnswers(recording, answer, false);
  FrameReader reader(client);
  const absl::Time begin = absl::Now();
  const bool pipes = recording.path.find("pty=0") != std::string::npos;
  int texts = 0;      // that the recorder had seen
  size_t output = 0;  // and how much output
  bool server_closed = false, server_pinged = false;
  for (const RecordedFrame& frame : recording.frames) {
    if (!frame.out) {
      texts += frame.opcode == 1;
      if (frame.opcode == 2 && !frame.bytes.empty() && frame.bytes[0] < 3) {
        output += frame.bytes.size() - 1;
      }
      server_closed |= frame.opcode == 8;
      server_pinged |= frame.opcode == 9;
      continue;
    }
    if ((frame.opcode == 8 && server_closed) || (frame.opcode == 10 && server_pinged)) continue;
    // What was left out of the record had come before the recorder left.
    if (recording.frames_omitted) output = static_cast<size_t>(recording.output_bytes_total);
    // Not before its time, nor before what the recorder had seen by then. Pipes bring all of it,
    // however busy the machine; output of a terminal may be lost, so it is not waited for long.
    const absl::Time due = begin + absl::Milliseconds(frame.t_ms);
    const absl::Time patience =
        std::max(absl::Now(), due) + (pipes ? absl::Seconds(20) : absl::Milliseconds(500));
    const absl::Time deadline = patience + absl::Seconds(40);
    while (!reader.closed() && absl::Now() < deadline &&
           (absl::Now() < due || reader.texts() < texts ||
            (absl::Now() < patience && reader.output() < output))) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    reader.Send(frame.opcode, frame.bytes);
  }
  // What the recorder saw until it stopped looking, and as much time as it gave.
  const double t_end =
      recording.closed_by == "server" ? recording.t_end_ms + 5000 : recording.t_end_ms;
  const absl::Time deadline = begin + absl::Milliseconds(t_end);
  const int all_texts = static_cast<int>(StoryOf(recording).texts.size());
  while (absl::Now() < deadline && !reader.closed()) {
    if (reader.texts() >= 1) LearnId(recording.name, Fill(recording, "{pty_id}"));
    // A record that ends without a close frame ends when all of its output is here.
    const SocketStory so_far = reader.story();
    const SocketStory recorded = StoryOf(recording);
    if (!recording.close_code && so_far.texts.size() >= static_cast<size_t>(all_texts) &&
        so_far.out.size() >= recorded.out.size() &&
        absl::Now() > begin + absl::Milliseconds(recording.t_end_ms)) {
      break;
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
  const SocketStory ours = reader.story();
  if (recording.frames_omitted) {
    // Too long to be kept whole: so many bytes of output, and their end.
    if (static_cast<int64_t>(ours.out.size()) != recording.output_bytes_total) {
      out.push_back("output: recorded " + std::to_string(recording.output_bytes_total) +
                    " bytes, ours " + std::to_string(ours.out.size()));
    }
    return out;
  }
  const bool tail_may_be_missing = !pipes && recording.close_reason == "process exited";
  for (std::string& text : CompareStories(StoryOf(recording), ours, tail_may_be_missing)) {
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace bridge::local::execd
