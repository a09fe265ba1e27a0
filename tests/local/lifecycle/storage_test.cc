// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace bridge::local::lifecycle {
namespace {

namespace fs = std::filesystem;
using api::VolumeRequest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StorageTest : public ::testing::Test {
 protected:
  StorageTest() {
    char name[] = "/tmp/storage-test.XXXXXX";
    base_ = mkdtemp(name);
    state_ = *StateDir::Open(base_ + "/state");
    options_.image_dir = base_ + "/images";
    options_.allowed_host_paths = {base_ + "/allowed"};
    fs::create_directories(base_ + "/images/python:3.12");
    fs::create_directories(base_ + "/images/reg.example/team/tool:latest");
    fs::create_directories(base_ + "/allowed");
  }
  ~StorageTest() override { fs::remove_all(base_); }

  std::string Root(const std::string& image) {
    std::string root;
    const auto failure = ResolveImage(options_, image, &root);
    return failure ? failure->body["code"].get<std::string>() : root;
  }

  std::string Prepare(VolumeRequest volume,
                      runtime::Isolation isolation = runtime::Isolation::kOverlay) {
    plan_ = {};
    volume.name = "v";
    volume.mount_path = "/data";
    const auto failure = PrepareVolumes(options_, *state_, isolation, {volume}, &plan_);
    if (failure) return failure->body["code"];
    return plan_.binds[0].source;
  }

  VolumeRequest Host(const std::string& path) {
    VolumeRequest volume;
    volume.backend = VolumeRequest::Backend::kHost;
    volume.source = path;
    return volume;
  }
  VolumeRequest Named(const std::string& name) {
    VolumeRequest volume;
    volume.backend = VolumeRequest::Backend::kNamed;
    volume.source = name;
    return volume;
  }

  std::string base_;
  std::unique_ptr<StateDir> state_;
  StorageOptions options_;
  VolumePlan plan_;
};

TEST_F(StorageTest, FindsUnpackedImages) {
  EXPECT_EQ(Root("python:3.12"), base_ + "/images/python:3.12");
  EXPECT_EQ(Root("reg.example/team/tool"), base_ + "/images/reg.example/team/tool:latest");
}

TEST_F(StorageTest, MissingImagesAreTheHostOrAnError) {
  EXPECT_EQ(Root("other"), "/");
  options_.host_root_for_missing_images = false;
  EXPECT_EQ(Root("other"), "DOCKER::SANDBOX_IMAGE_PULL_FAILED");
  options_.image_dir = "";
  EXPECT_EQ(Root("python:3.12"), "DOCKER::SANDBOX_IMAGE_PULL_FAILED");
}

TEST_F(StorageTest, HostPathsMustBeAllowed) {
  EXPECT_EQ(Prepare(Host("/etc")), "VOLUME::HOST_PATH_NOT_ALLOWED");
  EXPECT_EQ(Prepare(Host(base_ + "/allowed2")), "VOLUME::HOST_PATH_NOT_ALLOWED");
  EXPECT_EQ(Prepare(Host(base_ + "/allowed/../images")), "VOLUME::HOST_PATH_NOT_ALLOWED");
  fs::create_directory_symlink("/etc", base_ + "/allowed/link");
  EXPECT_EQ(Prepare(Host(base_ + "/allowed/link")), "VOLUME::HOST_PATH_NOT_ALLOWED");
  EXPECT_EQ(Prepare(Host(base_ + "/allowed/new/dir")), base_ + "/allowed/new/dir");
  EXPECT_TRUE(fs::is_directory(base_ + "/allowed/new/dir")) << "made where it is missing";
}

TEST_F(StorageTest, NamedVolumesAreMadeKeptAndDeletedOnlyByTheirMaker) {
  VolumeRequest volume = Named("cache");
  volume.create_if_not_exists = false;
  EXPECT_EQ(Prepare(volume), "VOLUME::PVC_NOT_FOUND");
  volume.create_if_not_exists = true;
  volume.delete_with_sandbox = true;
  EXPECT_EQ(Prepare(volume), state_->VolumeDir("cache"));
  EXPECT_THAT(plan_.delete_with_sandbox, ElementsAre("cache"));
  EXPECT_EQ(Prepare(volume), state_->VolumeDir("cache"));
  EXPECT_THAT(plan_.delete_with_sandbox, IsEmpty()) << "it was there already";
}

TEST_F(StorageTest, SubPathsStayInTheVolume) {
  VolumeRequest volume = Named("cache");
  volume.sub_path = "a/b";
  volume.read_only = true;
  EXPECT_EQ(Prepare(volume), state_->VolumeDir("cache") + "/a/b");
  EXPECT_TRUE(plan_.binds[0].read_only);
  EXPECT_EQ(plan_.binds[0].target, "/data");
  fs::create_directory_symlink("/etc", state_->VolumeDir("cache") + "/evil");
  volume.sub_path = "evil/x";
  EXPECT_EQ(Prepare(volume), "VOLUME::INVALID_SUB_PATH");
}

TEST_F(StorageTest, PlainProcessesHaveNoVolumes) {
  EXPECT_EQ(Prepare(Named("cache"), runtime::Isolation::kNone), "VOLUME::UNSUPPORTED_BACKEND");
}

}  // namespace
}  // namespace bridge::local::lifecycle
