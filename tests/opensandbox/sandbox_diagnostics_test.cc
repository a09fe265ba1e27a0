// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_diagnostics.h"

#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class SandboxDiagnosticsTest : public LifecycleFixture {
 protected:
  SandboxDiagnosticsTest() { fake_.Add("sb-1"); }
  absl::StatusOr<SandboxDiagnostics> Get(DiagnosticsKind kind = DiagnosticsKind::kLogs,
                                         int tail = 100) {
    return Run([=, this] { return GetDiagnostics(client_, Context(), "sb-1", "", kind, tail); });
  }
  void Answer(std::string body) {
    fake_.Script(
        "GET /v1/sandboxes/sb-1/diagnostics/*",
        {.status = 200, .body = std::move(body), .headers = {{"content-type", "text/plain"}}});
  }
};

TEST_F(SandboxDiagnosticsTest, TextAsItCame) {
  Answer("one\ntwo\n");
  const auto diagnostics = Get();
  EXPECT_EQ(diagnostics->text, "one\ntwo\n");
  EXPECT_FALSE(diagnostics->truncated);
  EXPECT_FALSE(diagnostics->redacted);
}

TEST_F(SandboxDiagnosticsTest, WithoutSecrets) {
  Answer("Environment:\n  TOKEN=CANARYENV\n\nlog: password=CANARYPASS key CANARYKEY\n");
  const auto diagnostics = Get(DiagnosticsKind::kInspect);
  EXPECT_TRUE(diagnostics->redacted);
  EXPECT_THAT(diagnostics->text, Not(HasSubstr("CANARY")));
}

TEST_F(SandboxDiagnosticsTest, TheNewestMegabyte) {
  std::string text = "oldest\n";
  while (text.size() < kMaxDiagnosticsBytes + 5000) text += std::string(99, 'x') + "\n";
  Answer(text + "newest\n");
  const auto diagnostics = Get();
  EXPECT_TRUE(diagnostics->truncated);
  EXPECT_LE(diagnostics->text.size(), kMaxDiagnosticsBytes);
  EXPECT_GE(diagnostics->text.size(), kMaxDiagnosticsBytes - 200);
  EXPECT_THAT(diagnostics->text, testing::StartsWith("xxxx"));
  EXPECT_THAT(diagnostics->text, testing::EndsWith("newest\n"));
  EXPECT_EQ(diagnostics->text.size() % 100, 7u);  // cut between lines
}

TEST_F(SandboxDiagnosticsTest, AsksForLessWhereALogIsHuge) {
  Answer(std::string(9 << 20, 'x'));
  Answer("short\n");
  const auto diagnostics = Get(DiagnosticsKind::kLogs, 10'000);
  EXPECT_EQ(diagnostics->text, "short\n");
  EXPECT_TRUE(diagnostics->truncated);
  EXPECT_EQ(fake_.requests()[0].query, "tail=10000");
  EXPECT_EQ(fake_.requests()[1].query, "tail=1250");
}

TEST_F(SandboxDiagnosticsTest, GivesUpOnOneEndlessLine) {
  for (int i = 0; i < 6; ++i) Answer(std::string(9 << 20, 'x'));
  EXPECT_THAT(Get(DiagnosticsKind::kLogs, 10'000), HasReason("UPSTREAM_PROTOCOL"));
  EXPECT_THAT(fake_.requests(), SizeIs(6));
}

TEST_F(SandboxDiagnosticsTest, WhereThereIsNone) {
  fake_.Script("GET *", {.status = 501, .body = R"({"code":"DIAGNOSTICS_NOT_IMPLEMENTED"})"});
  EXPECT_THAT(Get(), HasReason("UNSUPPORTED_FEATURE"));
  fake_.Script("GET *", {.status = 404, .body = R"({"code":"X::NOT_FOUND","message":"m"})"});
  EXPECT_THAT(Get(), HasReason("SANDBOX_NOT_FOUND"));
}

TEST_F(SandboxDiagnosticsTest, OthersAreNotShown) {
  CallContext red = Context();
  red.tenant = "red";
  EXPECT_THAT(
      Run([&] { return GetDiagnostics(client_, red, "sb-1", "", DiagnosticsKind::kLogs, 1); }),
      HasReason("NOT_YOUR_SANDBOX"));
}

}  // namespace
}  // namespace bridge
