// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/file_write.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "bridge/local/execd/extra/digest.h"
#include "tests/local/execd/daemon_fixture.h"
#include "tests/local/execd/folder_fixture.h"

namespace bridge::local::execd {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kHello[] =
    "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";  // "hello"

class FileWriteTest : public FolderTest {
 protected:
  void SetUp() override { umask(077); }  // must not matter
  void TearDown() override {
    // Whatever happened, nothing of ours is left lying about.
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".execd-")) << entry.path();
    }
    umask(022);
  }
  void Write(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    FolderTest::Write(name, text);
    chmod(At(name).c_str(), mode);
  }
  struct stat Stat(const std::string& name) const {
    struct stat info = {};
    EXPECT_EQ(lstat(At(name).c_str(), &info), 0) << name;
    return info;
  }
  Json Put(const std::string& name, const std::string& query, const std::string& body,
           int status = 200) {
    const auto answer =
        caller_.Call("PUT", "/v1/file?path=" + http::PercentEncode(At(name), "/") + query, body);
    EXPECT_EQ(answer.status, status) << answer.body;
    return Json::parse(answer.body, nullptr, false);
  }

  std::unique_ptr<Daemon> daemon_ = StartDaemon();
  Caller caller_{*daemon_};
};

TEST_F(FileWriteTest, AWriteThatFailsLeavesNoParents) {
  fs::create_directory(At("old"));
  for (const std::string query : {"", "&atomic=0"}) {
    Put("a/b/f", "&parents=1&size=4" + query, "hello", 422);
    Put("old/b/f", "&parents=1&sha256=" + std::string(64, '0') + query, "hello", 422);
    Put("a/" + std::string(256, 'n') + "/f", "&parents=1" + query, "hello", 400);
    EXPECT_FALSE(fs::exists(At("a")));
    EXPECT_TRUE(fs::is_empty(At("old")));
  }
}

TEST_F(FileWriteTest, ANewFile) {
  const Json answer = Put("f", "", "hello");
  EXPECT_EQ(Read("f"), "hello");
  EXPECT_EQ(Stat("f").st_mode & 07777, 0644u);
  EXPECT_EQ(answer["path"], At("f"));
  EXPECT_EQ(answer["size"], 5);
  EXPECT_EQ(answer["sha256"], kHello);
  EXPECT_EQ(answer["mode"], 0644);
  EXPECT_EQ(answer["created"], true);
  EXPECT_EQ(answer["atomic"], true);
  EXPECT_EQ(answer["uid"], geteuid());
}

TEST_F(FileWriteTest, AnExistingFileKeepsModeAndOwner) {
  Write("f", "old", 04711);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(At("f").c_str(), 1234, 2345), 0);
  }
  chmod(At("f").c_str(), 04711);
  const ino_t before = Stat("f").st_ino;
  const Json answer = Put("f", "", "new");
  EXPECT_EQ(answer["created"], false);
  EXPECT_EQ(Read("f"), "new");
  EXPECT_NE(Stat("f").st_ino, before);
  EXPECT_EQ(Stat("f").st_mode & 07777, 04711u);
  if (geteuid() == 0) {
    EXPECT_EQ(Stat("f").st_uid, 1234u);
    EXPECT_EQ(Stat("f").st_gid, 2345u);
    EXPECT_EQ(answer["owner"], "1234");
  }
}

TEST_F(FileWriteTest, ModeAndOwnerGiven) {
  EXPECT_EQ(Put("f", "&mode=1777", "x")["mode"], 01777);
  EXPECT_EQ(Stat("f").st_mode & 07777, 01777u);
  EXPECT_EQ(Put("f", "&mode=0", "x")["mode"], 0);
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Json answer = Put("g", "&owner=nobody&group=2345&mode=6750", "x");
  EXPECT_EQ(Stat("g").st_uid, 65534u);
  EXPECT_EQ(Stat("g").st_gid, 2345u);
  EXPECT_EQ(Stat("g").st_mode & 07777, 06750u);
  EXPECT_EQ(answer["owner"], "nobody");
}

TEST_F(FileWriteTest, LiteralPathsOfAnyBytes) {
  for (const std::string name : {"$HOME", "~", "a b%20?#&=", "\xff\xfe", "\xc3\xbc"}) {
    const Json answer = Put(name, "", name);
    EXPECT_EQ(Read(name), name);
    EXPECT_EQ(answer.contains("path_b64"), name == "\xff\xfe");
  }
}

