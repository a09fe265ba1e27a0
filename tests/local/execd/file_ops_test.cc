// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/file_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "bridge/local/execd/upload.h"
#include "tests/local/execd/folder_fixture.h"

namespace bridge::local::execd {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FileOps : public FolderTest {
 protected:
  void SetUp() override { umask(022); }
  mode_t ModeOf(const std::string& name) const {
    struct stat info = {};
    EXPECT_EQ(stat(At(name).c_str(), &info), 0) << name;
    return info.st_mode & 07777;
  }
  // Paths below root_, in order.
  std::vector<std::string> Names(const std::vector<FileInfo>& files) const {
    std::vector<std::string> out;
    out.reserve(files.size());
    for (const FileInfo& file : files) out.push_back(file.path.substr(root_.size() + 1));
    return out;
  }
};

TEST(FileModes, DigitsOfTheOctalForm) {
  mode_t mode = 0;
  ASSERT_TRUE(ModeFromDigits(644, &mode));
  EXPECT_EQ(mode, 0644u);
  ASSERT_TRUE(ModeFromDigits(420, &mode));
  EXPECT_EQ(mode, 0420u);
  ASSERT_TRUE(ModeFromDigits(4755, &mode));
  EXPECT_EQ(mode, 0755u);  // special bits are lost
  EXPECT_FALSE(ModeFromDigits(888, &mode));
  EXPECT_FALSE(ModeFromDigits(-644, &mode));
  EXPECT_EQ(ModeDigits(0100644), 644);
  EXPECT_EQ(ModeDigits(0104755), 755);
  EXPECT_EQ(ModeDigits(0), 0);
}

TEST_F(FileOps, DescribesWhatIsThereAndNothingIfOneIsMissing) {
  Write("a", "12345");
  std::string json;
  ASSERT_FALSE(DescribeFiles({At("a")}, &json));
  EXPECT_THAT(json, HasSubstr("{\"" + At("a") + "\":{\"path\":\"" + At("a") +
                              "\",\"type\":\"file\",\"size\":5,\"modified_at\":\"20"));
  EXPECT_THAT(json, HasSubstr("\"mode\":644}}"));
  const auto error = DescribeFiles({At("a"), At("none")}, &json);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->status, 404);
  EXPECT_EQ(error->code, kFileNotFound);
  EXPECT_EQ(error->message, "file not found. file not found: " + At("none") + ": lstat " +
                                At("none") + ": no such file or directory");
  ASSERT_FALSE(DescribeFiles({}, &json));
  EXPECT_EQ(json, "{}");
}

TEST_F(FileOps, ListsInOrderAndDoesNotFollowLinks) {
  fs::create_directories(At("t/a/b"));
  fs::create_directories(At("t/.h"));
  Write("t/a/b/deep", "x");
  Write("t/z", "x");
  fs::create_directory_symlink(At("t/a"), At("t/la"));
  std::vector<FileInfo> files;
  ASSERT_FALSE(ListDirectory(At("t"), 1, &files));
  EXPECT_THAT(Names(files), ElementsAre("t/.h", "t/a", "t/la", "t/z"));
  files.clear();
  ASSERT_FALSE(ListDirectory(At("t"), 9, &files));
  EXPECT_THAT(Names(files), ElementsAre("t/.h", "t/a", "t/a/b", "t/a/b/deep", "t/la", "t/z"));
  files.clear();
  ASSERT_FALSE(ListDirectory(At("t"), 0, &files));
  EXPECT_THAT(files, IsEmpty());
  EXPECT_EQ(ListDirectory(At("t/la"), 1, &files)->status, 400);
  EXPECT_EQ(ListDirectory(At("t/z"), 1, &files)->status, 400);
  EXPECT_EQ(ListDirectory(At("none"), 1, &files)->status, 404);
}

TEST_F(FileOps, SearchesByBaseName) {
  fs::create_directories(At("t/a.txt"));
  Write("t/a.txt/deep.txt", "x");
  Write("t/z.txt", "x");
  Write("t/z.bin", "x");
  std::vector<FileInfo> files;
  ASSERT_FALSE(SearchFiles(At("t"), "*.txt", &files));
  EXPECT_THAT(Names(files), ElementsAre("t/a.txt/deep.txt", "t/z.txt"));
  files.clear();
  ASSERT_FALSE(SearchFiles(At("t/z.txt"), "**", &files));
  EXPECT_THAT(Names(files), ElementsAre("t/z.txt"));
  EXPECT_EQ(SearchFiles(At("none"), "**", &files)->status, 404);
  EXPECT_EQ(SearchFiles(At("t"), "[", &files)->message,
            "error searching files. invalid pattern [: syntax error in pattern");
}

