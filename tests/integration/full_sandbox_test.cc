// SPDX-License-Identifier: Apache-2.0
//
// Programs in a sandbox may take every process and thread that it may have. Its daemon must live
// on, whatever it was about to start when there was no room for it, and the bridge must say what is
// the matter.
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "sandbox/bridge/v1/processes.grpc.pb.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using Processes = v1::ProcessService::Stub;

class FullSandbox : public BridgeOverLocal {
 protected:
  void SetUp() override {
    BridgeOverLocal::SetUp();
    if (HasFatalFailure()) return;
    processes_ = v1::ProcessService::NewStub(channel_);
    id_ = MustCreate();
    for (const char* root : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"}) {
      const std::string group = std::string(root) + "/local-opensandbox/" + id_;
      struct stat info;
      if (stat((group + "/pids.max").c_str(), &info) == 0) group_ = group;
    }
    if (group_.empty()) GTEST_SKIP() << "no limit of processes can be set on this machine";
  }

  // From now on the sandbox has room for so many more processes and threads.
  void Leave(int room) {
    int used = 0;
    std::ifstream(group_ + "/pids.current") >> used;
    ASSERT_GT(used, 0);
    ASSERT_TRUE(std::ofstream(group_ + "/pids.max") << used + room << std::flush);
  }
  void LiftLimit() { ASSERT_TRUE(std::ofstream(group_ + "/pids.max") << "max" << std::flush); }

  // Success, or what a caller may be told of a sandbox that is full.
  static bool SaysFull(const absl::Status& status) {
    const ErrorReason reason = ReasonOf(status);
    return status.ok() || reason == ErrorReason::ERROR_REASON_QUOTA_EXCEEDED ||
           reason == ErrorReason::ERROR_REASON_UPSTREAM_UNAVAILABLE ||
           reason == ErrorReason::ERROR_REASON_SANDBOX_UNREACHABLE ||
           reason == ErrorReason::ERROR_REASON_UPSTREAM_TIMEOUT;  // a shell waits for room
  }
  absl::Status StartAndDelete(bool terminal) {
    v1::StartProcessRequest request;
    request.set_sandbox_id(id_);
    request.mutable_spec()->set_shell("sleep 600");
    if (terminal) request.mutable_spec()->mutable_terminal()->set_columns(80);
    if (terminal) request.mutable_spec()->mutable_terminal()->set_rows(24);
    v1::StartProcessResponse started;
    const absl::Status status = Call(*processes_, &Processes::StartProcess, request, &started);
    if (!status.ok()) return status;
    v1::DeleteProcessRequest end;
    end.set_sandbox_id(id_);
    end.set_process_id(started.process_id());
    v1::DeleteProcessResponse gone;
    return Call(*processes_, &Processes::DeleteProcess, end, &gone);
  }
  void ExpectAllWorks() {
    v1::RunResponse response;
    EXPECT_THAT(Run(id_, "echo works", &response), IsOk());
    EXPECT_EQ(response.stdout(), "works\n");
    EXPECT_THAT(StartAndDelete(/*terminal=*/true), IsOk());
  }

  std::unique_ptr<Processes> processes_;
  std::string id_;
  std::string group_;
};

TEST_F(FullSandbox, CommandsAreRefusedAndTheDaemonLives) {
  ExpectAllWorks();
  int refused = 0;
  for (int room = 0; room < 8; ++room) {
    Leave(room);
    v1::RunResponse response;
    const absl::Status status = Run(id_, "echo hi", &response);
    EXPECT_TRUE(SaysFull(status)) << "with room for " << room << ": " << status;
    if (status.ok()) {
      EXPECT_EQ(response.stdout(), "hi\n") << "with room for " << room;
    }
    refused += status.ok() ? 0 : 1;
    LiftLimit();
  }
  EXPECT_GT(refused, 0);
  ExpectAllWorks();
}

TEST_F(FullSandbox, ProcessesAreRefusedAndTheDaemonLives) {
  ExpectAllWorks();
  int refused = 0;
  for (const bool terminal : {true, false}) {
    for (int room = 0; room < 8; ++room) {
      Leave(room);
      const absl::Status status = StartAndDelete(terminal);
      EXPECT_TRUE(SaysFull(status)) << "with room for " << room << ": " << status;
      refused += status.ok() ? 0 : 1;
      LiftLimit();
    }
  }
  EXPECT_GT(refused, 0);
  ExpectAllWorks();
}

// A sandbox that is too full to be asked for its shell was once said to have none.
TEST_F(FullSandbox, WhatWasNotAskedIsNotDenied) {
  Connect(local_->url());  // a bridge that knows nothing of this sandbox
  processes_ = v1::ProcessService::NewStub(channel_);
  Leave(0);
  const absl::Status status = StartAndDelete(/*terminal=*/true);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(SaysFull(status)) << status;
  LiftLimit();
  ExpectAllWorks();
}

}  // namespace
}  // namespace bridge
