// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>

namespace bridge::local::execd {
namespace {

ExpandedPath Expand(std::string_view path) {
  static const std::map<std::string, std::string> kVariables = {
      {"HOME", "/root"}, {"A", "va"}, {"EMPTY", ""}};
  return ExpandPath(path, [](std::string_view name) -> std::optional<std::string> {
    const auto it = kVariables.find(std::string(name));
    if (it == kVariables.end()) return std::nullopt;
    return it->second;
  });
}

// Recordings upload-dollar-*, cwd-*, info-undefined-var, info-tilde.
TEST(Paths, ExpandsAsRecorded) {
  EXPECT_EQ(Expand("/tmp/g/x$HOME").path, "/tmp/g/x/root");
  EXPECT_EQ(Expand("$HOME").path, "/root");
  EXPECT_EQ(Expand("~").path, "/root");
  EXPECT_EQ(Expand("~/tf").path, "/root/tf");
  EXPECT_EQ(Expand("/tmp/g/cost$5").path, "/tmp/g/cost");
  EXPECT_EQ(Expand("/tmp/g/$NOPE").error, "path references undefined environment variables: NOPE");
  EXPECT_EQ(Expand("/tmp/g/a$$b").error, "path references undefined environment variables: b");
}

TEST(Paths, OtherFormsOfVariables) {
  EXPECT_EQ(Expand("/${A}x").path, "/vax");
  EXPECT_EQ(Expand("/$A/$EMPTY/y").path, "/va/y");
  EXPECT_EQ(Expand("/a$*b").path, "/ab");
  EXPECT_EQ(Expand("/a${}b").path, "/ab");
  EXPECT_EQ(Expand("/a${b").path, "/ab");
  EXPECT_EQ(Expand("/a$/b").path, "/a$/b");
  EXPECT_EQ(Expand("/a$").path, "/a$");
  EXPECT_EQ(Expand("/a$.txt").path, "/a$.txt");
  EXPECT_EQ(Expand("/$X/${Y}/$X").error, "path references undefined environment variables: X, Y");
}

TEST(Paths, TildeOnlyAtTheStart) {
  EXPECT_EQ(Expand("/a/~").path, "/a/~");
  EXPECT_EQ(Expand("/a~").path, "/a~");
  EXPECT_EQ(Expand("~user").path, AbsolutePath("~user"));
}

TEST(Paths, Clean) {
  EXPECT_EQ(CleanPath("/a//b/./c/../d/"), "/a/b/d");
  EXPECT_EQ(CleanPath("/../.."), "/");
  EXPECT_EQ(CleanPath("a/../../b"), "../b");
  EXPECT_EQ(CleanPath("a/.."), ".");
  EXPECT_EQ(CleanPath(""), ".");
  EXPECT_EQ(CleanPath("/"), "/");
  EXPECT_EQ(CleanPath("../.."), "../..");
}

TEST(Paths, Absolute) {
  char cwd[4096];
  ASSERT_NE(getcwd(cwd, sizeof(cwd)), nullptr);
  EXPECT_EQ(AbsolutePath("x/../y"), CleanPath(std::string(cwd) + "/y"));
  EXPECT_EQ(AbsolutePath(""), cwd);
  EXPECT_EQ(AbsolutePath("/x/"), "/x");
}

TEST(Paths, BaseAndDirectory) {
  EXPECT_EQ(BaseName("/a/b"), "b");
  EXPECT_EQ(BaseName("/a/b//"), "b");
  EXPECT_EQ(BaseName("/"), "/");
  EXPECT_EQ(BaseName(""), ".");
  EXPECT_EQ(BaseName("b"), "b");
  EXPECT_EQ(DirName("/a/b"), "/a");
  EXPECT_EQ(DirName("/a"), "/");
  EXPECT_EQ(DirName("a"), ".");
  EXPECT_EQ(DirName("/a/b/"), "/a/b");
}

}  // namespace
}  // namespace bridge::local::execd
