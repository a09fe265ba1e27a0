// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/state_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace bridge::local::lifecycle {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

SandboxRecord Full() {
  SandboxRecord record;
  record.id = "id-1";
  record.image = "python:3.12";
  record.root = "/";
  record.entrypoint = {"sh", "-c", "x"};
  record.env = {{"A", "1"}};
  record.metadata = {{"team", "core"}};
  record.extensions = {{"opensandbox.extensions.note", "x"}};
  record.resource_limits = {{"cpu", "1"}};
  record.platform = {"linux", "amd64"};
  record.volumes_to_delete = {"vol"};
  record.created_at = absl::FromUnixNanos(1795970796123456789);
  record.container_at = record.created_at + absl::Milliseconds(3);
  record.started_at = record.created_at + absl::Milliseconds(9);
  record.expires_at = record.created_at + absl::Hours(1);
  record.hostname = "0123456789ab";
  record.execd_port = 40123;
  record.process = {runtime::Isolation::kBwrap, 10, 20, 30, 40, {"/sys/fs/cgroup/x"}, {31, 32}};
  record.paused = true;
  record.ended = runtime::ExitStatus{3, 1795970797000000000};
  return record;
}

class StateDirTest : public ::testing::Test {
 protected:
  StateDirTest() {
    char name[] = "/tmp/state-dir-test.XXXXXX";
    base_ = mkdtemp(name);
  }
  ~StateDirTest() override { fs::remove_all(base_); }
  std::string base_;
};

TEST(Record, SurvivesTheTrip) {
  const SandboxRecord record = Full();
  const auto again = FromJson(Json::parse(ToJson(record).dump()));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(ToJson(*again).dump(), ToJson(record).dump());
  EXPECT_EQ(again->created_at, record.created_at) << "to the nanosecond";
  EXPECT_EQ(again->process.isolation, runtime::Isolation::kBwrap);
  EXPECT_THAT(again->process.stopped, ElementsAre(31, 32));
  EXPECT_EQ(again->ended->code, 3);
}

TEST(Record, WithoutTheOptionalParts) {
  SandboxRecord record = Full();
  record.platform.reset();
  record.expires_at.reset();
  record.ended.reset();
  const auto again = FromJson(ToJson(record));
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->platform || again->expires_at || again->ended);
}

TEST(Record, AnythingElseIsNone) {
  EXPECT_FALSE(FromJson(Json::parse("[]")).has_value());
  EXPECT_FALSE(FromJson(Json()).has_value());
  const Json good = ToJson(Full());
  for (const auto& [key, value] : good.items()) {
    if (key == "platform" || key == "expires_at" || key == "ended") continue;
    Json missing = good;
    missing.erase(key);
    EXPECT_FALSE(FromJson(missing).has_value()) << key;
    Json wrong = good;
    wrong[key] = nullptr;
    EXPECT_FALSE(FromJson(wrong).has_value()) << key;
  }
  Json other_version = good;
  other_version["version"] = 2;
  EXPECT_FALSE(FromJson(other_version).has_value());
}

TEST_F(StateDirTest, SavesLoadsAndRemoves) {
  const auto dir = StateDir::Open(base_ + "/a/b");
  ASSERT_TRUE(dir.ok()) << dir.status();
  struct stat s{};
  ASSERT_EQ(stat((base_ + "/a/b").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u) << "environments are in there";
  const SandboxRecord record = Full();
  ASSERT_TRUE((*dir)->MakeSandboxDir(record.id).ok());
  ASSERT_TRUE((*dir)->Save(record).ok());
  fs::create_directories((*dir)->SandboxDir("stray"));
  std::vector<std::string> strays;
  const auto records = (*dir)->Load(&strays);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].id, "id-1");
  EXPECT_THAT(strays, ElementsAre("stray"));
  (*dir)->Remove("id-1");
  strays.clear();
  EXPECT_THAT((*dir)->Load(&strays), IsEmpty());
}

TEST_F(StateDirTest, HasOneOwner) {
  auto first = StateDir::Open(base_ + "/x");
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(StateDir::Open(base_ + "/x").status()));
  first->reset();
  EXPECT_TRUE(StateDir::Open(base_ + "/x").ok());
}

TEST_F(StateDirTest, TemporaryOnesSweepTheAbandoned) {
  const std::string parent = base_ + "/temporary";
  int swept = 0;
  const auto sweep = [&swept](const StateDir&) { ++swept; };
  auto living = StateDir::OpenTemporary(parent, sweep);
  ASSERT_TRUE(living.ok()) << living.status();
  fs::create_directories(parent + "/dead/sandboxes");
  std::ofstream(parent + "/dead/lock") << "";
  fs::create_directories(parent + "/being-made");
  auto second = StateDir::OpenTemporary(parent, sweep);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(swept, 1);
  EXPECT_FALSE(fs::exists(parent + "/dead"));
  EXPECT_TRUE(fs::exists(parent + "/being-made"));
  const std::string path = (*living)->path();
  EXPECT_TRUE(fs::exists(path));
  living->reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(StateDirTest, DistrustsAParentThatOthersCanWrite) {
  const std::string parent = base_ + "/shared";
  fs::create_directories(parent);
  chmod(parent.c_str(), 0777);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(StateDir::OpenTemporary(parent, [](const StateDir&) {}).status()));
  fs::create_directory_symlink(base_, base_ + "/link");
  EXPECT_FALSE(StateDir::OpenTemporary(base_ + "/link", [](const StateDir&) {}).ok());
}

}  // namespace
}  // namespace bridge::local::lifecycle