TEST_F(FileWriteTest, Parents) {
  EXPECT_EQ(Put("a/b/f", "", "x", 404)["code"], "NOT_FOUND");
  EXPECT_FALSE(fs::exists(At("a")));
  Put("a/b/f", "&parents=1", "x");
  EXPECT_EQ(Read("a/b/f"), "x");
  EXPECT_EQ(Stat("a").st_mode & 07777, 0755u);
  EXPECT_EQ(Put("a/b/f/g", "&parents=1", "x", 409)["code"], "NOT_A_DIRECTORY");
}

TEST_F(FileWriteTest, FailuresChangeNothing) {
  Write("f", "old");
  EXPECT_EQ(Put("f", "&sha256=" + std::string(64, '0'), "hello", 422)["actual_sha256"], kHello);
  EXPECT_EQ(Put("f", "&size=4", "hello", 422)["code"], "SHORT_BODY");
  EXPECT_EQ(Put("f", "&size=6", "hello", 422)["code"], "SHORT_BODY");
  EXPECT_EQ(Put("f", "&owner=no-such-account", "x", 400)["field"], "owner");
  EXPECT_EQ(Read("f"), "old");
  Put("f", "&size=5&sha256=" + std::string(kHello), "hello");
  EXPECT_EQ(Read("f"), "hello");
}

TEST_F(FileWriteTest, ABodyThatBreaksOffChangesNothing) {
  Write("f", "old");
  auto client = http::ClientExchange::Connect("127.0.0.1", caller_.port(), kLong);
  (void)(*client)->SendHead("PUT", "/v1/file?path=" + At("f"),
                            {{"Host", "x"}, {"Content-Length", "1000"}});
  (void)(*client)->SendBody("half", false);
  (*client)->socket().ShutdownWrite();
  const auto head = (*client)->ReadHead(kLong);
  if (head.ok()) {
    EXPECT_EQ(head->status, 422);
  }
  EXPECT_EQ(Read("f"), "old");
}

TEST_F(FileWriteTest, OnlyIfAbsent) {
  EXPECT_EQ(Put("f", "&if_absent=1", "one")["created"], true);
  EXPECT_EQ(Put("f", "&if_absent=1", "two", 412)["code"], "PRECONDITION_FAILED");
  EXPECT_EQ(Put("f", "&if_absent=1&atomic=0", "two", 412)["code"], "PRECONDITION_FAILED");
  EXPECT_EQ(Read("f"), "one");
  Put("g", "&if_absent=1&atomic=0", "x");
  EXPECT_EQ(Read("g"), "x");
}

