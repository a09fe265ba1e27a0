// SPDX-License-Identifier: Apache-2.0
//
// ReplaceText through gRPC, a whole bridge and a whole local OpenSandbox.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bridge/base/error.h"
#include "sandbox/bridge/v1/files.grpc.pb.h"
#include "tests/integration/bridge_over_local.h"

namespace bridge {
namespace {

using R = ErrorReason;

struct Variant {
  const char* name;
  const char* compat;
  const char* faults;
};

class ReplaceText : public BridgeOverLocal, public ::testing::WithParamInterface<Variant> {
 protected:
  void SetUp() override {
    local::LocalOptions options;
    options.compat = GetParam().compat;
    Start(false, std::move(options));
    ASSERT_NE(bridge_, nullptr);
    Faults(GetParam().faults);
    files_ = v1::FileService::NewStub(channel_);
    id_ = MustCreate();
  }
  v1::ReplaceTextRequest Request(const std::string& from, const std::string& to) const {
    v1::ReplaceTextRequest request;
    request.set_sandbox_id(id_);
    request.set_path("/tmp/f");
    request.set_old_text(from);
    request.set_new_text(to);
    return request;
  }
  // Any thread.
  absl::Status Replace(const v1::ReplaceTextRequest& request, int64_t* count) const {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    v1::ReplaceTextResponse response;
    const absl::Status status = FromGrpcStatus(files_->ReplaceText(&context, request, &response));
    *count = response.count();
    return status;
  }
  std::string Output(const std::string& line) {
    v1::RunResponse response;
    EXPECT_THAT(Run(id_, line, &response), IsOk());
    return response.stdout();
  }

  std::unique_ptr<v1::FileService::Stub> files_;
  std::string id_;
};

INSTANTIATE_TEST_SUITE_P(Daemons, ReplaceText,
                         ::testing::Values(Variant{"own", "current", ""},
                                           Variant{"stock", "current", kStockDaemon},
                                           Variant{"old", "1.1.0", kStockDaemon}),
                         [](const auto& info) { return info.param.name; });

TEST_P(ReplaceText, CountsAndGuards) {
  Output("printf 'a b a' > /tmp/f");
  v1::ReplaceTextRequest request = Request("a", "xyz");
  request.set_expected_count(3);
  int64_t count = 0;
  EXPECT_EQ(ReasonOf(Replace(request, &count)), R::ERROR_REASON_PRECONDITION_FAILED);
  request.set_expected_count(2);
  EXPECT_THAT(Replace(request, &count), IsOk());
  EXPECT_EQ(count, 2);
  EXPECT_EQ(Output("cat /tmp/f"), "xyz b xyz");
}

// A small request may ask for terabytes; nothing is made of them.
TEST_P(ReplaceText, ResultsAreBounded) {
  Output("head -c 1048576 /dev/zero | tr '\\0' a > /tmp/f");
  int64_t count = 0;
  const absl::Status status = Replace(Request("a", std::string(17, 'b')), &count);
  EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_FILE_TOO_LARGE) << status;
  EXPECT_EQ(MetadataOf(status)["size_bytes"], "17825792");
  EXPECT_EQ(Output("tr -d a < /tmp/f | wc -c"), "0\n");
  EXPECT_THAT(Replace(Request("a", std::string(16, 'b')), &count), IsOk());
  EXPECT_EQ(count, 1048576);
}

// The larger the file is, the longer it takes to look at it again.
TEST_P(ReplaceText, LargeFilesHaveTheirTime) {
  Output("{ head -c 12582912 /dev/zero; printf x; } > /tmp/f");
  int64_t count = 0;
  EXPECT_THAT(Replace(Request("x", "y"), &count), IsOk());
  EXPECT_EQ(CommandsWith("\"timeout\":11000"), *GetParam().faults == '\0' ? 0 : 1);
}

// A search that begins anew at each byte takes minutes for this, and all calls wait for it.
TEST_P(ReplaceText, WordsThatNearlyOccurEverywhere) {
  Output("head -c 8388608 /dev/zero | tr '\\0' a > /tmp/f");
  int64_t count = -1;
  EXPECT_THAT(Replace(Request(std::string(900 << 10, 'a') + "b", "c"), &count), IsOk());
  EXPECT_EQ(count, 0);
}

// Whatever the link leads to, and whether there is something to replace.
TEST_P(ReplaceText, LinksAreRefusedWhenTheyAreNotToBeFollowed) {
  for (const std::string target : {"/tmp/g", "/tmp/nothing", "/tmp", "f"}) {
    Output("printf x > /tmp/g; ln -sfn " + target + " /tmp/f");
    v1::ReplaceTextRequest request = Request("not there", "y");
    request.set_no_follow(true);
    int64_t count = 0;
    EXPECT_EQ(ReasonOf(Replace(request, &count)), R::ERROR_REASON_PATH_REJECTED) << target;
    request.set_expected_count(1);
    EXPECT_EQ(ReasonOf(Replace(request, &count)), R::ERROR_REASON_PATH_REJECTED) << target;
  }
}

// Each has a word of its own to replace, and nobody's replacement is lost. Who was too slow may
// repeat the very call.
TEST_P(ReplaceText, OfManyAtOnceNoneIsLost) {
  constexpr int kWriters = 12;
  std::string words, wanted;
  for (int i = 0; i < kWriters; ++i) {
    words += "<old" + std::to_string(i) + ">";
    wanted += "<new" + std::to_string(i) + ">";
  }
  Output("printf '" + words + "' > /tmp/f");
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([this, i] {
      const v1::ReplaceTextRequest request =
          Request("<old" + std::to_string(i) + ">", "<new" + std::to_string(i) + ">");
      absl::Status status;
      int64_t count = 0;
      // Who fails was overtaken by one of the others, each of which is done once.
      for (int attempt = 0; attempt < kWriters; ++attempt) {
        status = Replace(request, &count);
        if (status.ok()) break;
        EXPECT_EQ(ReasonOf(status), R::ERROR_REASON_CONFLICT) << status;
      }
      EXPECT_THAT(status, IsOk());
      EXPECT_EQ(count, 1);
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Output("cat /tmp/f"), wanted);
}

}  // namespace
}  // namespace bridge
