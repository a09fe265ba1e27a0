// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/client/direct.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "nlohmann/json.hpp"
#include "tests/bench/client/easy.h"

namespace bridge::bench {
namespace {

// Reads the daemon's events: a JSON object each, ended by an empty line.
struct Events {
  Sample sample;
  bool stamped = false;
  bool ended = false;
  std::string rest;

  static size_t Take(char* data, size_t size, size_t count, void* to) {
    auto& self = *static_cast<Events*>(to);
    self.rest.append(data, size * count);
    size_t from = 0;
    for (size_t end; (end = self.rest.find("\n\n", from)) != std::string::npos; from = end + 2) {
      self.One(std::string_view(self.rest).substr(from, end - from));
    }
    self.rest.erase(0, from);
    // The daemon keeps the stream open for a while after the terminal event; nobody waits for that.
    return self.ended ? 0 : size * count;
  }
  void One(std::string_view text) {
    const auto event = nlohmann::json::parse(text, nullptr, false);
    const std::string type = event.is_object() ? event.value("type", "") : "";
    if (type == "stdout" || type == "stderr") {
      ++sample.items;
      if (stamped) sample.latencies.push_back(Now() - std::stod(event.value("text", "0")) / 1e9);
    } else if (type == "execution_complete") {
      ended = true;
    } else if (type == "error" || type.empty()) {
      sample.Fail("the command failed, or an event could not be read");
    }
  }
};

}  // namespace

Sample DirectUnary(const DirectTarget& target, int calls) {
  Easy easy(target);
  int64_t bytes = 0;
  easy.CountBody(&bytes);
  Sample sample = Timed(calls, [&easy] { return easy.Perform(); });
  if (bytes == 0) sample.Fail("empty answers");
  return sample;
}

Sample DirectExec(const DirectTarget& target, const std::string& command, bool stamped) {
  DirectTarget with_type = target;
  with_type.headers.emplace_back("Content-Type: application/json");
  Easy easy(with_type);
  const std::string body = nlohmann::json{{"command", command}}.dump();
  easy.Set(CURLOPT_POSTFIELDS, body.c_str());
  Events events;
  events.stamped = stamped;
  easy.OnBody(&Events::Take, &events);
  const double start = Now();
  std::string failure = easy.Perform();
  events.sample.seconds = Now() - start;
  if (!failure.empty() && !events.ended) events.sample.Fail(std::move(failure));
  if (!events.ended) events.sample.Fail("no terminal event");
  return events.sample;
}

Sample DirectDownload(const DirectTarget& target) {
  Sample sample;
  Easy easy(target);
  easy.CountBody(&sample.items);
  const double start = Now();
  std::string failure = easy.Perform();
  sample.seconds = Now() - start;
  if (!failure.empty()) sample.Fail(std::move(failure));
  return sample;
}

namespace {

// The multipart body of an upload, made while it is sent.
struct UploadBody {
  std::string head, tail;
  int64_t bytes = 0;
  int64_t at = 0;

  int64_t size() const { return static_cast<int64_t>(head.size() + tail.size()) + bytes; }
  static size_t Give(char* to, size_t size, size_t count, void* from) {
    auto& self = *static_cast<UploadBody*>(from);
    const auto head = static_cast<int64_t>(self.head.size());
    const int64_t room = static_cast<int64_t>(size * count);
    int64_t n = 0;
    if (self.at < head) {
      n = std::min(room, head - self.at);
      std::memcpy(to, self.head.data() + self.at, static_cast<size_t>(n));
    } else if (self.at < head + self.bytes) {
      n = std::min(room, head + self.bytes - self.at);
      std::memset(to, 0, static_cast<size_t>(n));
    } else {
      n = std::min(room, self.size() - self.at);
      std::memcpy(to, self.tail.data() + (self.at - head - self.bytes), static_cast<size_t>(n));
    }
    self.at += n;
    return static_cast<size_t>(n);
  }
};

}  // namespace

Sample DirectUpload(const DirectTarget& target, const std::string& path, int64_t bytes) {
  constexpr char kBoundary[] = "bench-boundary-6b1f7c2e";
  UploadBody body;
  body.bytes = bytes;
  body.head =
      std::string("--") + kBoundary +
      "\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"metadata\"\r\n\r\n" +
      nlohmann::json{{"path", path}}.dump() + "\r\n--" + kBoundary +
      "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n\r\n";
  body.tail = std::string("\r\n--") + kBoundary + "--\r\n";
  DirectTarget with_type = target;
  with_type.headers.push_back(std::string("Content-Type: multipart/form-data; boundary=") +
                              kBoundary);
  Sample sample;
  Easy easy(with_type);
  int64_t answered = 0;
  easy.CountBody(&answered);
  easy.Set(CURLOPT_POST, 1L);
  easy.Set(CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
  easy.Set(CURLOPT_READFUNCTION, &UploadBody::Give);
  easy.Set(CURLOPT_READDATA, &body);
  easy.Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  const double start = Now();
  std::string failure = easy.Perform();
  sample.seconds = Now() - start;
  sample.items = bytes;
  if (!failure.empty()) sample.Fail(std::move(failure));
  return sample;
}

}  // namespace bridge::bench
