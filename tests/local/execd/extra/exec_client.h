// SPDX-License-Identifier: Apache-2.0
//
// A client of `/v1/exec` written from docs/execd-extras.md, not from the daemon's code.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/clock.h"
#include "tests/local/execd/daemon_fixture.h"

namespace bridge::local::execd {

using Json = nlohmann::json;

inline constexpr int kStdout = 1, kStderr = 2, kStarted = 0x10, kExited = 0x11, kDrained = 0x12,
                     kHeartbeat = 0x13, kStdinAck = 0x14, kStdinClosed = 0x15, kError = 0x1f;

// The bytes of the page, not those of the daemon's own encoder.
inline std::string MakeFrame(int type, uint64_t offset, const std::string& payload) {
  std::string out(1, static_cast<char>(type));
  out.append(3, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(payload.size() >> shift);
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(offset >> shift);
  return out + payload;
}

// Puts frames together and checks their order and offsets.
class Story {
 public:
  explicit Story(int64_t out = 0, int64_t err = 0) : out_at_(out), err_at_(err) {}

  void Feed(std::string_view bytes) {
    buffer_ += bytes;
    while (buffer_.size() >= 16) {
      const auto number = [&](size_t at, size_t size) {
        uint64_t value = 0;
        for (size_t i = at; i < at + size; ++i)
          value = value << 8 | static_cast<uint8_t>(buffer_[i]);
        return value;
      };
      const size_t length = number(4, 4);
      if (buffer_.size() < 16 + length) return;
      Take(static_cast<uint8_t>(buffer_[0]), static_cast<int64_t>(number(8, 8)),
           buffer_.substr(16, length));
      buffer_.erase(0, 16 + length);
    }
  }

  Json started, exited, drained, error;
  std::string out, err;
  int heartbeats = 0;
  int64_t acked = 0;
  bool stdin_closed = false;
  bool done() const { return !drained.is_null() || !error.is_null(); }
  // What is in the buffer and is not a whole frame.
  const std::string& rest() const { return buffer_; }

 private:
  void Take(int type, int64_t offset, const std::string& payload) {
    EXPECT_FALSE(done()) << "a frame after the last one";
    if (type != kStarted) {
      EXPECT_TRUE(!started.is_null() || type == kError) << "STARTED comes first";
    }
    switch (type) {
      case kStdout:
        EXPECT_EQ(offset, out_at_ + static_cast<int64_t>(out.size()));
        EXPECT_FALSE(payload.empty());
        EXPECT_LE(payload.size(), 262144u);
        out += payload;
        break;
      case kStderr:
        EXPECT_EQ(offset, err_at_ + static_cast<int64_t>(err.size()));
        err += payload;
        break;
      case kStarted:
        EXPECT_TRUE(started.is_null());
        started = Json::parse(payload);
        break;
      case kExited:
        EXPECT_TRUE(exited.is_null());
        exited = Json::parse(payload);
        break;
      case kDrained:
        EXPECT_FALSE(exited.is_null());
        drained = Json::parse(payload);
        break;
      case kHeartbeat:
        ++heartbeats;
        break;
      case kStdinAck:
        EXPECT_GE(offset, acked);
        acked = offset;
        break;
      case kStdinClosed:
        stdin_closed = true;
        acked = offset;
        break;
      case kError:
        error = Json::parse(payload);
        break;
      default:
        ADD_FAILURE() << "frame type " << type;
    }
  }

  int64_t out_at_, err_at_;
  std::string buffer_;
};

class ExecTest : public testing::Test {
 protected:
  void SetUp() override { setenv("TMPDIR", testing::TempDir().c_str(), 1); }

  // Runs to the end in one HTTP stream.
  Story Run(const Json& request) {
    const auto answer = caller_.Post("/v1/exec", request.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.headers.Get("Content-Type"), "application/vnd.sandbox.frames.v1");
    Story story;
    story.Feed(answer.body);
    EXPECT_TRUE(story.done());
    EXPECT_EQ(story.rest(), "");
    return story;
  }
  Json Refused(const Json& request, int status) {
    const auto answer = caller_.Post("/v1/exec", request.dump());
    EXPECT_EQ(answer.status, status) << answer.body;
    return Json::parse(answer.body, nullptr, false);
  }
  // Starts a detached one without a stream.
  std::string Detach(Json request) {
    request["on_disconnect"] = "detach";
    request["stream"] = false;
    const auto answer = caller_.Post("/v1/exec", request.dump());
    EXPECT_EQ(answer.status, 201) << answer.body;
    return Json::parse(answer.body)["exec_id"];
  }
  Json Info(const std::string& id) {
    return Json::parse(caller_.Get("/v1/exec/" + id).body, nullptr, false);
  }
  template <typename Condition>
  Json WaitFor(const std::string& id, Condition condition) {
    const absl::Time end = absl::Now() + kLong;
    Json info = Info(id);
    while (!condition(info) && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(2));
      info = Info(id);
    }
    EXPECT_TRUE(condition(info)) << info;
    return info;
  }
  Story Read(const std::string& id, int64_t out, int64_t err) {
    const auto answer = caller_.Get("/v1/exec/" + id + "/output?stdout=" + std::to_string(out) +
                                    "&stderr=" + std::to_string(err));
    EXPECT_EQ(answer.status, 200) << answer.body;
    Story story(out, err);
    story.Feed(answer.body);
    return story;
  }

  std::unique_ptr<Daemon> daemon_ = StartDaemon();
  Caller caller_{*daemon_};
};

}  // namespace bridge::local::execd