TEST_F(FileWriteTest, OfManyWhoWantToBeFirstOneIs) {
  std::vector<std::thread> writers;
  writers.reserve(8);
  std::atomic<int> won{0};
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&, i] {
      const auto answer = caller_.Call("PUT", "/v1/file?if_absent=1&path=" + At("f"),
                                       std::string(100'000, static_cast<char>('a' + i)));
      EXPECT_TRUE(answer.status == 200 || answer.status == 412);
      won += answer.status == 200;
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(Read("f"), std::string(100'000, Read("f")[0]));
}

TEST_F(FileWriteTest, OnlyIfTheContentOrTimeIsKnown) {
  Write("f", "hello");
  EXPECT_EQ(Put("f", "&if_sha256=" + std::string(64, '0'), "x", 412)["actual_sha256"], kHello);
  EXPECT_EQ(Put("none", "&if_sha256=" + std::string(kHello), "x", 412)["code"],
            "PRECONDITION_FAILED");
  std::string upper = kHello;
  for (char& c : upper) c = static_cast<char>(toupper(c));
  const Json first = Put("f", "&if_sha256=" + upper, "one");
  const std::string time = first["modified_at"];
  EXPECT_EQ(Put("f", "&if_modified_at=2020-01-01T00:00:00Z", "x", 412)["actual_modified_at"], time);
  Put("f", "&if_modified_at=" + time, "two");
  EXPECT_EQ(Read("f"), "two");
}

TEST_F(FileWriteTest, AReaderSeesTheOldFileOrTheNewOne) {
  Write("f", std::string(300'000, 'a'));
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      const std::string seen = Read("f");
      ASSERT_EQ(seen.size(), 300'000u);
      ASSERT_EQ(seen, std::string(300'000, seen[0]));
    }
  });
  for (int i = 0; i < 20; ++i)
    Put("f", "&sync=0", std::string(300'000, static_cast<char>('a' + i)));
  stop = true;
  reader.join();
}

TEST_F(FileWriteTest, InPlaceKeepsHardLinks) {
  Write("f", "a longer old text", 0600);
  ASSERT_EQ(link(At("f").c_str(), At("g").c_str()), 0);
  const Json answer = Put("f", "&atomic=0", "new");
  EXPECT_EQ(answer["atomic"], false);
  EXPECT_EQ(Read("g"), "new");
  EXPECT_EQ(Stat("g").st_mode & 07777, 0600u);
  EXPECT_EQ(Put("f", "&atomic=0&sha256=" + std::string(64, '0'), "hello", 422)["code"],
            "DIGEST_MISMATCH");
  EXPECT_EQ(Put("f", "&atomic=0&size=9", "hello", 422)["code"], "SHORT_BODY");
  EXPECT_EQ(Read("f"), "new");
}

TEST_F(FileWriteTest, SymbolicLinks) {
  Write("target", "old", 0600);
  fs::create_directories(At("d"));
  ASSERT_EQ(symlink("../target", At("d/link").c_str()), 0);
  EXPECT_EQ(Put("d/link", "&symlink=refuse", "x", 409)["code"], "IS_A_LINK");
  const Json followed = Put("d/link", "", "new");
  EXPECT_EQ(Read("target"), "new");
  EXPECT_EQ(Stat("target").st_mode & 07777, 0600u);
  EXPECT_TRUE(S_ISLNK(Stat("d/link").st_mode));
  EXPECT_EQ(followed["path"], At("d/../target"));
  Put("d/link", "&symlink=replace", "own");
  EXPECT_TRUE(S_ISREG(Stat("d/link").st_mode));
  EXPECT_EQ(Stat("d/link").st_mode & 07777, 0644u);
  EXPECT_EQ(Read("target"), "new");
  ASSERT_EQ(symlink("made", At("dangling").c_str()), 0);
  EXPECT_EQ(Put("dangling", "", "x")["created"], true);
  EXPECT_EQ(Read("made"), "x");
  ASSERT_EQ(symlink("loop", At("loop").c_str()), 0);
  EXPECT_EQ(Put("loop", "", "x", 400)["errno"], "ELOOP");
  EXPECT_EQ(Put("d/link2", "&symlink=replace&atomic=0", "x", 400)["field"], "symlink");
}

TEST_F(FileWriteTest, WrongKindsOfThings) {
  fs::create_directories(At("d"));
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  EXPECT_EQ(Put("d", "", "x", 409)["code"], "IS_A_DIRECTORY");
  EXPECT_EQ(Put("d/", "", "x", 409)["code"], "IS_A_DIRECTORY");
  EXPECT_EQ(Put("pipe", "", "x", 409)["code"], "NOT_A_FILE");
  EXPECT_EQ(Put(std::string(300, 'n'), "", "x", 400)["errno"], "ENAMETOOLONG");
}

TEST_F(FileWriteTest, Refusals) {
  EXPECT_EQ(Put("f", "&mode=8", "x", 400)["field"], "mode");
  EXPECT_EQ(Put("f", "&mode=10000", "x", 400)["field"], "mode");
  EXPECT_EQ(Put("f", "&if_absent=1&if_sha256=" + std::string(kHello), "x", 400)["field"],
            "if_absent");
  EXPECT_EQ(Put("f", "&if_sha256=xyz", "x", 400)["field"], "if_sha256");
  EXPECT_EQ(Put("f", "&if_modified_at=now", "x", 400)["field"], "if_modified_at");
  EXPECT_EQ(Put("f", "&symlink=x", "x", 400)["field"], "symlink");
  EXPECT_EQ(Put("f", "&unknown=1", "x", 400)["field"], "unknown");
  EXPECT_FALSE(fs::exists(At("f")));
}

TEST(Digest, KnownValues) {
  extra::Digest empty;
  EXPECT_EQ(empty.Hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  extra::Digest pieces;
  for (const char c : std::string("hello")) pieces.Add(std::string_view(&c, 1));
  EXPECT_EQ(pieces.Hex(), kHello);
  EXPECT_TRUE(extra::IsDigest(kHello));
  EXPECT_FALSE(extra::IsDigest(std::string(63, '0')));
  EXPECT_FALSE(extra::IsDigest(std::string(64, 'A')));
}

}  // namespace
}  // namespace bridge::local::execd