TEST_F(FileOps, MakesDirectories) {
  ASSERT_FALSE(MakeDirectories({{At("a/b"), {.mode = 750}}, {At("c"), {}}}));
  EXPECT_EQ(ModeOf("a"), 0755u);
  EXPECT_EQ(ModeOf("a/b"), 0750u);
  EXPECT_EQ(ModeOf("c"), 0755u);
  ASSERT_FALSE(MakeDirectories({{At("c"), {.mode = 700}}}));
  EXPECT_EQ(ModeOf("c"), 0755u);  // what exists is left alone
  Write("f", "x");
  EXPECT_EQ(MakeDirectories({{At("f/x"), {}}})->message,
            "error accessing file: mkdir " + At("f") + ": not a directory");
}

TEST_F(FileOps, RemovesFilesButKeepsDanglingLinks) {
  Write("f", "x");
  symlink("/nope", At("dangling").c_str());
  symlink("f2", At("link").c_str());
  Write("f2", "x");
  EXPECT_FALSE(RemoveFiles({At("f"), At("none"), At("dangling"), At("link")}));
  EXPECT_FALSE(fs::exists(fs::symlink_status(At("f"))));
  EXPECT_TRUE(fs::is_symlink(At("dangling")));
  EXPECT_FALSE(fs::is_symlink(At("link")));
  EXPECT_TRUE(fs::exists(At("f2")));
  EXPECT_EQ(RemoveFiles({root_})->message,
            "error removing file " + root_ + ". path is a directory: " + root_);
}

TEST_F(FileOps, RemovesTreesAndFiles) {
  fs::create_directories(At("t/a"));
  Write("t/a/f", "x");
  Write("f", "x");
  EXPECT_FALSE(RemoveDirectories({At("t"), At("f"), At("none")}));
  EXPECT_FALSE(fs::exists(At("t")));
  EXPECT_FALSE(fs::exists(At("f")));
}

TEST_F(FileOps, MovesButNeverOver) {
  Write("a", "A");
  Write("b", "B");
  ASSERT_FALSE(MoveFiles({{At("a"), At("new/deep/a")}}));
  EXPECT_EQ(Read("new/deep/a"), "A");
  EXPECT_EQ(MoveFiles({{At("b"), At("new/deep/a")}})->message,
            "error accessing file: destination path already exists: " + At("new/deep/a"));
  // In order, without going back.
  const auto error = MoveFiles({{At("b"), At("c")}, {At("none"), At("d")}});
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->status, 404);
  EXPECT_EQ(Read("c"), "B");
}

TEST_F(FileOps, PermissionsByNameOnly) {
  Write("f", "x");
  ASSERT_FALSE(ChangePermissions({{At("f"), {.mode = 600}}}));
  EXPECT_EQ(ModeOf("f"), 0600u);
  ASSERT_FALSE(ChangePermissions({{At("f"), {.mode = 0}}}));
  EXPECT_EQ(ModeOf("f"), 0600u);
  EXPECT_EQ(ChangePermissions({{At("f"), {.owner = "0"}}})->message,
            "error changing permissions for " + At("f") +
                ". failed to lookup user 0: user: unknown user 0");
  EXPECT_EQ(ChangePermissions({{At("none"), {.mode = 600}}})->status, 500);
}

TEST_F(FileOps, ReplacesText) {
  Write("f", "0123456789");
  std::map<std::string, int64_t> counts;
  ASSERT_FALSE(ReplaceText({{At("f"), {"3", "XX"}}}, &counts));
  EXPECT_EQ(Read("f"), "012XX456789");
  EXPECT_EQ(counts[At("f")], 1);
  ASSERT_FALSE(ReplaceText({{At("f"), {"X", ""}}}, &counts));
  EXPECT_EQ(counts[At("f")], 2);
  EXPECT_EQ(Read("f"), "012456789");
  EXPECT_EQ(ReplaceText({{At("f"), {"", "y"}}}, &counts)->status, 400);
  EXPECT_EQ(ReplaceText({{At("none"), {"a", "b"}}}, &counts)->status, 404);
  EXPECT_EQ(ReplaceText({{root_, {"a", "b"}}}, &counts)->message,
            "error accessing file: read " + root_ + ": is a directory");
}

