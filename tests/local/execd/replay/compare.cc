// SPDX-License-Identifier: Apache-2.0
#include "tests/local/execd/replay/compare.h"

#include <algorithm>
#include <cstdlib>
#include <regex>

#include "absl/strings/escaping.h"

namespace bridge::local::execd {
namespace {

bool IsVolatileHeader(std::string_view name) {
  return http::EqualsIgnoreCase(name, "Date") || http::EqualsIgnoreCase(name, "Last-Modified") ||
         http::EqualsIgnoreCase(name, "Sec-WebSocket-Accept");
}

std::string Shown(const std::string& text) {
  const std::string part = text.substr(0, 600);
  return absl::CHexEscape(part);
}

std::string Differ(const std::string& what, const std::string& recorded, const std::string& ours) {
  return what + ": recorded " + Shown(recorded) + ", ours " + Shown(ours);
}

void CompareHeaders(const Recording& recorded, const RawAnswer& answer, bool same_length,
                    Differences* out) {
  std::string theirs, ours;
  const auto describe = [&](const http::Headers& headers, std::string* text) {
    for (const auto& [name, value] : headers) {
      const bool length = http::EqualsIgnoreCase(name, "Content-Length");
      *text += name + ": ";
      *text += IsVolatileHeader(name) || (length && !same_length) ? "…" : value;
      *text += "\n";
    }
  };
  describe(recorded.response_headers, &theirs);
  describe(answer.headers, &ours);
  if (theirs != ours) out->push_back(Differ("headers", theirs, ours));
}

bool IsEventStream(const Recording& recorded) {
  return recorded.response_headers.Get("Content-Type").value_or("") == "text/event-stream";
}

// Events of a stream by kind, pings counted apart.
struct Events {
  std::vector<std::string> control;  // all but output and pings, in order
  std::vector<std::string> out;
  std::vector<std::string> err;
  int pings = 0;
  std::string first;
  std::string last;  // of those that are no pings
};

Events Sort(const std::vector<std::string>& events) {
  Events sorted;
  for (const std::string& raw : events) {
    const std::string event = Normalize(raw);
    if (event.find("\"type\":\"ping\"") != std::string::npos) {
      ++sorted.pings;
      continue;
    }
    if (sorted.first.empty()) sorted.first = event;
    sorted.last = event;
    if (event.find("\"type\":\"stdout\"") != std::string::npos) {
      sorted.out.push_back(event);
    } else if (event.find("\"type\":\"stderr\"") != std::string::npos) {
      sorted.err.push_back(event);
    } else {
      sorted.control.push_back(event);
    }
  }
  return sorted;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += part + "\n";
  return out;
}

void CompareEvents(const Recording& recorded, const RawAnswer& answer, Differences* out) {
  for (const std::string& chunk : answer.chunks) {
    const bool bare = chunk.starts_with("{\"code\":") && chunk.find('\n') == std::string::npos;
    const size_t end = chunk.find('\n');
    const bool one_event =
        end != std::string::npos && (chunk.substr(end) == "\n\n" || chunk.substr(end) == "\n");
    if (!bare && !one_event) out->push_back("a chunk is not one event: " + Shown(chunk));
  }
  if (recorded.truncated) {
    const int difference = static_cast<int>(answer.chunks.size()) - recorded.n_chunks;
    if (std::abs(difference) > 1) {
      out->push_back("recorded " + std::to_string(recorded.n_chunks) + " events, ours " +
                     std::to_string(answer.chunks.size()));
    }
    return;
  }
  std::vector<std::string> theirs;
  theirs.reserve(recorded.chunks.size());
  for (const RecordedChunk& chunk : recorded.chunks) theirs.push_back(chunk.bytes);
  const Events a = Sort(theirs);
  const Events b = Sort(answer.chunks);
  if (a.first != b.first) out->push_back(Differ("first event", a.first, b.first));
  if (a.last != b.last) out->push_back(Differ("last event", a.last, b.last));
  if (a.control != b.control) {
    out->push_back(Differ("events", Join(a.control), Join(b.control)));
  }
  if (a.out != b.out) out->push_back(Differ("stdout", Join(a.out), Join(b.out)));
  if (a.err != b.err) out->push_back(Differ("stderr", Join(a.err), Join(b.err)));
  if (std::abs(a.pings - b.pings) > 1 || (a.pings > 0) != (b.pings > 0)) {
    out->push_back("pings: recorded " + std::to_string(a.pings) + ", ours " +
                   std::to_string(b.pings));
  }
}

// How long a stream stays open after its last event that is no ping: about a second, or not at all.
void CompareLinger(const Recording& recorded, const RawAnswer& answer, Differences* out) {
  double theirs = recorded.t_end_ms, ours = answer.end_ms;
  for (const RecordedChunk& chunk : recorded.chunks) {
    if (chunk.bytes.find("\"ping\"") == std::string::npos) theirs = recorded.t_end_ms - chunk.t_ms;
  }
  for (size_t i = 0; i < answer.chunks.size(); ++i) {
    if (answer.chunks[i].find("\"ping\"") == std::string::npos) {
      ours = answer.end_ms - answer.chunk_ms[i];
    }
  }
  if ((theirs > 900) != (ours > 900)) {
    out->push_back("linger: recorded " + std::to_string(theirs) + " ms, ours " +
                   std::to_string(ours) + " ms");
  }
}

}  // namespace

std::string Normalize(std::string text) {
  static const std::vector<std::pair<std::regex, std::string>> kRules = {
      {std::regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"},
      {std::regex("[0-9a-f]{32}"), "HEX32"},
      {std::regex("20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"), "TIME"},
      {std::regex("\"timestamp\":[0-9]+"), "\"timestamp\":N"},
      {std::regex(",\"execution_time\":[0-9]+"), ""},
      {std::regex("execd_bash_[0-9]+\\.sh"), "execd_bash_N.sh"},
      {std::regex("line 1: +[0-9]+ Killed"), "line 1: PID Killed"},
      {std::regex("\"(cpu_count|cpu_used_pct|mem_total_mib|mem_used_mib)\":[0-9.e+-]+"),
       "\"$1\":N"},
      // What a directory and the account file measure is the file system's and the image's
      // business.
      {std::regex("\"type\":\"directory\",\"size\":[0-9]+"), "\"type\":\"directory\",\"size\":N"},
      {std::regex("\"path\":\"/etc/passwd\",\"type\":\"file\",\"size\":[0-9]+"),
       "\"path\":\"/etc/passwd\",\"type\":\"file\",\"size\":N"}};
  for (const auto& [pattern, word] : kRules) text = std::regex_replace(text, pattern, word);
  return text;
}

Differences CompareAnswers(const Recording& recorded, const RawAnswer& answer, bool read_to_end) {
  Differences out;
  if (recorded.status != answer.status) {
    out.push_back("status: recorded " + std::to_string(recorded.status) + ", ours " +
                  std::to_string(answer.status) + " " + Shown(answer.Body()));
    return out;
  }
  const std::string theirs = recorded.Body(), ours = answer.Body();
  CompareHeaders(recorded, answer, theirs == Normalize(theirs), &out);
  if (IsEventStream(recorded)) {
    CompareEvents(recorded, answer, &out);
    if (read_to_end) CompareLinger(recorded, answer, &out);
  } else if (recorded.truncated) {
    if (recorded.body_length >= 0 && Normalize(theirs) == theirs &&
        recorded.body_length != static_cast<int64_t>(ours.size())) {
      out.push_back("body: recorded " + std::to_string(recorded.body_length) + " bytes, ours " +
                    std::to_string(ours.size()));
    }
  } else if (Normalize(theirs) != Normalize(ours)) {
    out.push_back(Differ("body", Normalize(theirs), Normalize(ours)));
  }
  if (read_to_end && recorded.complete != answer.complete) {
    out.push_back(std::string("the message was ") + (answer.complete ? "" : "not ") + "complete");
  }
  return out;
}

// ---- WebSockets

void SocketStory::Add(int opcode, const std::string& payload) {
  std::string kind;
  if (opcode == 1) {
    texts.push_back(Normalize(payload));
    std::smatch match;
    std::regex_search(payload, match, std::regex("\"type\":\"([a-z]+)\""));
    kind = match.size() > 1 ? match[1].str() : "text";
  } else if (opcode == 2 && !payload.empty()) {
    const std::string bytes = payload.substr(1);
    if (payload[0] == 3) {
      kind = "replay";
      replays.push_back(bytes);
    } else if (payload[0] == 1) {
      kind = "output";
      out += bytes;
    } else if (payload[0] == 2) {
      kind = "output";
      err += bytes;
    } else {
      kind = "unknown tag";
    }
  } else if (opcode == 8) {
    kind = "close";
    close = payload.size() < 2 ? "none"
                               : std::to_string((static_cast<unsigned char>(payload[0]) << 8) |
                                                static_cast<unsigned char>(payload[1])) +
                                     " " + payload.substr(2);
  } else if (opcode == 9) {
    ++pings;
    return;
  } else if (opcode == 10) {
    pongs.push_back(payload);
    return;
  }
  if (order.empty() || order.back() != kind) order.push_back(kind);
}

SocketStory StoryOf(const Recording& recorded) {
  SocketStory story;
  for (const RecordedFrame& frame : recorded.frames) {
    if (!frame.out) story.Add(frame.opcode, frame.bytes);
  }
  return story;
}

Differences CompareStories(const SocketStory& recorded, const SocketStory& ours,
                           bool tail_may_be_missing) {
  Differences out;
  const auto output = [&](const char* what, const std::string& a, const std::string& b) {
    const std::string theirs = Normalize(a), mine = Normalize(b);
    if (theirs == mine || (tail_may_be_missing && theirs.starts_with(mine))) return;
    out.push_back(Differ(what, theirs, mine));
  };
  output("stdout", recorded.out, ours.out);
  output("stderr", recorded.err, ours.err);
  if (recorded.texts != ours.texts) {
    out.push_back(Differ("texts", Join(recorded.texts), Join(ours.texts)));
  }
  if (recorded.replays != ours.replays && !tail_may_be_missing) {
    out.push_back(Differ("replays", Join(recorded.replays), Join(ours.replays)));
  }
  if (recorded.order != ours.order && !tail_may_be_missing) {
    out.push_back(Differ("order", Join(recorded.order), Join(ours.order)));
  }
  if (recorded.close != ours.close) out.push_back(Differ("close", recorded.close, ours.close));
  if (recorded.pongs != ours.pongs) {
    out.push_back(Differ("pongs", Join(recorded.pongs), Join(ours.pongs)));
  }
  if (recorded.pings != ours.pings) out.emplace_back("pings differ");
  return out;
}

}  // namespace bridge::local::execd
