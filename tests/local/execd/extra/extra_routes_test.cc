// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/extra_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/local/execd/daemon_fixture.h"

namespace bridge::local::execd {
namespace {

TEST(ExtraRoutes, SayWhatTheyAre) {
  const auto daemon = StartDaemon({.habits = kHabits110});
  const auto answer = Caller(*daemon).Get("/v1/capabilities");
  EXPECT_EQ(answer.status, 200);
  const auto json = nlohmann::json::parse(answer.body);
  EXPECT_EQ(json["server"], "sandbox-bridge-execd");
  EXPECT_EQ(json["compat"], "1.1.0");
  std::set<std::string> names;
  for (const auto& feature : json["features"]) {
    names.insert(feature["name"]);
    EXPECT_EQ(feature["version"], 1);
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"exec", "exec.id", "exec.ws", "signal", "processes", "file.read",
                                   "file.write", "file.attributes", "file.move", "watch"}));
}

TEST(ExtraRoutes, WantTheToken) {
  const auto daemon = StartDaemon({.access_token = "tok"});
  const Caller caller(*daemon);
  for (const char* target : {"/v1/capabilities", "/v1/exec", "/v1/processes"}) {
    EXPECT_EQ(caller.Get(target).status, 401) << target;
    EXPECT_EQ(caller.Get(target, {{"X-EXECD-ACCESS-TOKEN", "tok"}}).status, 200) << target;
  }
}

}  // namespace
}  // namespace bridge::local::execd
