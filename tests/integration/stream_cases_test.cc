// SPDX-License-Identifier: Apache-2.0
//
// Cases from the field about the streams that carry output: cut, empty, not a stream at all, huge,
// quiet for long. A command must never get an end that nobody saw, nor be run twice.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kStock[] =
    R"(rule { half: EXECD route: "/v1/capabilities" action { answer { status: 404 } } } )";
constexpr size_t kGrpcDefaultLimit = 4 << 20;

struct Way {
  const char* name;
  const char* plan;   // what makes the daemon this one
  const char* route;  // where its commands are started
};

class StreamCases : public BridgeOverLocal, public ::testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    BridgeOverLocal::SetUp();
    Faults(GetParam().plan);
    id_ = MustCreate();
    v1::RunResponse run;
    ASSERT_THAT(Run(id_, "true", &run), IsOk());  // what is asked once of a sandbox is asked
  }
  // Once, to the next command; what was sent before is forgotten.
  void Break(const std::string& action) {
    local_->recorder().Clear();
    Faults(std::string(GetParam().plan) + R"(rule { half: EXECD method: "POST" route: ")" +
           GetParam().route + R"(" times: 1 action { )" + action + " } }");
  }

  std::string id_;
};

class OwnStreamCases : public BridgeOverLocal {
 protected:
  void SetUp() override {
    BridgeOverLocal::SetUp();
    id_ = MustCreate();
    v1::RunResponse run;
    ASSERT_THAT(Run(id_, "true", &run), IsOk());
  }
  std::string id_;
};

INSTANTIATE_TEST_SUITE_P(Daemons, StreamCases,
                         ::testing::Values(Way{"own", "", "/v1/exec"},
                                           Way{"stock", kStock, "/command"}),
                         [](const auto& info) { return info.param.name; });

// A lost connection (behind the first event, which names the command) looked like exit 0, or half
// of the output was gone.
TEST_P(StreamCases, AStreamThatIsCutLosesNothing) {
  // 200 KB, and a code that only the command's own end can tell.
  const std::string line = "seq 1 30000; exit 9";
  const std::string expected_end = "\n29999\n30000\n";
  for (const char* cut : {"close_after_bytes: 400", "reset_after_bytes: 400"}) {
    Break(cut);
    v1::RunResponse run;
    ASSERT_THAT(Run(id_, line, &run), IsOk()) << cut;
    EXPECT_EQ(run.stdout().size(), 168'894u) << cut;
    EXPECT_THAT(run.stdout(), ::testing::EndsWith(expected_end));
    EXPECT_FALSE(run.lossy());
    EXPECT_EQ(run.outcome().kind_case(), v1::Outcome::kExitCode) << run.outcome().DebugString();
    EXPECT_EQ(run.outcome().exit_code(), 9);
    EXPECT_EQ(CommandsWith("seq 1 30000"), 1) << cut;
  }
}

// The answer was lost before it named the command, which then ran on without an owner.
TEST_P(StreamCases, ACommandWhoseStartIsCutIsNotLeftRunning) {
  const std::string nap = "8001." + std::to_string(getpid());
  const std::string count = "pgrep -fc '^sleep " + nap.substr(0, 4) + "[.]" + nap.substr(5) + "$'";
  for (const char* cut : {"close_after_bytes: 20", "reset_after_bytes: 0"}) {
    Faults(std::string(GetParam().plan) + R"(rule { half: EXECD method: "POST" route: ")" +
           GetParam().route + R"(" times: 1 action { )" + cut + R"( } }
           rule { half: EXECD route: "/v1/exec/{id}/output" action { answer { status: 502 } } })");
    v1::RunResponse run;
    const absl::Status status = Run(id_, "exec sleep " + nap, &run);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_FALSE(run.has_outcome());
    std::string left = "?";
    const absl::Time until = absl::Now() + absl::Seconds(20);
    while (left != "0\n" && absl::Now() < until) {
      ASSERT_THAT(Run(id_, count, &run), IsOk());
      left = run.stdout();
    }
    EXPECT_EQ(left, "0\n") << cut;
  }
}

