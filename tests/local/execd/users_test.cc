// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bridge::local::execd {
namespace {

using ::testing::ElementsAre;

UserDatabase Sample() {
  return UserDatabase(
      "root:x:0:0:root:/root:/bin/bash\n"
      "# a comment\n"
      "\n"
      "broken line\n"
      "bad:x:no:1::/:\n"
      "dev:x:1000:1001:Dev,,,:/home/dev:/bin/sh\n"
      "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
      "root:x:0:\n"
      "dev:x:1001:\n"
      "docker:x:999:dev,root\n"
      "again:x:1001:dev\n"
      "nogroup:x:65534:\n"
      "short:x\n");
}

TEST(UserDatabase, FindsAccounts) {
  const UserDatabase users = Sample();
  ASSERT_NE(users.FindUser("dev"), nullptr);
  EXPECT_EQ(users.FindUser("dev")->uid, 1000u);
  EXPECT_EQ(users.FindUser("dev")->gid, 1001u);
  EXPECT_EQ(users.FindUser("dev")->home, "/home/dev");
  ASSERT_NE(users.FindUser(65534), nullptr);
  EXPECT_EQ(users.FindUser(65534)->name, "nobody");
  EXPECT_EQ(users.FindUser("1000"), nullptr);
  EXPECT_EQ(users.FindUser("bad"), nullptr);
  EXPECT_EQ(users.FindUser(7), nullptr);
}

TEST(UserDatabase, NamesOrNumbers) {
  const UserDatabase users = Sample();
  EXPECT_EQ(users.UserName(0), "root");
  EXPECT_EQ(users.UserName(4242), "4242");
  EXPECT_EQ(users.GroupName(999), "docker");
  EXPECT_EQ(users.GroupName(1001), "dev");
  EXPECT_EQ(users.GroupName(4242), "4242");
  EXPECT_EQ(users.FindGroup("docker"), 999u);
  EXPECT_EQ(users.FindGroup("short"), std::nullopt);
}

TEST(UserDatabase, GroupsOfAnAccount) {
  const UserDatabase users = Sample();
  EXPECT_THAT(users.GroupsOf(*users.FindUser("dev")), ElementsAre(1001, 999));
  EXPECT_THAT(users.GroupsOf(*users.FindUser("root")), ElementsAre(0, 999));
  EXPECT_THAT(users.GroupsOf(*users.FindUser("nobody")), ElementsAre(65534));
}

TEST(UserDatabase, EmptyFiles) {
  const UserDatabase users("", "");
  EXPECT_EQ(users.FindUser("root"), nullptr);
  EXPECT_EQ(users.UserName(0), "0");
}

}  // namespace
}  // namespace bridge::local::execd
