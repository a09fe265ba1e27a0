// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/process_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "tests/local/execd/daemon_fixture.h"

namespace bridge::local::execd {
namespace {

using Json = nlohmann::json;

class ProcessListTest : public testing::Test {
 protected:
  Json List(const std::string& query = "") {
    const auto answer = caller_.Get("/v1/processes" + query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return Json::parse(answer.body);
  }
  // A sleeping shell with a child, by pid.
  int64_t Start(const std::string& shell) {
    const auto answer = caller_.Post(
        "/v1/exec", Json{{"shell", shell}, {"on_disconnect", "detach"}, {"stream", false}}.dump());
    EXPECT_EQ(answer.status, 201);
    const Json started = Json::parse(answer.body);
    id_ = started["exec_id"];
    return started["pid"];
  }
  std::string Signal(const Json& request, int status) {
    const auto answer = caller_.Post("/v1/signal", request.dump());
    EXPECT_EQ(answer.status, status) << answer.body;
    return Json::parse(answer.body).value("code", "");
  }
  Json Outcome() {
    const absl::Time end = absl::Now() + kLong;
    while (absl::Now() < end) {
      const Json info = Json::parse(caller_.Get("/v1/exec/" + id_).body);
      if (info["running"] == false) return info["outcome"];
      absl::SleepFor(absl::Milliseconds(2));
    }
    return {};
  }

  std::string id_;
  std::unique_ptr<Daemon> daemon_ = StartDaemon();
  Caller caller_{*daemon_};
};

TEST_F(ProcessListTest, ShowsWhatRuns) {
  const absl::Time before = absl::Now();
  const int64_t pid = Start("exec sleep 1000");
  Json list = List("?pid=" + std::to_string(pid));
  ASSERT_EQ(list["processes"].size(), 1u);
  const Json process = list["processes"][0];
  EXPECT_EQ(process["pid"], pid);
  EXPECT_EQ(process["ppid"], getpid());
  EXPECT_EQ(process["pgid"], pid);
  EXPECT_EQ(process["uid"], geteuid());
  EXPECT_EQ(process["self"], false);
  EXPECT_GE(process["threads"], 1);
  EXPECT_FALSE(process["cmdline_b64"].empty());
  std::string argument;
  ASSERT_TRUE(absl::Base64Unescape(process["cmdline_b64"][1].get<std::string>(), &argument));
  EXPECT_TRUE(argument == "-c" || argument == "1000") << argument;  // before or after the exec
  absl::Time started;
  std::string error;
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, process["started_at"].get<std::string>(),
                              &started, &error));
  EXPECT_LT(absl::AbsDuration(started - before), absl::Seconds(5));
  EXPECT_EQ(list["clock_ticks_per_second"], sysconf(_SC_CLK_TCK));
  EXPECT_EQ(list["boot_id"].get<std::string>().size(), 36u);
}

TEST_F(ProcessListTest, AllOfThemInOrder) {
  const Json processes = List()["processes"];
  int64_t before = 0;
  bool self = false;
  for (const Json& process : processes) {
    EXPECT_GT(process["pid"], before);
    before = process["pid"];
    if (process["self"] == true) {
      self = true;
      EXPECT_EQ(process["pid"], getpid());
    }
  }
  EXPECT_TRUE(self);
  EXPECT_EQ(List("?pid=2147483646")["processes"].size(), 0u);
  EXPECT_EQ(caller_.Get("/v1/processes?pid=x").status, 400);
  EXPECT_EQ(caller_.Get("/v1/processes?all=1").status, 400);
}

TEST_F(ProcessListTest, SignalsAProcess) {
  const int64_t pid = Start("exec sleep 1000");
  EXPECT_EQ(Signal({{"pid", pid}, {"signal", 0}}, 200), "");
  EXPECT_EQ(Signal({{"pid", pid}, {"signal", "SIGTERM"}}, 200), "");
  EXPECT_EQ(Outcome()["signal_name"], "SIGTERM");
  EXPECT_EQ(Signal({{"pid", pid}, {"signal", 0}}, 404), "NOT_FOUND");
}

TEST_F(ProcessListTest, SignalsAGroup) {
  const int64_t pid = Start("sleep 1000 & sleep 1000 & wait");
  EXPECT_EQ(Signal({{"pgid", pid}, {"signal", "KILL"}}, 200), "");
  EXPECT_EQ(Outcome()["signal_name"], "SIGKILL");
  const absl::Time end = absl::Now() + kLong;
  bool gone = false;
  while (!gone && absl::Now() < end) {
    gone = true;
    const Json list = List();
    for (const Json& process : list["processes"]) {
      gone = gone && (process["pgid"] != pid || process["state"] == "Z");
    }
  }
  EXPECT_TRUE(gone);
  EXPECT_EQ(Signal({{"pgid", pid}, {"signal", 0}}, 404), "NOT_FOUND");
}

TEST_F(ProcessListTest, NotAnotherProcessWithTheSamePid) {
  const int64_t pid = Start("exec sleep 1000");
  const int64_t ticks = List("?pid=" + std::to_string(pid))["processes"][0]["start_time_ticks"];
  EXPECT_EQ(Signal({{"pid", pid}, {"signal", 0}, {"start_time_ticks", ticks + 1}}, 404),
            "NOT_FOUND");
  EXPECT_EQ(Signal({{"pid", pid}, {"signal", "KILL"}, {"start_time_ticks", ticks}}, 200), "");
}

TEST_F(ProcessListTest, Refusals) {
  EXPECT_EQ(Signal({{"pid", getpid()}, {"signal", "KILL"}}, 403), "PERMISSION_DENIED");
  EXPECT_EQ(Signal({{"pgid", getpgrp()}, {"signal", "KILL"}}, 403), "PERMISSION_DENIED");
  EXPECT_EQ(Signal({{"pid", 1}, {"signal", 0}}, 400), "INVALID_ARGUMENT");
  EXPECT_EQ(Signal({{"signal", 0}}, 400), "INVALID_ARGUMENT");
  EXPECT_EQ(Signal({{"pid", 5}, {"pgid", 5}, {"signal", 0}}, 400), "INVALID_ARGUMENT");
  EXPECT_EQ(Signal({{"pid", 5}, {"signal", 65}}, 400), "INVALID_ARGUMENT");
  EXPECT_EQ(Signal({{"pid", 5}}, 400), "INVALID_ARGUMENT");
}

}  // namespace
}  // namespace bridge::local::execd
