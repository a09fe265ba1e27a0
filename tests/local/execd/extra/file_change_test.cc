// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/file_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/local/execd/daemon_fixture.h"
#include "tests/local/execd/folder_fixture.h"

namespace bridge::local::execd {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class FileChangeTest : public FolderTest {
 protected:
  static std::string Quoted(const std::string& path) { return http::PercentEncode(path, "/"); }
  Json Post(const std::string& target, int status) {
    const auto answer = caller_.Call("POST", target, "");
    EXPECT_EQ(answer.status, status) << answer.body;
    return Json::parse(answer.body, nullptr, false);
  }
  Json Move(const std::string& from, const std::string& to, const std::string& query = "",
            int status = 200) {
    return Post(
        "/v1/file/move?source=" + Quoted(At(from)) + "&destination=" + Quoted(At(to)) + query,
        status);
  }
  Json Set(const std::string& name, const std::string& query, int status = 200) {
    return Post("/v1/file/attributes?path=" + Quoted(At(name)) + query, status);
  }
  struct stat Stat(const std::string& name) const {
    struct stat info = {};
    EXPECT_EQ(lstat(At(name).c_str(), &info), 0) << name;
    return info;
  }

  std::unique_ptr<Daemon> daemon_ = StartDaemon();
  Caller caller_{*daemon_};
};

TEST_F(FileChangeTest, AMoveReplacesOnlyWhenAsked) {
  Write("$a", "a");
  Write("b", "b");
  EXPECT_EQ(Move("$a", "b", "", 409)["code"], "EXISTS");
  EXPECT_EQ(Read("b"), "b");
  EXPECT_EQ(Move("$a", "b", "&overwrite=1")["replaced"], true);
  EXPECT_EQ(Read("b"), "a");
  EXPECT_EQ(Move("b", "c", "&overwrite=1")["replaced"], false);
  EXPECT_EQ(Move("c", "x/y/d", "", 404)["code"], "NOT_FOUND");
  EXPECT_EQ(Move("c", "x/y/d", "&parents=1")["replaced"], false);
  EXPECT_EQ(Stat("x").st_mode & 07777, 0755u);
  EXPECT_EQ(Move("gone", "e", "&parents=1", 404)["code"], "NOT_FOUND");
}

TEST_F(FileChangeTest, AMoveThatFailsLeavesNoParents) {
  fs::create_directories(At("d/in"));
  EXPECT_EQ(Move("d", "d/in/x/y/z", "&parents=1", 400)["field"], "destination");
  EXPECT_TRUE(fs::is_empty(At("d/in")));
  Write("a", "a");
  Move("a", "x/y/" + std::string(256, 'n'), "&parents=1", 400);
  Move("a", "x/" + std::string(256, 'n') + "/z", "&parents=1", 400);
  EXPECT_FALSE(fs::exists(At("x")));
}

TEST_F(FileChangeTest, ADirectoryIsNeverReplaced) {
  fs::create_directories(At("d/in"));
  fs::create_directory(At("empty"));
  Write("f", "f");
  for (const std::string source : {"f", "d"}) {
    EXPECT_EQ(Move(source, "empty", "", 409)["code"], "EXISTS");
    EXPECT_EQ(Move(source, "empty", "&overwrite=1", 409)["code"], "IS_A_DIRECTORY");
  }
  EXPECT_EQ(Move("d", "f", "&overwrite=1", 409)["code"], "NOT_A_DIRECTORY");
  EXPECT_EQ(Move("d", "d/in/x", "", 400)["field"], "destination");
  EXPECT_EQ(Move("d", "e")["replaced"], false);
  EXPECT_TRUE(fs::is_directory(At("e/in")));
}

// As on a file system that does not know RENAME_NOREPLACE.
TEST_F(FileChangeTest, ARenameInStepsReplacesNothing) {
  Write("a", "a");
  Write("b", "b");
  fs::create_directories(At("d/in"));
  fs::create_directory(At("empty"));
  ASSERT_EQ(symlink("a", At("link").c_str()), 0);
  const auto rename = [this](const char* from, const char* to) {
    return extra::RenameInSteps(At(from), At(to));
  };
  for (const char* from : {"a", "d", "link"}) {
    for (const char* to : {"b", "empty"}) {
      EXPECT_EQ(rename(from, to), EEXIST) << from << " " << to;
    }
  }
  EXPECT_EQ(rename("d", "d/in/x"), EINVAL);
  EXPECT_FALSE(fs::exists(At("d/in/x"))) << "nothing is left behind";
  EXPECT_EQ(rename("gone", "x"), ENOENT);
  EXPECT_EQ(rename("a", "a2"), 0);
  EXPECT_EQ(rename("d", "d2"), 0);
  EXPECT_EQ(rename("link", "link2"), 0);
  EXPECT_EQ(Read("a2"), "a");
  EXPECT_EQ(Stat("a2").st_nlink, 1u);
  EXPECT_TRUE(fs::is_directory(At("d2/in")));
  EXPECT_EQ(fs::read_symlink(At("link2")), "a");
  EXPECT_FALSE(fs::exists(At("a")) || fs::exists(At("d")) || fs::is_symlink(At("link")));
}

TEST_F(FileChangeTest, AttributesAreSetExactly) {
  Write("$f", "x");
  const Json answer = Set("$f", "&mode=4751&modified_at=2001-09-09T01:46:40.123456789Z");
  EXPECT_EQ(answer["mode"], 04751);
  EXPECT_EQ(answer["modified_at"], "2001-09-09T01:46:40.123456789Z");
  EXPECT_EQ(Stat("$f").st_mode & 07777, 04751u);
  EXPECT_EQ(Stat("$f").st_mtim.tv_nsec, 123456789);
  EXPECT_EQ(Set("$f", "")["mode"], 04751) << "what is not said stays";
  EXPECT_EQ(Set("$f", "&mode=0")["mode"], 0);
  EXPECT_EQ(Set("$f", "&mode=8", 400)["field"], "mode");
  EXPECT_EQ(Set("$f", "&owner=no-such-user", 400)["field"], "owner");
  EXPECT_EQ(Set("$f", "&modified_at=x", 400)["field"], "modified_at");
  EXPECT_EQ(Set("gone", "&mode=0", 404)["code"], "NOT_FOUND");
  if (geteuid() != 0) return;
  EXPECT_EQ(Set("$f", "&owner=nobody&group=2345&mode=6755")["owner"], "nobody");
  EXPECT_EQ(Stat("$f").st_gid, 2345u);
  EXPECT_EQ(Stat("$f").st_mode & 07777, 06755u) << "giving it away takes special bits from it";
}

TEST_F(FileChangeTest, ALinkIsFollowedOnlyWhenAsked) {
  Write("f", "x");
  ASSERT_EQ(chmod(At("f").c_str(), 0600), 0);
  ASSERT_EQ(symlink("f", At("link").c_str()), 0);
  ASSERT_EQ(symlink("nowhere", At("broken").c_str()), 0);
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  const time_t before = Stat("link").st_mtim.tv_sec;
  const std::string all = "&mode=777&owner=0&modified_at=2001-09-09T01:46:40Z";
  for (const char* link : {"link", "broken"}) EXPECT_EQ(Set(link, all, 409)["code"], "IS_A_LINK");
  EXPECT_EQ(Stat("f").st_mode & 07777, 0600u);
  EXPECT_EQ(Stat("link").st_mtim.tv_sec, before);
  EXPECT_EQ(Set("link", "&mode=640&follow=1")["type"], "file");
  EXPECT_EQ(Stat("f").st_mode & 07777, 0640u);
  EXPECT_EQ(Set("broken", "&mode=640&follow=1", 404)["code"], "NOT_FOUND");
  EXPECT_EQ(Set("pipe", "&mode=640")["type"], "other") << "without opening it";
}

}  // namespace
}  // namespace bridge::local::execd
