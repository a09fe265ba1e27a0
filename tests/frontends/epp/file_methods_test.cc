// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/file_methods.h"

#include <atomic>
#include <string>

#include "bridge/base/error.h"
#include "frontends/epp/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/frontends/epp/fake_bridge.h"
#include "tests/frontends/epp/plugin_host.h"

namespace bridge::epp {
namespace {

using testing::HasSubstr;

class FileMethods : public testing::Test {
 protected:
  FileMethods() : host_(bridge_.link_factory()) { host_.Initialize(); }
  FakeBridge bridge_;
  PluginHost host_;
};

TEST_F(FileMethods, RefusesEmptyPathsBeforeAnythingIsSent) {
  for (const char* method : {"files.read", "files.write", "files.list", "files.stat", "files.mkdir",
                             "files.remove", "files.search", "files.chmod"}) {
    EXPECT_EQ(
        host_.Error(method, {{"sandbox_id", "sb"}, {"path", ""}, {"content_b64", ""}})["code"],
        kConfigError)
        << method;
  }
  EXPECT_EQ(host_.Error("files.move",
                        {{"sandbox_id", "sb"}, {"source", ""}, {"destination", "/x"}})["code"],
            kConfigError);
}

TEST_F(FileMethods, ListsDirectories) {
  v1::ListDirectoryRequest seen;
  bridge_.list_directory = [&](const v1::ListDirectoryRequest& request, auto* writer, auto*) {
    seen = request;
    v1::FileInfoBatch batch;
    for (const char* name : {"/d/a", "/d/b"}) {
      batch.clear_entries();
      batch.add_entries()->set_path(name);
      writer->Write(batch);
    }
    return absl::OkStatus();
  };
  const Json entries =
      host_.Result("files.list", {{"sandbox_id", "sb"}, {"path", "/d"}})["entries"];
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1]["name"], "b");
  EXPECT_EQ(seen.depth(), 1);
  host_.Result("files.list", {{"sandbox_id", "sb"}});
  EXPECT_EQ(seen.path(), "/");
}

TEST_F(FileMethods, RefusesAListingThatNoLineHolds) {
  std::atomic<int> batches{0};
  bridge_.list_directory = [&](const auto&, auto* writer, grpc::ServerContext* context) {
    v1::FileInfoBatch batch;
    for (int i = 0; i < 500; ++i) {
      batch.add_entries()->set_path("/d/" + std::string(60, 'n') + std::to_string(i));
    }
    for (int i = 0; i < 2000 && !context->IsCancelled() && writer->Write(batch); ++i) ++batches;
    return absl::OkStatus();
  };
  const Json error = host_.Error("files.list", {{"sandbox_id", "sb"}, {"path", "/d"}});
  EXPECT_EQ(error["code"], kProviderError);
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("too many entries"));
  EXPECT_LT(batches.load(), 2000);  // it was not read to its end
}

TEST_F(FileMethods, ALargeListingFits) {
  bridge_.list_directory = [](const auto&, auto* writer, auto*) {
    v1::FileInfoBatch batch;
    for (int i = 0; i < 30'000; ++i) batch.add_entries()->set_path("/d/name" + std::to_string(i));
    writer->Write(batch);
    return absl::OkStatus();
  };
  EXPECT_EQ(host_.Result("files.list", {{"sandbox_id", "sb"}, {"path", "/d"}})["entries"].size(),
            30'000u);
}

TEST_F(FileMethods, StatDescribesWhatALinkMeans) {
  bridge_.stat = [](const v1::StatRequest& request, v1::FileInfo* info, auto*) -> absl::Status {
    info->set_path(request.path());
    if (request.path() == "/dangling" && request.follow_symlink()) {
      return MakeError(ErrorReason::ERROR_REASON_PATH_NOT_FOUND, "none");
    }
    if (request.path() == "/full" && request.follow_symlink()) {
      return MakeError(ErrorReason::ERROR_REASON_NO_SPACE, "full");
    }
    if (request.follow_symlink()) {
      info->set_path("/usr/bin");
      info->set_type(v1::FILE_TYPE_DIRECTORY);
    } else {
      info->set_type(v1::FILE_TYPE_SYMLINK);
      info->set_symlink_target("usr/bin");
    }
    return absl::OkStatus();
  };
  const Json link = host_.Result("files.stat", {{"sandbox_id", "sb"}, {"path", "/bin"}});
  EXPECT_EQ(link["type"], "dir");
  EXPECT_EQ(link["path"], "/bin");
  EXPECT_EQ(link["symlink_target"], "usr/bin");
  EXPECT_EQ(host_.Result("files.stat", {{"sandbox_id", "sb"}, {"path", "/dangling"}})["type"],
            "symlink");
  EXPECT_EQ(host_.Error("files.stat", {{"sandbox_id", "sb"}, {"path", "/full"}})["code"], kQuota);
}

TEST_F(FileMethods, ChangesThings) {
  v1::MakeDirectoryRequest made;
  v1::RemoveRequest removed;
  v1::MoveRequest moved;
  v1::SetAttributesRequest changed;
  bridge_.make_directory = [&](const auto& request, auto*, auto*) {
    made = request;
    return absl::OkStatus();
  };
  bridge_.remove_file = [&](const auto& request, auto*, auto*) {
    removed = request;
    return absl::OkStatus();
  };
  bridge_.move = [&](const auto& request, auto*, auto*) {
    moved = request;
    return absl::OkStatus();
  };
  bridge_.set_attributes = [&](const auto& request, auto*, auto*) {
    changed = request;
    return absl::OkStatus();
  };
  host_.Result("files.mkdir", {{"sandbox_id", "sb"}, {"path", "/a/b"}});
  EXPECT_TRUE(made.parents());
  EXPECT_FALSE(made.has_mode());
  host_.Result("files.remove", {{"sandbox_id", "sb"}, {"path", "/a"}});
  EXPECT_TRUE(removed.recursive());
  EXPECT_FALSE(removed.missing_ok());
  host_.Result("files.move", {{"sandbox_id", "sb"}, {"source", "/a"}, {"destination", "/b"}});
  EXPECT_FALSE(moved.overwrite());
  EXPECT_TRUE(moved.create_parents());
  host_.Result("files.chmod", {{"sandbox_id", "sb"}, {"path", "/a"}, {"mode", "755"}});
  EXPECT_EQ(changed.mode(), 0755u);
  EXPECT_FALSE(changed.follow_symlink());
  EXPECT_EQ(host_.Error("files.chmod", {{"sandbox_id", "sb"}, {"path", "/a"}})["code"],
            kConfigError);
}

TEST_F(FileMethods, Searches) {
  v1::SearchRequest seen;
  bridge_.search = [&](const v1::SearchRequest& request, auto* writer, auto*) {
    seen = request;
    v1::FileInfoBatch batch;
    batch.add_entries()->set_path("/a/x.py");
    writer->Write(batch);
    return absl::OkStatus();
  };
  const Json found =
      host_.Result("files.search", {{"sandbox_id", "sb"}, {"path", "/a"}, {"pattern", "*.py"}});
  EXPECT_EQ(found["entries"][0]["name"], "x.py");
  EXPECT_EQ(seen.pattern(), "*.py");
}

}  // namespace
}  // namespace bridge::epp
