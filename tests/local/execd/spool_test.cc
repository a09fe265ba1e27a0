// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/spool.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace bridge::local::execd {
namespace {

void WriteTo(int fd, std::string_view text) {
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST(SpoolFile, IsReadAsItGrows) {
  int error = 0;
  const auto spool = SpoolFile::Create(testing::TempDir() + "/grow", &error);
  ASSERT_NE(spool, nullptr);
  EXPECT_EQ(spool->ReadMore(), "");
  WriteTo(spool->fd(), "ab");
  EXPECT_EQ(spool->ReadMore(), "ab");
  EXPECT_EQ(spool->ReadMore(), "");
  WriteTo(spool->fd(), "c");
  WriteTo(spool->fd(), "d");
  EXPECT_EQ(spool->ReadMore(), "cd");
}

TEST(SpoolFile, ReadsLargeOutputInPieces) {
  int error = 0;
  const auto spool = SpoolFile::Create(testing::TempDir() + "/large", &error);
  ASSERT_NE(spool, nullptr);
  std::string all(1'000'000, 'x');
  all.back() = 'y';
  WriteTo(spool->fd(), all);
  std::string got;
  for (std::string_view piece; !(piece = spool->ReadMore()).empty();) {
    EXPECT_LE(piece.size(), 256u * 1024);
    got += piece;
  }
  EXPECT_EQ(got, all);
}

TEST(SpoolFile, HasTheModeOfARecordedOneAndCanBeRemoved) {
  umask(022);
  int error = 0;
  const std::string path = testing::TempDir() + "/mode";
  const auto spool = SpoolFile::Create(path, &error);
  ASSERT_NE(spool, nullptr);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);
  spool->Remove();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  WriteTo(spool->fd(), "still");
  EXPECT_EQ(spool->ReadMore(), "still");
}

TEST(SpoolFile, SaysWhyItCannotBeMade) {
  int error = 0;
  EXPECT_EQ(SpoolFile::Create("/no/such/directory/x", &error), nullptr);
  EXPECT_EQ(error, ENOENT);
}

TEST(SpoolDirectory, FollowsTmpdir) {
  setenv("TMPDIR", testing::TempDir().c_str(), 1);
  EXPECT_EQ(SpoolDirectory(false), testing::TempDir());
  const std::string own = SpoolDirectory(true);
  EXPECT_EQ(own, testing::TempDir() + "/opensandbox-execd");
  struct stat info;
  ASSERT_EQ(stat(own.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  unsetenv("TMPDIR");
  EXPECT_EQ(SpoolDirectory(false), "/tmp");
}

}  // namespace
}  // namespace bridge::local::execd
