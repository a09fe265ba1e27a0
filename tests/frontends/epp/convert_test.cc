// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/convert.h"

#include <map>
#include <string>

#include "frontends/epp/errors.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

using Map = std::map<std::string, std::string>;

TEST(EnvironmentOf, TakesWhatTheHostDoesNotCheck) {
  const Json env = {{"A", "x y"}, {"B", 5},       {"C", 1.5}, {"D", true},
                    {"E", false}, {"F", nullptr}, {"G", ""},  {"lower.dot-9", "v"}};
  EXPECT_EQ(*EnvironmentOf(&env, "env"), (Map{{"A", "x y"},
                                              {"B", "5"},
                                              {"C", "1.5"},
                                              {"D", "true"},
                                              {"E", "false"},
                                              {"G", ""},
                                              {"lower.dot-9", "v"}}));
  EXPECT_TRUE(EnvironmentOf(nullptr, "env")->empty());
}

TEST(EnvironmentOf, RefusesWhatNoEnvironmentHolds) {
  const Json bad[] = {{{"", "x"}},
                      {{"A=B", "x"}},
                      {{std::string("A\0", 2), "x"}},
                      {{"A", std::string("x\0", 2)}},
                      {{"A", Json::object()}},
                      {{"A", Json::array()}},
                      Json::array(),
                      "A=B"};
  for (const Json& env : bad) {
    const auto read = EnvironmentOf(&env, "env");
    ASSERT_FALSE(read.ok()) << env;
    EXPECT_EQ(ToEppError(read.status()).code, kConfigError);
  }
}

TEST(SetUser, TellsNamesFromNumbers) {
  sandbox::bridge::v1::User user;
  ASSERT_TRUE(SetUser("nobody", "user", &user).ok());
  EXPECT_EQ(user.name(), "nobody");
  ASSERT_TRUE(SetUser("0", "user", &user).ok());
  EXPECT_TRUE(user.has_ids());
  EXPECT_EQ(user.ids().uid(), 0u);
  EXPECT_FALSE(user.ids().has_gid());
  ASSERT_TRUE(SetUser("1000:0", "user", &user).ok());
  EXPECT_EQ(user.ids().uid(), 1000u);
  EXPECT_TRUE(user.ids().has_gid());
  EXPECT_EQ(user.ids().gid(), 0u);
  for (const char* bad : {"1000:", "1000:x", "a:1", "99999999999:1"}) {
    sandbox::bridge::v1::User other;
    EXPECT_FALSE(SetUser(bad, "user", &other).ok()) << bad;
  }
}

TEST(SignalOf, TakesNumbersAndNames) {
  EXPECT_EQ(*SignalOf(9, "signal"), 9);
  EXPECT_EQ(*SignalOf("TERM", "signal"), 15);
  EXPECT_EQ(*SignalOf("SIGINT", "signal"), 2);
  for (const Json& bad : {Json(0), Json(65), Json(-1), Json("term"), Json("9"), Json(true),
                          Json(9.5), Json(nullptr), Json("")}) {
    EXPECT_FALSE(SignalOf(bad, "signal").ok()) << bad;
  }
}

TEST(ModeOf, TakesBitsAndOctalText) {
  EXPECT_EQ(*ModeOf(420, "mode"), 0644u);
  EXPECT_EQ(*ModeOf("644", "mode"), 0644u);
  EXPECT_EQ(*ModeOf("0644", "mode"), 0644u);
  EXPECT_EQ(*ModeOf("0o7777", "mode"), 07777u);
  EXPECT_EQ(*ModeOf(0, "mode"), 0u);
  for (const Json& bad : {Json("rw-"), Json("888"), Json(""), Json(-1), Json(4096), Json("10000"),
                          Json(1.5), Json(true), Json(nullptr)}) {
    EXPECT_FALSE(ModeOf(bad, "mode").ok()) << bad;
  }
}

TEST(ToProto, KeepsNanoseconds) {
  const auto proto = ToProto(absl::Milliseconds(1500));
  EXPECT_EQ(proto.seconds(), 1);
  EXPECT_EQ(proto.nanos(), 500'000'000);
}

}  // namespace
}  // namespace bridge::epp
