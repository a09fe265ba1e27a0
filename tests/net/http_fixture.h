// SPDX-License-Identifier: Apache-2.0
//
// A loop, a client on it, and matchers for failures.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bridge/base/clock.h"
#include "bridge/base/error.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/http.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/run_task.h"

namespace bridge {

inline absl::Status StatusOf(const absl::Status& status) { return status; }
template <class T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// A failure of this reason (a word of the catalogue without ERROR_REASON_).
MATCHER_P(FailsWith, reason, "") {
  const absl::Status status = StatusOf(arg);
  *result_listener << status.ToString();
  return !status.ok() && ReasonName(ReasonOf(status)) == reason;
}

MATCHER_P2(HasMetadata, key, value, "") {
  const std::map<std::string, std::string> metadata = MetadataOf(StatusOf(arg));
  const auto it = metadata.find(key);
  *result_listener << (it == metadata.end() ? "nothing" : it->second);
  return it != metadata.end() && it->second == value;
}

MATCHER_P(SaysInMessage, text, "") {
  const std::string message(StatusOf(arg).message());
  *result_listener << message;
  return message.find(text) != std::string::npos;
}

class HttpTest : public ::testing::Test {
 protected:
  // Starts a task on the loop whose end the test awaits later, and which it may cancel.
  class Running {
   public:
    template <class Body>
    Running(EventLoop& loop, Body body) : loop_(loop) {
      loop_.Post([this, body = std::move(body)]() mutable {
        Spawn(&cancel_, std::move(body), [this] { ended_.Raise(); });
      });
    }
    ~Running() { Await(); }
    void Cancel() {
      loop_.Post([this] { cancel_.Cancel(); });
    }
    void Await() { ended_.Await(); }

   private:
    EventLoop& loop_;
    CancelSource cancel_;
    Signal ended_;
  };

  absl::StatusOr<HttpResponse> Get(const std::string& url) { return Fetch({.url = url}); }
  absl::StatusOr<HttpResponse> Fetch(HttpRequest request, size_t limit = 1 << 20) {
    return RunTask(loop_, [&] { return bridge::Fetch(client_, std::move(request), limit); });
  }

  EventLoop loop_;
  HttpClient client_{loop_};
};

// The same on a clock that stands still: every timeout happens when the test says so.
class HttpFakeTimeTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  EventLoop loop_{clock_};
  HttpClient client_{loop_};
};

inline std::string Answer(const std::string& body, const std::string& headers = "") {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers +
         "\r\n" + body;
}

}  // namespace bridge
