// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/user_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bridge/base/error.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr char kPasswd[] =
    "root:x:0:0:root:/root:/bin/bash\n"
    "\n"
    "# not an account\n"
    "short:x:7:7\n"
    "odd:x:seven:7::/odd:\n"
    "agent:x:1000:1001:An Agent,,,:/home/agent:/bin/bash\n"
    "agent:x:5:5::/other:/bin/sh\n"
    "last:x:33:33:www:/var/www:/bin/false";  // no line end

TEST(FindAccount, ByNameAndByNumber) {
  EXPECT_EQ(FindAccount(kPasswd, "agent")->uid, 1000u);
  EXPECT_EQ(FindAccount(kPasswd, 33)->home, "/var/www");
  EXPECT_EQ(FindAccount(kPasswd, "root")->gid, 0u);
  for (const char* name : {"", "nobody", "short", "odd", "# not an account"}) {
    EXPECT_FALSE(FindAccount(kPasswd, name).has_value()) << name;
  }
  EXPECT_FALSE(FindAccount("", "root").has_value());
}

TEST(ResolveUser, ANameBringsItsGroupsAndItsHome) {
  const auto user = ResolveUser({.name = "agent"}, kPasswd);
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->uid, 1000u);
  EXPECT_FALSE(user->gid.has_value()) << "a gid would take away its supplementary groups";
  EXPECT_THAT(user->env, ElementsAre(Pair("HOME", "/home/agent"), Pair("USER", "agent"),
                                     Pair("LOGNAME", "agent")));
}

TEST(ResolveUser, AnUnknownNameIsAnError) {
  const auto user = ResolveUser({.name = "nobody-here"}, kPasswd);
  EXPECT_EQ(ReasonOf(user.status()), ErrorReason::ERROR_REASON_UNKNOWN_USER);
}

TEST(ResolveUser, AUidWithoutAnAccountNeverGetsRootsGroup) {
  const auto user = ResolveUser({.uid = 4242}, kPasswd);
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->gid, 4242u);
  EXPECT_TRUE(user->env.empty());
}

TEST(ResolveUser, ZeroIsAUser) {
  const auto user = ResolveUser({.uid = 0, .gid = 5}, kPasswd);
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->uid, 0u);
  EXPECT_EQ(user->gid, 5u);
  EXPECT_FALSE(ResolveUser({}, kPasswd)->uid.has_value());
}

}  // namespace
}  // namespace bridge