// Our own daemon's commands can be found again even then.
TEST_F(OwnStreamCases, ACommandWhoseStartIsCutIsFoundAgain) {
  for (const char* cut : {"close_after_bytes: 20", "reset_after_bytes: 0"}) {
    local_->recorder().Clear();
    Faults(
        std::string(R"(rule { half: EXECD method: "POST" route: "/v1/exec" times: 1 action { )") +
        cut + " } }");
    v1::RunResponse run;
    ASSERT_THAT(Run(id_, "seq 1 30000; exit 9", &run), IsOk()) << cut;
    EXPECT_EQ(run.stdout().size(), 168'894u);
    EXPECT_EQ(run.outcome().exit_code(), 9);
    EXPECT_FALSE(run.lossy());
    EXPECT_EQ(Count("POST", "/v1/exec"), 1u);
  }
}

// Nothing came back, and that counted as success.
TEST_P(StreamCases, AnEmptyStreamIsAFailureAndIsNotRepeated) {
  const bool own = std::string(GetParam().name) == "own";
  Break(std::string(R"(answer { status: 200 header { name: "Content-Type" value: ")") +
        (own ? "application/vnd.sandbox.frames.v1" : "text/event-stream") + R"(" } })");
  v1::RunResponse run;
  EXPECT_THAT(Run(id_, "echo once", &run), Not(IsOk()));
  EXPECT_FALSE(run.has_outcome());
  EXPECT_EQ(CommandsWith("echo once"), 0);  // a second one would have reached the daemon
}

// A parse error hid the real message.
TEST_P(StreamCases, WhatIsNoStreamIsNoExit) {
  struct Case {
    const char* answer;
    const char* reason;
    const char* says;
  };
  constexpr char kJson[] = R"(header { name: "Content-Type" value: "application/json" })";
  const std::string failed =
      std::string("status: 500 ") + kJson + R"(body: '{"code":"RUNTIME_ERROR","message":"boom"}')";
  const std::string page =
      R"(status: 200 header { name: "Content-Type" value: "text/html" } body: "<html>hi</html>")";
  for (const Case& c : {Case{failed.c_str(), "UPSTREAM_FAILED", "500"},
                        Case{page.c_str(), "UPSTREAM_PROTOCOL", "content type"}}) {
    Break(std::string("answer { ") + c.answer + " }");
    v1::RunResponse run;
    const absl::Status status = Run(id_, "echo once", &run);
    EXPECT_THAT(status, AllOf(HasReason(c.reason), HasMessage(c.says)));
    EXPECT_THAT(status.ToString(), Not(HasSubstr("<html>")));
    EXPECT_FALSE(run.has_outcome());
    EXPECT_EQ(CommandsWith("echo once"), 0);
  }
}

// RESOURCE_EXHAUSTED for a large file or a large directory.
TEST_P(StreamCases, NoMessageIsLargerThanGrpcTakes) {
  v1::RunResponse run;
  ASSERT_THAT(Run(id_,
                  "head -c 9437184 /dev/zero > /tmp/large; mkdir /tmp/many; cd /tmp/many; "
                  "seq -f 'a-name-of-more-than-thirty-characters-%.0f' 1 20000 | xargs touch",
                  &run),
              IsOk());
  auto files = v1::FileService::NewStub(channel_);
  size_t largest = 0, bytes = 0;
  {
    grpc::ClientContext context;
    v1::ReadFileRequest request;
    request.set_sandbox_id(id_);
    request.set_path("/tmp/large");
    auto stream = files->ReadFile(&context, request);
    v1::ReadFileChunk chunk;
    while (stream->Read(&chunk)) {
      bytes += chunk.data().size();
      largest = std::max(largest, chunk.ByteSizeLong());
    }
    EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
  }
  EXPECT_EQ(bytes, size_t{9} << 20);
  size_t names = 0;
  {
    grpc::ClientContext context;
    v1::ListDirectoryRequest request;
    request.set_sandbox_id(id_);
    request.set_path("/tmp/many");
    auto stream = files->ListDirectory(&context, request);
    v1::FileInfoBatch batch;
    while (stream->Read(&batch)) {
      names += static_cast<size_t>(batch.entries_size());
      largest = std::max(largest, batch.ByteSizeLong());
    }
    EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsOk());
  }
  EXPECT_EQ(names, 20'000u);
  EXPECT_LE(largest, size_t{1} << 20);
  static_assert((size_t{1} << 20) < kGrpcDefaultLimit);
}

}  // namespace
}  // namespace bridge
