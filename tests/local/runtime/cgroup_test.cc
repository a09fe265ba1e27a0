// SPDX-License-Identifier: Apache-2.0
//
// On directories that look like control groups; sandbox_process_test.cc uses real ones.
#include "bridge/local/runtime/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace bridge::local::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CgroupTest : public ::testing::Test {
 protected:
  CgroupTest() {
    char name[] = "/tmp/cgroup-test.XXXXXX";
    mount_ = mkdtemp(name);
  }
  ~CgroupTest() override { fs::remove_all(mount_); }

  void Touch(const std::string& path, const std::string& text = "") {
    fs::create_directories(fs::path(mount_ + path).parent_path());
    std::ofstream(mount_ + path) << text;
  }
  std::string Read(const std::string& path) {
    std::ifstream in(mount_ + path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string mount_;
};

TEST_F(CgroupTest, FindsVersionTwo) {
  Touch("/cgroup.controllers");
  const CgroupRoots roots = CgroupRoots::Find(mount_);
  EXPECT_EQ(roots.unified, mount_);
  EXPECT_EQ(roots.freezer, "");
}

TEST_F(CgroupTest, FindsVersionOneAndAHybrid) {
  Touch("/memory/cgroup.procs");
  Touch("/freezer/cgroup.procs");
  Touch("/unified/cgroup.controllers");
  const CgroupRoots roots = CgroupRoots::Find(mount_);
  EXPECT_EQ(roots.unified, mount_ + "/unified");
  EXPECT_EQ(roots.memory, mount_ + "/memory");
  EXPECT_EQ(roots.freezer, mount_ + "/freezer");
  EXPECT_EQ(roots.cpu, "");
}

TEST_F(CgroupTest, FindsNothingWhereThereIsNothing) {
  const CgroupRoots roots = CgroupRoots::Find(mount_);
  Cgroup group = Cgroup::Create(roots, "x", {});
  EXPECT_THAT(group.dirs(), IsEmpty());
  EXPECT_FALSE(group.can_freeze());
  EXPECT_TRUE(group.Join(getpid())) << "nothing to join";
  group.Kill();
  EXPECT_TRUE(group.Remove());
}

TEST_F(CgroupTest, WritesTheLimitsOfVersionTwo) {
  Touch("/cgroup.controllers");
  Touch("/cgroup.subtree_control");
  const std::string dir = "/local-opensandbox/x";
  for (const char* file : {"/memory.max", "/cpu.max", "/pids.max", "/cgroup.freeze"}) {
    Touch(dir + file);
  }
  const Cgroup group = Cgroup::Create(CgroupRoots::Find(mount_), "x",
                                      {.memory_bytes = 1 << 20, .cpu_millis = 1500, .pids = 7});
  EXPECT_THAT(group.dirs(), ElementsAre(mount_ + dir));
  EXPECT_EQ(Read(dir + "/memory.max"), "1048576");
  EXPECT_EQ(Read(dir + "/cpu.max"), "150000 100000");
  EXPECT_EQ(Read(dir + "/pids.max"), "7");
  EXPECT_TRUE(group.can_freeze());
}

TEST_F(CgroupTest, WritesTheLimitsOfVersionOne) {
  for (const char* controller : {"memory", "cpu", "pids", "freezer"}) {
    Touch("/" + std::string(controller) + "/cgroup.procs");
  }
  Touch("/memory/local-opensandbox/x/memory.limit_in_bytes");
  Touch("/cpu/local-opensandbox/x/cpu.cfs_quota_us");
  Touch("/cpu/local-opensandbox/x/cpu.cfs_period_us");
  Touch("/freezer/local-opensandbox/x/freezer.state");
  const Cgroup group =
      Cgroup::Create(CgroupRoots::Find(mount_), "x", {.memory_bytes = 1 << 20, .cpu_millis = 500});
  EXPECT_EQ(group.dirs().size(), 4u);
  EXPECT_EQ(Read("/memory/local-opensandbox/x/memory.limit_in_bytes"), "1048576");
  EXPECT_EQ(Read("/cpu/local-opensandbox/x/cpu.cfs_quota_us"), "50000");
  EXPECT_TRUE(group.can_freeze());
}

TEST_F(CgroupTest, FreezesByEitherFile) {
  Touch("/v2/cgroup.freeze");
  Touch("/v2/cgroup.events", "populated 1\nfrozen 1\n");
  Cgroup unified = Cgroup::Adopt({mount_ + "/v2", mount_ + "/gone"});
  EXPECT_THAT(unified.dirs(), ElementsAre(mount_ + "/v2"));
  EXPECT_TRUE(unified.Freeze().ok());
  EXPECT_EQ(Read("/v2/cgroup.freeze"), "1");
  EXPECT_TRUE(unified.Thaw().ok());
  EXPECT_EQ(Read("/v2/cgroup.freeze"), "0");

  Touch("/v1/freezer.state");
  Cgroup one = Cgroup::Adopt({mount_ + "/v1"});
  EXPECT_TRUE(one.Freeze().ok());
  EXPECT_EQ(Read("/v1/freezer.state"), "FROZEN");
  one.Kill();
  EXPECT_EQ(Read("/v1/freezer.state"), "THAWED") << "or the kill would wait for ever";
}

TEST_F(CgroupTest, RemovesGroupsAndTheirParentWithTheLast) {
  fs::create_directories(mount_ + "/local-opensandbox/a");
  fs::create_directories(mount_ + "/local-opensandbox/b");
  EXPECT_TRUE(Cgroup::Adopt({mount_ + "/local-opensandbox/a"}).Remove());
  EXPECT_TRUE(fs::exists(mount_ + "/local-opensandbox"));
  EXPECT_TRUE(Cgroup::Adopt({mount_ + "/local-opensandbox/b"}).Remove());
  EXPECT_FALSE(fs::exists(mount_ + "/local-opensandbox"));
}

TEST(CgroupDirs, OfAnId) {
  CgroupRoots roots;
  roots.unified = "/u";
  roots.pids = "/p";
  EXPECT_THAT(Cgroup::DirsOf(roots, "x"),
              ElementsAre("/u/local-opensandbox/x", "/p/local-opensandbox/x"));
}

}  // namespace
}  // namespace bridge::local::runtime
