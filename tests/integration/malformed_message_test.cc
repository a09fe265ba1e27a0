// SPDX-License-Identifier: Apache-2.0
//
// Bytes that are no message of their method, to every method there is, and in the middle of a
// stream.
#include <string>

#include "tests/integration/hostile_fixture.h"

namespace bridge {
namespace {

// gRPC ended these with UNIMPLEMENTED and not a word.
TEST_F(HostileRequests, BytesThatAreNoMessage) {
  int methods = 0;
  for (const char* file : {"bridge", "exec", "files", "isolation", "processes", "sandboxes"}) {
    ForEachMethod(file, [&](const auto&, const std::string& path) {
      for (const char* bad : {"\x0a", "\xff\xff\xff"}) {
        const absl::Status status = FromGrpcStatus(RawCall(channel_, path, {bad}));
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
        EXPECT_THAT(status, HasReason("INVALID_ARGUMENT")) << path;
      }
      ++methods;
    });
  }
  EXPECT_GT(methods, 40);
  // A sandbox_id that is no UTF-8: field 1, one byte.
  for (const char* method : {"ExecService/Run", "ExecService/Execute", "FileService/Stat"}) {
    const absl::Status status = FromGrpcStatus(
        RawCall(channel_, std::string("/sandbox.bridge.v1.") + method, {"\x0a\x01\xff"}));
    EXPECT_THAT(status, HasReason("INVALID_ARGUMENT")) << method;
    EXPECT_THAT(status, HasMessage("UTF-8")) << method;
  }
  NothingWasSent();
}

// A broken message in the middle of an upload counted as its end, and half a file as the whole one.
TEST_F(HostileRequests, HalfAnUploadChangesNothing) {
  ExpectUploadChangesNothing({Chunk(100'000), "\xff\xff"});
}

}  // namespace
}  // namespace bridge
