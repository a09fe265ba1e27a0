// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/record.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

namespace v1 = ::sandbox::bridge::v1;
using testing::ElementsAre;

TEST(StatusWord, IsOneOfTheHostsSeven) {
  const std::set<std::string_view> words = {"creating", "running", "paused", "pausing",
                                            "stopping", "stopped", "error"};
  for (int i = 0; i <= v1::SANDBOX_STATE_UNKNOWN; ++i) {
    EXPECT_TRUE(words.contains(StatusWord(static_cast<v1::SandboxState>(i)))) << i;
  }
  EXPECT_EQ(StatusWord(v1::SANDBOX_STATE_UNKNOWN), "error");
  EXPECT_EQ(StatusWord(v1::SANDBOX_STATE_UNSPECIFIED), "error");
  EXPECT_EQ(StatusWord(static_cast<v1::SandboxState>(99)), "error");
}

TEST(StatesOf, IsTheWayBack) {
  EXPECT_THAT(*StatesOf("creating"),
              ElementsAre(v1::SANDBOX_STATE_PENDING, v1::SANDBOX_STATE_RESUMING));
  EXPECT_THAT(*StatesOf("error"), ElementsAre(v1::SANDBOX_STATE_FAILED, v1::SANDBOX_STATE_UNKNOWN));
  EXPECT_FALSE(StatesOf("Running").has_value());
  EXPECT_FALSE(StatesOf("").has_value());
}

TEST(TimeText, HasThreeDigits) {
  google::protobuf::Timestamp time;
  time.set_seconds(1'767'225'599);
  time.set_nanos(9'999'999);
  EXPECT_EQ(TimeText(time), "2025-12-31T23:59:59.009Z");
}

TEST(SandboxRecord, SendsNothingThatTheHostMisreads) {
  v1::Sandbox sandbox;
  sandbox.set_sandbox_id("sb-1");
  sandbox.set_state(v1::SANDBOX_STATE_RUNNING);
  sandbox.set_upstream_state("Running");
  Json record = SandboxRecord(sandbox, "");
  EXPECT_EQ(record["sandbox_id"], "sb-1");
  EXPECT_EQ(record["status"], "running");
  EXPECT_EQ(record["metadata"], Json::object());
  // Absent, never null or "": "template": null shows as "None", a url switches the transport.
  for (const char* absent :
       {"template", "created_at", "expires_at", "region", "url", "envd_url", "envd_access_token"}) {
    EXPECT_FALSE(record.contains(absent)) << absent;
  }
  sandbox.set_image("img");
  (*sandbox.mutable_metadata())["k"] = "v";
  sandbox.mutable_expires_at()->set_seconds(1);
  record = SandboxRecord(sandbox, "base");
  EXPECT_EQ(record["template"], "base");
  EXPECT_EQ(record["metadata"]["k"], "v");
  EXPECT_EQ(record["expires_at"], "1970-01-01T00:00:01.000Z");
  EXPECT_EQ(SandboxRecord(sandbox, "")["template"], "img");
}

TEST(FileEntry, DescribesFiles) {
  v1::FileInfo info;
  info.set_path("/tmp/a b.txt");
  info.set_type(v1::FILE_TYPE_FILE);
  info.set_size_bytes(5);
  info.set_mode(0644);
  info.mutable_modified_at()->set_seconds(0);
  const Json entry = FileEntry(info);
  EXPECT_EQ(entry["name"], "a b.txt");
  EXPECT_EQ(entry["path"], "/tmp/a b.txt");
  EXPECT_EQ(entry["type"], "file");
  EXPECT_EQ(entry["size"], 5);
  EXPECT_EQ(entry["mode"], 420);
  EXPECT_EQ(entry["mtime"], "1970-01-01T00:00:00.000Z");
}

TEST(FileEntry, NamesTypesAndOddPaths) {
  v1::FileInfo info;
  info.set_type(v1::FILE_TYPE_DIRECTORY);
  info.set_path("/");
  EXPECT_EQ(FileEntry(info)["name"], "/");
  EXPECT_EQ(FileEntry(info)["type"], "dir");
  info.set_path("/a/b/");
  EXPECT_EQ(FileEntry(info)["name"], "b");
  info.set_type(v1::FILE_TYPE_SYMLINK);
  info.set_symlink_target("/x");
  EXPECT_EQ(FileEntry(info)["type"], "symlink");
  EXPECT_EQ(FileEntry(info)["symlink_target"], "/x");
  info.set_path("/d/\\xff");
  info.set_path_bytes("/d/\xFF");
  EXPECT_EQ(FileEntry(info)["path_b64"], "L2Qv/w==");
}

}  // namespace
}  // namespace bridge::epp
