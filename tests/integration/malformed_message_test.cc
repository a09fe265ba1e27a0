// SPDX-License-Identifier: Apache-2.0
//
// Bytes that are no message of their method, to every method there is, and in the middle of a
// stream.
#include <string>

#include "google/protobuf/descriptor.h"
#include "tests/fakes/raw_call.h"
#include "tests/integration/hostile_fixture.h"

namespace bridge {
namespace {

// gRPC ended these with UNIMPLEMENTED and not a word.
TEST_F(HostileRequests, BytesThatAreNoMessage) {
  const google::protobuf::DescriptorPool& pool =
      *google::protobuf::DescriptorPool::generated_pool();
  int methods = 0;
  for (const char* file : {"bridge", "exec", "files", "isolation", "processes", "sandboxes"}) {
    const auto* described =
        pool.FindFileByName("sandbox/bridge/v1/" + std::string(file) + ".proto");
    ASSERT_NE(described, nullptr) << file;
    for (int s = 0; s < described->service_count(); ++s) {
      for (int m = 0; m < described->service(s)->method_count(); ++m) {
        const auto* method = described->service(s)->method(m);
        const std::string path = "/" + method->service()->full_name() + "/" + method->name();
        for (const char* bad : {"\x0a", "\xff\xff\xff"}) {
          const absl::Status status = FromGrpcStatus(RawCall(channel_, path, {bad}));
          EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
          EXPECT_THAT(status, HasReason("INVALID_ARGUMENT")) << path;
        }
        ++methods;
      }
    }
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
  const std::string id = MustCreate();
  v1::RunResponse run;
  ASSERT_THAT(Run(id, "printf old > /tmp/f", &run), IsOk());
  v1::WriteFileChunk header;
  header.mutable_header()->set_sandbox_id(id);
  header.mutable_header()->mutable_options()->set_path("/tmp/f");
  v1::WriteFileChunk data;
  data.set_data(std::string(100'000, 'n'));
  const absl::Status status =
      FromGrpcStatus(RawCall(channel_, "/sandbox.bridge.v1.FileService/WriteFile",
                             {header.SerializeAsString(), data.SerializeAsString(), "\xff\xff"}));
  EXPECT_THAT(status, HasReason("INVALID_ARGUMENT"));
  ASSERT_THAT(Run(id, "cat /tmp/f; ls -A /tmp | wc -l", &run), IsOk());
  EXPECT_EQ(run.stdout().substr(0, 3), "old");
}

}  // namespace
}  // namespace bridge