TEST_F(FileOps, AnotherUsersRights) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  Write("private", "x");
  chmod(At("private").c_str(), 0600);
  chmod(root_.c_str(), 0777);
  std::map<std::string, int64_t> counts;
  {
    const AssumedFileIdentity identity(4242, 4343);
    ASSERT_TRUE(identity.ok());
    EXPECT_EQ(ReplaceText({{At("private"), {"x", "y"}}}, &counts)->status, 500);
    std::string path;
    ApiError error;
    const int fd = OpenUploadTarget(At("theirs"), &path, &error);
    ASSERT_GE(fd, 0) << error.message;
    close(fd);
  }
  struct stat info;
  ASSERT_EQ(stat(At("theirs").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 4242u);
  EXPECT_EQ(info.st_gid, 4343u);
  EXPECT_FALSE(ReplaceText({{At("private"), {"x", "y"}}}, &counts));  // ours again
}

// ---- uploads

std::string Part(const std::string& name, const std::string& content) {
  return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"" + name +
         "\"\r\n\r\n" + content + "\r\n";
}

std::optional<ApiError> UploadAll(const std::string& body) {
  Upload upload("multipart/form-data; boundary=b");
  upload.Feed(body);
  return upload.Finish();
}

TEST_F(FileOps, UploadsPairsByIndex) {
  ASSERT_FALSE(UploadAll(Part("metadata", "{\"path\":\"" + At("x/1") + "\",\"mode\":600}") +
                         Part("metadata", "{\"path\":\"" + At("2") + "\"}") + Part("file", "one") +
                         Part("file", std::string("\0\r\n--", 5)) + "--b--"));
  EXPECT_EQ(Read("x/1"), "one");
  EXPECT_EQ(ModeOf("x/1"), 0600u);
  EXPECT_EQ(Read("2"), std::string("\0\r\n--", 5));
  EXPECT_EQ(ModeOf("2"), 0755u);
}

TEST_F(FileOps, AnUploadThatBreaksOffChangesNothing) {
  const std::string body =
      Part("metadata", "{\"path\":\"" + At("f") + "\"}") + Part("file", "content");
  const auto error = UploadAll(body);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, kInvalidFile);
  EXPECT_EQ(error->message, "multipart form is empty");
  EXPECT_FALSE(fs::exists(At("f")));
}

TEST_F(FileOps, UploadErrors) {
  EXPECT_EQ(UploadAll(Part("file", "x") + "--b--")->code, kInvalidFileMetadata);
  EXPECT_EQ(UploadAll(Part("metadata", "{}") + "--b--")->code, kInvalidFileContent);
  EXPECT_EQ(UploadAll(Part("metadata", "{}") + Part("file", "x") + "--b--")->message,
            "metadata path is empty");
  EXPECT_EQ(UploadAll(Part("metadata", "{}") + Part("metadata", "{}") + Part("file", "x") + "--b--")
                ->message,
            "metadata and file count mismatch: 2 vs 1");
  EXPECT_EQ(UploadAll(Part("metadata", "{\"path\":\"/x\",\"mode\":\"644\"}") + Part("file", "x") +
                      "--b--")
                ->message,
            "invalid metadata format. json: cannot unmarshal string into Go struct field "
            "FileMetadata.Permission.mode of type int");
  EXPECT_EQ(UploadAll(Part("metadata", "{} x") + Part("file", "x") + "--b--")->message,
            "invalid metadata format. invalid character 'x' after top-level value");
  EXPECT_EQ(UploadAll(Part("metadata", "") + Part("file", "x") + "--b--")->message,
            "invalid metadata format. unexpected end of JSON input");
  Upload not_multipart("application/json");
  EXPECT_FALSE(not_multipart.Feed("{}"));
  EXPECT_EQ(not_multipart.Finish()->code, kInvalidFile);
}

TEST_F(FileOps, LargeUploadsGoThroughTheDisk) {
  std::string content(40 << 20, 'x');
  for (size_t i = 0; i < content.size(); i += 4096) content[i] = static_cast<char>(i / 4096);
  Upload upload("multipart/form-data; boundary=b");
  ASSERT_TRUE(upload.Feed(Part("metadata", "{\"path\":\"" + At("big") + "\"}")));
  const std::string part = Part("file", content) + "--b--";
  for (size_t i = 0; i < part.size(); i += 100'000) {
    ASSERT_TRUE(upload.Feed(std::string_view(part).substr(i, 100'000)));
  }
  ASSERT_FALSE(upload.Finish());
  EXPECT_TRUE(Read("big") == content);
}

}  // namespace
}  // namespace bridge::local::execd
