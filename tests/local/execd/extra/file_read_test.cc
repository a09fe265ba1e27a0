// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/file_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bridge/local/execd/extra/failure.h"
#include "tests/local/execd/daemon_fixture.h"
#include "tests/local/execd/folder_fixture.h"

namespace bridge::local::execd {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FileReadTest : public FolderTest {
 protected:
  http::Response Get(const std::string& route, const std::string& path,
                     const std::string& query = "") const {
    return caller_.Get(route + "?path=" + http::PercentEncode(path, "/") + query);
  }
  std::string CodeOf(const http::Response& answer) const {
    return std::to_string(answer.status) + " " +
           Json::parse(answer.body, nullptr, false).value("code", "?");
  }
  std::vector<std::string> Paths(const http::Response& answer) const {
    std::vector<std::string> paths;
    for (const Json& entry : Json::parse(answer.body)) {
      paths.push_back(entry.value("path", "no path"));
    }
    return paths;
  }

  std::unique_ptr<Daemon> daemon_ = StartDaemon();
  Caller caller_{*daemon_};
};

TEST_F(FileReadTest, BytesWholeAndInPart) {
  std::string content;
  for (int i = 0; i < 700'003; ++i) content += static_cast<char>(i * 31);
  Write("f", content);
  EXPECT_TRUE(Get("/v1/file", At("f")).body == content);
  EXPECT_TRUE(Get("/v1/file", At("f"), "&offset=262143&length=300000").body ==
              content.substr(262'143, 300'000));
  EXPECT_TRUE(Get("/v1/file", At("f"), "&offset=700002&length=9").body == content.substr(700'002));
  EXPECT_EQ(Get("/v1/file", At("f"), "&offset=700003").body, "");
  EXPECT_EQ(Get("/v1/file", At("f"), "&offset=9000000&length=1").body, "");
  EXPECT_EQ(Get("/v1/file", At("f"), "&length=0").body, "");
  Write("empty", "");
  EXPECT_EQ(Get("/v1/file", At("empty")).status, 200);
  EXPECT_EQ(Get("/v1/file", At("empty"), "&offset=1").body, "");
}

TEST_F(FileReadTest, ASparseFileOfNoBlocksHasItsZeros) {
  Write("sparse", "");
  fs::resize_file(At("sparse"), 1 << 20);
  EXPECT_TRUE(Get("/v1/file", At("sparse")).body == std::string(1 << 20, '\0'));
  EXPECT_EQ(Get("/v1/file", At("sparse"), "&offset=1048570&length=100").body.size(), 6u);
}

TEST_F(FileReadTest, MadeUpFilesAreReadToTheirEnd) {
  std::ifstream in("/proc/version", std::ios::binary);
  const std::string version{std::istreambuf_iterator<char>(in), {}};
  ASSERT_FALSE(version.empty());
  const auto answer = Get("/v1/file", "/proc/version");
  EXPECT_EQ(answer.body, version);
  EXPECT_EQ(Json::parse(*answer.headers.Get("Sandbox-File-Info"))["size"], 0);
  EXPECT_EQ(Get("/v1/file", "/proc/version", "&offset=6&length=4").body, version.substr(6, 4));
  EXPECT_EQ(Get("/v1/file", "/proc/version", "&offset=100000").body, "");
  // Claims 4096 bytes and has a few; not every kernel has it.
  const std::string flag = "/sys/kernel/mm/transparent_hugepage/use_zero_page";
  if (!fs::exists(flag)) return;
  std::ifstream few(flag, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(few), {}};
  EXPECT_EQ(Get("/v1/file", flag).body, bytes);
}

TEST_F(FileReadTest, DescribesWhatIsRead) {
  Write("f", "12345");
  chmod(At("f").c_str(), 04750);
  fs::create_symlink("f", At("link"));
  const auto answer = Get("/v1/file", At("link"));
  EXPECT_EQ(answer.body, "12345");
  EXPECT_EQ(*answer.headers.Get("Content-Length"), "5");
  const Json info = Json::parse(*answer.headers.Get("Sandbox-File-Info"));
  EXPECT_EQ(info["type"], "file");
  EXPECT_EQ(info["mode"], 04750);
  EXPECT_EQ(info["uid"], geteuid());
  EXPECT_FALSE(info.contains("path"));
}

TEST_F(FileReadTest, WhatIsNoFileIsNotRead) {
  mkfifo(At("pipe").c_str(), 0600);
  EXPECT_EQ(CodeOf(Get("/v1/file", At("pipe"))), "409 NOT_A_FILE");
  EXPECT_EQ(CodeOf(Get("/v1/file", "/dev/zero")), "409 NOT_A_FILE");
  EXPECT_EQ(CodeOf(Get("/v1/file", root_)), "409 IS_A_DIRECTORY");
  EXPECT_EQ(CodeOf(Get("/v1/file", At("none"))), "404 NOT_FOUND");
  Write("f", "");
  EXPECT_EQ(CodeOf(Get("/v1/file", At("f/g"))), "409 NOT_A_DIRECTORY");
  EXPECT_EQ(CodeOf(Get("/v1/file", "relative")), "400 INVALID_ARGUMENT");
  EXPECT_EQ(CodeOf(Get("/v1/file", At("f"), "&offset=-1")), "400 INVALID_ARGUMENT");
}

TEST_F(FileReadTest, PathsAreLiteral) {
  for (const std::string name : {"price_$5", "$HOME", "${PATH}x", "~", "a b", "%41", "\xff\xfe"}) {
    Write(name, name);
    EXPECT_EQ(Get("/v1/file", At(name)).body, name);
    EXPECT_EQ(Json::parse(Get("/v1/file/info", At(name)).body)["size"], name.size());
  }
}

TEST_F(FileReadTest, DescribesEntries) {
  Write("f", "12345");
  chmod(At("f").c_str(), 01640);
  fs::create_symlink("f", At("link"));
  Json info = Json::parse(Get("/v1/file/info", At("f")).body);
  EXPECT_EQ(info["path"], At("f"));
  EXPECT_EQ(info["type"], "file");
  EXPECT_EQ(info["size"], 5);
  EXPECT_EQ(info["mode"], 01640);
  EXPECT_FALSE(info.contains("symlink_target"));
  info = Json::parse(Get("/v1/file/info", At("link")).body);
  EXPECT_EQ(info["type"], "symlink");
  EXPECT_EQ(info["symlink_target"], "f");
  info = Json::parse(Get("/v1/file/info", At("link"), "&follow=1").body);
  EXPECT_EQ(info["path"], At("link"));
  EXPECT_EQ(info["type"], "file");
  EXPECT_EQ(CodeOf(Get("/v1/file/info", At("none"))), "404 NOT_FOUND");
  EXPECT_EQ(CodeOf(Get("/v1/file/info", At("f/g"))), "409 NOT_A_DIRECTORY");
}

TEST_F(FileReadTest, ListsLevels) {
  fs::create_directories(At("a/b/c"));
  Write("a/f", "x");
  Write("z", "x");
  fs::create_directory_symlink("a", At("link"));
  EXPECT_THAT(Paths(Get("/v1/directory", root_)), ElementsAre(At("a"), At("link"), At("z")));
  EXPECT_THAT(Paths(Get("/v1/directory", root_ + "/", "&depth=2")),
              ElementsAre(At("a"), At("a/b"), At("a/f"), At("link"), At("z")));
  EXPECT_THAT(Paths(Get("/v1/directory", root_, "&depth=1000000")),
              ElementsAre(At("a"), At("a/b"), At("a/b/c"), At("a/f"), At("link"), At("z")));
  EXPECT_THAT(Paths(Get("/v1/directory", At("link"))), ElementsAre(At("link/b"), At("link/f")));
  EXPECT_THAT(Paths(Get("/v1/directory", At("a/b/c"))), IsEmpty());
  EXPECT_EQ(CodeOf(Get("/v1/directory", At("z"))), "409 NOT_A_DIRECTORY");
  EXPECT_EQ(CodeOf(Get("/v1/directory", At("none"))), "404 NOT_FOUND");
}

TEST_F(FileReadTest, NamesThatAreNoTextHaveTheirBytes) {
  Write("\xff\xfe", "");
  fs::create_symlink("\xfd", At("link"));
  const Json entries = Json::parse(Get("/v1/directory", root_).body);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0]["path"], At("link"));
  EXPECT_EQ(entries[0]["symlink_target_b64"], "/Q==");
  EXPECT_EQ(entries[1]["path"], At("\xef\xbf\xbd\xef\xbf\xbd"));
  EXPECT_EQ(entries[1]["path_b64"], extra::Base64(At("\xff\xfe")));
}

TEST_F(FileReadTest, WhatCannotBeReadEndsTheListInWords) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read every directory";
  fs::create_directory(At("closed"));
  chmod(At("closed").c_str(), 0);
  const Json entries = Json::parse(Get("/v1/directory", root_, "&depth=2").body);
  chmod(At("closed").c_str(), 0700);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1]["error"]["code"], "PERMISSION_DENIED");
}

}  // namespace
}  // namespace bridge::local::execd
