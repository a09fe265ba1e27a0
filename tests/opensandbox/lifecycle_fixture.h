// SPDX-License-Identifier: Apache-2.0
//
// A loop on a clock that stands still, an OpenSandbox in memory, and the client's parts on top.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "bridge/base/clock.h"
#include "bridge/net/event_loop.h"
#include "bridge/net/task_scope.h"
#include "bridge/opensandbox/caching_directory.h"
#include "bridge/opensandbox/daemon_finder.h"
#include "bridge/opensandbox/directory_group.h"
#include "bridge/opensandbox/lifecycle_client.h"
#include "tests/fakes/fake_opensandbox.h"
#include "tests/fakes/fake_time.h"
#include "tests/fakes/status_matchers.h"

namespace bridge {

class LifecycleFixture : public ::testing::Test {
 protected:
  static LifecycleClientOptions ClientOptions() {
    LifecycleClientOptions options;
    options.server = *ParseBaseUrl(FakeOpenSandbox::kUrl);
    options.random = [] { return 0.5; };
    return options;
  }

  explicit LifecycleFixture(CachingDirectoryOptions directory = {}, DaemonFinderOptions finder = {})
      : finder_(client_, fake_, finder), directory_(client_, finder_, tasks_, directory) {
    directories_.Add(loop_, directory_);
  }

  void TearDown() override {
    // What the calls left behind ends by itself, well before its own deadlines.
    RunInFakeTime(
        clock_, loop_,
        [this]() -> Task<bool> {
          co_await tasks_.Drain(loop_, absl::Minutes(5));
          co_return true;
        },
        absl::Milliseconds(250));
  }

  CallContext Context(absl::Duration time = absl::InfiniteDuration()) {
    return {.api_key = "CANARYKEY", .deadline = loop_.Now() + time};
  }
  template <class Body>
  auto Run(Body body) {
    return RunInFakeTime(clock_, loop_, std::move(body));
  }
  // Lets time pass for what the calls left behind.
  void Settle(absl::Duration time = absl::Minutes(5)) {
    auto body = [this, time]() -> Task<bool> { co_return co_await loop_.Sleep(time); };
    RunInFakeTime(clock_, loop_, body, absl::Milliseconds(250));
  }
  // Runs `f` where the tasks run.
  template <class F>
  void OnLoop(F f) {
    loop_.RunAndWait([&f] { f(); });
  }
  absl::Duration Elapsed() { return clock_.Monotonic(); }

  FakeClock clock_;
  EventLoop loop_{clock_};
  FakeOpenSandbox fake_{loop_};
  LifecycleClient client_{loop_, fake_, ClientOptions()};
  TaskScope tasks_;
  DaemonFinder finder_;
  CachingDirectory directory_;
  DirectoryGroup directories_;
};

}  // namespace bridge
