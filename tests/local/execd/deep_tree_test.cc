// SPDX-License-Identifier: Apache-2.0
//
// How deep a path or a tree is, a client or a program in the sandbox decides; no request may end
// the daemon by it. Its threads have small stacks.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/local/execd/daemon_fixture.h"
#include "tests/local/execd/folder_fixture.h"

namespace bridge::local::execd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Enough to end a thread whose stack has a frame for each.
constexpr int kLevels = 1200;
// No path can name the lowest of so many.
constexpr int kTooManyLevels = 2100;

class DeepTree : public FolderTest {
 protected:
  // It may be deeper than a path is long.
  ~DeepTree() override { EXPECT_EQ(std::system(("rm -rf " + root_ + "/*").c_str()), 0); }

  // `top` below the folder, and a path below it.
  std::string DeepPath(const std::string& top) const {
    std::string path = At(top);
    for (int i = 0; i < kLevels; ++i) path += "/z";
    return path;
  }
  // The same by a program, which goes one level at a time.
  void MakeTree(int levels) const {
    int at = open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < levels && at >= 0; ++i) {
      ASSERT_EQ(mkdirat(at, "z", 0755), 0);
      const int next = openat(at, "z", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      close(at);
      at = next;
    }
    ASSERT_GE(at, 0);
    close(at);
  }
  static size_t Count(const std::string& text, const std::string& what) {
    size_t count = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
      ++count;
    }
    return count;
  }
  // The first line of a watch of the whole folder.
  std::string WatchLine() const {
    auto connected = http::ClientExchange::Connect("127.0.0.1", caller_.port(), kLong);
    EXPECT_TRUE(connected.ok());
    (void)(*connected)->SendHead("GET", "/v1/watch?recursive=1&path=" + root_, {{"Host", "x"}});
    const auto head = (*connected)->ReadHead(kLong);
    EXPECT_TRUE(head.ok()) << head.status();
    std::string piece(64 << 10, '\0');
    const auto n = (*connected)->ReadBody(piece.data(), piece.size(), kLong);
    EXPECT_TRUE(n.ok()) << n.status();
    return n.ok() ? piece.substr(0, *n) : "";
  }

  std::unique_ptr<Daemon> daemon_ = StartDaemon();
  Caller caller_{*daemon_};
};

TEST_F(DeepTree, ParentsAreMade) {
  Write("source", "x");
  const std::string written = DeepPath("written");
  EXPECT_EQ(caller_.Call("PUT", "/v1/file?parents=1&path=" + written, "x").status, 200);
  EXPECT_TRUE(std::filesystem::is_regular_file(written));
  const std::string moved = DeepPath("moved");
  EXPECT_EQ(
      caller_.Post("/v1/file/move?parents=1&source=" + At("source") + "&destination=" + moved, "")
          .status,
      200);
  EXPECT_TRUE(std::filesystem::is_regular_file(moved));
  const std::string made = DeepPath("made");
  EXPECT_EQ(caller_.Post("/directories", "{\"" + made + "\":{}}").status, 200);
  EXPECT_TRUE(std::filesystem::is_directory(made));
}

TEST_F(DeepTree, IsListedSearchedAndWatched) {
  MakeTree(kLevels);
  const http::Response own = caller_.Get("/v1/directory?depth=1000000&path=" + root_);
  EXPECT_EQ(Count(own.body, "\"type\":\"directory\""), kLevels);
  const http::Response stock = caller_.Get("/directories/list?depth=1000000&path=" + root_);
  EXPECT_EQ(Count(stock.body, "\"type\":\"directory\""), kLevels);
  EXPECT_EQ(caller_.Get("/files/search?pattern=x&path=" + root_).body, "[]");
  EXPECT_THAT(WatchLine(), StartsWith("{\"event\":\"ready\""));
  EXPECT_EQ(caller_.Call("DELETE", "/directories?path=" + At("z")).status, 200);
  EXPECT_FALSE(std::filesystem::exists(At("z")));
}

// What no path can name is said to be too long, by every route, after what could be named.
TEST_F(DeepTree, DeeperThanAPathIsAFailureOfThatRequest) {
  MakeTree(kTooManyLevels);
  const http::Response own = caller_.Get("/v1/directory?depth=1000000&path=" + root_);
  EXPECT_EQ(own.status, 200);
  EXPECT_GT(Count(own.body, "\"type\":\"directory\""), 2000u);
  EXPECT_THAT(own.body, HasSubstr(",{\"error\":{"));
  EXPECT_THAT(own.body, HasSubstr("ENAMETOOLONG"));
  for (const std::string route : {"/directories/list?depth=1000000&", "/files/search?pattern=x&"}) {
    const http::Response stock = caller_.Get(route + "path=" + root_);
    EXPECT_EQ(stock.status, 500);
    EXPECT_THAT(stock.body, HasSubstr("file name too long"));
  }
  EXPECT_THAT(WatchLine(), HasSubstr("ENAMETOOLONG"));
  EXPECT_EQ(caller_.Call("DELETE", "/directories?path=" + At("z")).status, 200);
  EXPECT_FALSE(std::filesystem::exists(At("z")));
}

TEST_F(DeepTree, NestedJsonIsRefused) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string body;
    for (int i = 0; i < 100'000; ++i) body += open;
    EXPECT_EQ(caller_.Post("/command", body).status, 400);
    EXPECT_EQ(caller_.Post("/v1/exec", body).status, 400);
  }
}

}  // namespace
}  // namespace bridge::local::execd
