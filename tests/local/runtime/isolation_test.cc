// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/isolation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace bridge::local::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

// Do the words `wanted` follow each other in `args`?
bool Has(const std::vector<std::string>& args, const std::vector<std::string>& wanted) {
  return std::search(args.begin(), args.end(), wanted.begin(), wanted.end()) != args.end();
}

size_t IndexOf(const std::vector<std::string>& args, const std::string& word) {
  return static_cast<size_t>(std::find(args.begin(), args.end(), word) - args.begin());
}

RootPlan Plan(Isolation isolation) {
  RootPlan plan;
  plan.isolation = isolation;
  plan.disk = "/state/disk";
  plan.execd = "/host/execd";
  plan.bootstrap = "/host/bootstrap";
  plan.hostname = "0123456789ab";
  plan.disk_bytes = 1000;
  plan.binds = {{"/vol", "/data", false}, {"/ro", "/fixed", true}};
  return plan;
}

TEST(Isolation, Names) {
  for (const Isolation level : {Isolation::kOverlay, Isolation::kBwrap, Isolation::kNone}) {
    EXPECT_EQ(ParseIsolation(IsolationName(level)), level);
  }
  EXPECT_EQ(ParseIsolation("docker"), std::nullopt);
}

TEST(Bwrap, OverlayUsesTheMountedRootAndFewCapabilities) {
  const auto args = BwrapArguments(Plan(Isolation::kOverlay));
  EXPECT_TRUE(Has(args, {"--bind", "/state/disk/root", "/"}));
  EXPECT_TRUE(Has(args, {"--cap-drop", "ALL"}));
  EXPECT_THAT(args, Contains("CAP_SETUID"));
  EXPECT_THAT(args, Not(Contains("CAP_SYS_ADMIN")));
  EXPECT_THAT(args, Not(Contains("CAP_NET_ADMIN")));
  EXPECT_TRUE(Has(args, {"--bind", "/vol", "/data"}));
  EXPECT_TRUE(Has(args, {"--ro-bind", "/ro", "/fixed"}));
  EXPECT_TRUE(Has(args, {"--ro-bind", "/host/execd", "/opt/opensandbox/execd"}));
  EXPECT_TRUE(Has(args, {"--hostname", "0123456789ab"}));
  EXPECT_THAT(args, Contains("--unshare-pid"));
  EXPECT_THAT(args, Not(Contains("--unshare-net")));
  EXPECT_THAT(args, Contains("--die-with-parent"));
}

TEST(Bwrap, WithoutRootTheRootIsReadOnlyAndTheUserIsMapped) {
  const auto args = BwrapArguments(Plan(Isolation::kBwrap));
  EXPECT_TRUE(Has(args, {"--ro-bind-try", "/usr", "/usr"}));
  EXPECT_TRUE(Has(args, {"--unshare-user", "--uid", "0", "--gid", "0"}));
  EXPECT_TRUE(Has(args, {"--perms", "1777", "--size", "1000", "--tmpfs", "/tmp"}));
  for (const char* dir : {"/home", "/root", "/workspace", "/run"}) {
    EXPECT_TRUE(Has(args, {"--tmpfs", dir})) << dir;
  }
  EXPECT_FALSE(Has(args, {"--ro-bind-try", "/root", "/root"}));
  // What is mounted must be so before the root is closed.
  EXPECT_LT(IndexOf(args, "/data"), IndexOf(args, "--remount-ro"));
  EXPECT_THAT(args, Not(Contains("--cap-add")));
}

TEST(Bwrap, AnImageKeepsTheHostsNameResolution) {
  RootPlan plan = Plan(Isolation::kOverlay);
  EXPECT_FALSE(Has(BwrapArguments(plan), {"/etc/resolv.conf", "/etc/resolv.conf"}));
  plan.root = "/images/base";
  EXPECT_TRUE(Has(BwrapArguments(plan), {"/etc/resolv.conf", "/etc/resolv.conf"}));
}

TEST(Bwrap, KeptSandboxesDoNotDieWithTheServer) {
  RootPlan plan = Plan(Isolation::kOverlay);
  plan.die_with_parent = false;
  EXPECT_THAT(BwrapArguments(plan), Not(Contains("--die-with-parent")));
}

TEST(Launch, MasksTheHostsPrivatePlaces) {
  const auto flags = LaunchFlags(Plan(Isolation::kOverlay));
  EXPECT_THAT(flags, Contains("--lower=/"));
  EXPECT_THAT(flags, Contains("--disk_bytes=1000"));
  EXPECT_THAT(flags, Contains("--mask=/tmp"));
  EXPECT_THAT(flags, Contains("--mask=/root"));
  RootPlan image = Plan(Isolation::kOverlay);
  image.root = "/images/base";
  EXPECT_THAT(LaunchFlags(image), Not(Contains("--mask=/tmp")));
  EXPECT_THAT(LaunchFlags(Plan(Isolation::kBwrap)), IsEmpty());
}

TEST(HostMounts, AreDisksBelowTheRoot) {
  char name[] = "/var/isolation-test.XXXXXX";
  const bool writable = mkdtemp(name) != nullptr;
  const std::string dir = writable ? name : "/usr";
  const auto mounts = ParseHostMounts(
      "20 1 8:1 / / rw - ext4 /dev/a rw\n"
      "21 20 8:2 / " +
      dir +
      " rw,noatime shared:1 master:2 - xfs /dev/b rw\n"
      "22 20 0:5 / /proc rw - proc proc rw\n"
      "23 20 8:3 / /home rw - ext4 /dev/c rw\n"
      "24 20 8:4 / /tmp/x rw - ext4 /dev/d rw\n"
      "25 20 8:5 / /etc/hostname rw - ext4 /dev/e rw\n"
      "broken line\n");
  ASSERT_EQ(mounts.size(), 1u);
  EXPECT_EQ(mounts[0].target, dir);
  EXPECT_TRUE(mounts[0].read_only);
  if (writable) fs::remove(dir);
}

}  // namespace
}  // namespace bridge::local::runtime
