// SPDX-License-Identifier: Apache-2.0
//
// A sandbox whose disk is full, and stays so: what it prints passes through that disk, too.
#include <memory>
#include <sstream>
#include <string>

#include "bridge/base/error.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using R = ErrorReason;
using Files = v1::FileService::Stub;

class FullDisk : public BridgeOverLocal, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    local::LocalOptions options;
    options.disk_bytes = 64 << 20;
    Start(/*use_server_proxy=*/false, options);
    if (HasFatalFailure()) return;
    files_ = v1::FileService::NewStub(channel_);
    v1::CreateSandboxRequest request = CreateRequest();
    v1::EnvVar* variable = request.mutable_spec()->add_env();
    variable->set_name("EXECD_EXTRAS");
    variable->set_value(GetParam() ? "true" : "false");
    v1::Sandbox sandbox;
    ASSERT_THAT(Create(request, &sandbox), IsOk());
    id_ = sandbox.sandbox_id();
    v1::RunResponse response;
    ASSERT_THAT(Run(id_, "stat -f -c '%b %S' /srv", &response), IsOk());
    long long blocks = 0, block_bytes = 0;
    std::istringstream(response.stdout()) >> blocks >> block_bytes;
    if (blocks == 0 || blocks * block_bytes > options.disk_bytes) {
      GTEST_SKIP() << "sandboxes have no disk of their own on this machine";
    }
    ASSERT_THAT(Run(id_, "mkdir -p /srv/d; echo x > /srv/f; ln -s f /srv/link", &response), IsOk());
    // Whatever becomes free is taken at once.
    const std::string fill = "while :; do cat /dev/zero; done >> /srv/fill 2>/dev/null";
    ASSERT_THAT(Run(id_, "(" + fill + ") >/dev/null 2>&1 &", &response), IsOk());
  }
  absl::Status MakeDirectory(const std::string& path) {
    v1::MakeDirectoryRequest request;
    request.set_sandbox_id(id_);
    request.set_path(path);
    request.set_parents(true);
    v1::MakeDirectoryResponse response;
    return Call(*files_, &Files::MakeDirectory, request, &response);
  }
  absl::Status Stat(const std::string& path, bool follow) {
    v1::StatRequest request;
    request.set_sandbox_id(id_);
    request.set_path(path);
    request.set_follow_symlink(follow);
    v1::FileInfo info;
    return Call(*files_, &Files::Stat, request, &info);
  }

  std::unique_ptr<Files> files_;
  std::string id_;
};

TEST_P(FullDisk, WhatFailsSaysSoAndIsNotThere) {
  int refused = 0;
  for (int i = 0; i < 200 && refused < 5; ++i) {
    const std::string parent = "/srv/d/p" + std::to_string(i);
    const absl::Status status = MakeDirectory(parent + "/new");
    if (status.ok()) continue;
    ++refused;
    EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_NO_SPACE) << status;
    EXPECT_EQ(ReasonOf(Stat(parent, false)), R::ERROR_REASON_PATH_NOT_FOUND);
  }
  EXPECT_EQ(refused, 5);
}

TEST_P(FullDisk, WhatIsThereIsNotSaidToBeMissing) {
  for (int i = 0; i < 20; ++i) {
    const absl::Status status = Stat("/srv/link", true);
    EXPECT_TRUE(status.ok() || ReasonOf(status) == R::ERROR_REASON_NO_SPACE) << status;
  }
}

INSTANTIATE_TEST_SUITE_P(Daemons, FullDisk, testing::Bool(),
                         [](const auto& info) { return info.param ? "own" : "stock"; });

}  // namespace
}  // namespace bridge
