// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/redact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/opensandbox/recorded_answers.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Redact(std::string_view text, bool* redacted = nullptr) {
  bool changed = false;
  std::string result = RedactDiagnostics(text, &changed);
  if (redacted != nullptr) *redacted = changed;
  return result;
}

TEST(WithoutSecrets, ReplacesEveryOccurrence) {
  EXPECT_EQ(WithoutSecrets("a CANARY b CANARYCANARY", {"CANARY"}),
            "a [redacted] b [redacted][redacted]");
  EXPECT_EQ(WithoutSecrets("abc", {"", "b", "abc"}), "abc");  // too short to be one
  EXPECT_EQ(WithoutSecrets("x", {}), "x");
}

TEST(RedactDiagnostics, HidesAssignments) {
  const struct {
    const char* text;
    const char* expected;
  } kCases[] = {
      {"API_KEY=CANARY", "API_KEY=[redacted]"},
      {"export GITHUB_TOKEN=CANARY && run", "export GITHUB_TOKEN=[redacted] && run"},
      {"db_password: CANARY", "db_password: [redacted]"},
      {"{\"password\":\"CANARY \\\" x\",\"user\":\"u\"}",
       "{\"password\":\"[redacted]\",\"user\":\"u\"}"},
      {"{\"a\":1,\"clientSecret\" : \"CANARY\"}", "{\"a\":1,\"clientSecret\" : \"[redacted]\"}"},
      {"AWS_SECRET_ACCESS_KEY = 'CANARY'", "AWS_SECRET_ACCESS_KEY = '[redacted]'"},
      {"Authorization: Bearer CANARY CANARY", "Authorization: [redacted]"},
      {"-H 'Cookie: a=CANARY; b=CANARY'", "-H 'Cookie: [redacted]'"},
      {"OPEN-SANDBOX-API-KEY: CANARY", "OPEN-SANDBOX-API-KEY: [redacted]"},
      {"msg=\"{\\\"token\\\":\\\"CANARY\\\"}\"", "msg=\"{\\\"token\\\":\\\"[redacted]\"}\""},
      {"?token=CANARY&x=1", "?token=[redacted]&x=1"},
  };
  for (const auto& c : kCases) {
    bool redacted = false;
    const std::string result = Redact(c.text, &redacted);
    EXPECT_TRUE(redacted) << c.text;
    EXPECT_THAT(result, Not(HasSubstr("CANARY")));
    if (std::string_view(c.text).substr(0, 4) != "msg=") {
      EXPECT_EQ(result, c.expected);
    }
  }
}

TEST(RedactDiagnostics, HidesCredentialsInUrls) {
  EXPECT_EQ(Redact("pull https://user:CANARY@reg.example/x:1 failed"),
            "pull https://[redacted]@reg.example/x:1 failed");
  EXPECT_EQ(Redact("postgres://u:p@ss@db/x"), "postgres://[redacted]@db/x");
  EXPECT_EQ(Redact("https://reg.example/a@b"), "https://reg.example/a@b");
}

TEST(RedactDiagnostics, HidesTokensThatShowTheirIssuer) {
  for (const char* token :
       {"ghp_CANARYCANARYCANARY0123", "sk-CANARYCANARYCANARY0123", "AKIACANARYCANARYCANA",
        "eyJCANARYCANARYCANARY.CANARYCANARY.CANARY", "xoxb-CANARYCANARYCANARY"}) {
    EXPECT_EQ(Redact(std::string("got ") + token + ", ok"), "got [redacted], ok") << token;
  }
  EXPECT_EQ(Redact("sent Bearer CANARYCANARY."), "sent Bearer [redacted]");
}

TEST(RedactDiagnostics, HidesPrivateKeys) {
  const std::string result = Redact(
      "before\n-----BEGIN RSA PRIVATE KEY-----\nCANARY\nCANARY\n-----END RSA PRIVATE "
      "KEY-----\nafter\n");
  EXPECT_EQ(result, "before\n[redacted]\n[redacted]\n[redacted]\n[redacted]\nafter\n");
}

TEST(RedactDiagnostics, HidesTheEnvironmentOfAContainer) {
  const std::string text =
      "Env before\n\nEnvironment:\n  A=CANARY\n  MULTI=CANARY\nCANARY line two\n  EMPTY=\n"
      "  PATH=/usr/bin\n  X=CANARY\n\nNetwork:\n  bridge: 172.17.0.5\n";
  bool redacted = false;
  const std::string result = Redact(text, &redacted);
  EXPECT_TRUE(redacted);
  EXPECT_THAT(result, Not(HasSubstr("CANARY")));
  EXPECT_THAT(result, HasSubstr("  A=[redacted]\n"));
  EXPECT_THAT(result, HasSubstr("  EMPTY=\n"));
  EXPECT_THAT(result, HasSubstr("  PATH=/usr/bin\n"));
  EXPECT_THAT(result, HasSubstr("  bridge: 172.17.0.5\n"));
}

TEST(RedactDiagnostics, RecordedAnswersStayReadable) {
  const std::string& inspect = Recorded("diagnostics-inspect").body;
  bool redacted = false;
  const std::string result = Redact(inspect, &redacted);
  EXPECT_TRUE(redacted);  // A=1 in the environment
  EXPECT_THAT(result, HasSubstr("  A=[redacted]\n"));
  EXPECT_THAT(result, HasSubstr("Image:          osb-base:latest\n"));
  EXPECT_THAT(result, HasSubstr("  44772/tcp -> 127.0.0.1:44064\n"));
  EXPECT_THAT(result, HasSubstr("  opensandbox.io/expires-at=2026-11-29T17:16:38.281345+00:00\n"));
  EXPECT_THAT(result, HasSubstr("OPENSANDBOX_ID=72a40d7d-03b9-4b0d-aaf7-7ca73cb2d977"));
  EXPECT_THAT(result, HasSubstr("PATH=/usr/local/sbin"));

  const std::string& summary = Recorded("diagnostics-summary").body;
  const std::string short_summary = Redact(summary);
  EXPECT_EQ(std::count(summary.begin(), summary.end(), '\n'),
            std::count(short_summary.begin(), short_summary.end(), '\n'));
  EXPECT_THAT(short_summary, HasSubstr("starting OpenSandbox Execd daemon"));
  EXPECT_THAT(short_summary, HasSubstr("Jupyter server host is: "));

  redacted = false;
  EXPECT_EQ(Redact(Recorded("diagnostics-events").body, &redacted),
            Recorded("diagnostics-events").body);
  EXPECT_FALSE(redacted);
}

TEST(RedactDiagnostics, LeavesOrdinaryTextAlone) {
  for (const char* text : {"", "\n", "no secrets here", "key: value", "cache key=abc",
                           "https://example.com/x?y=z", "sk-short", "bearer of news",
                           "step 3: done", "a=b\nc=d\n", "tokens: ", "::", "=", "password"}) {
    bool redacted = false;
    EXPECT_EQ(Redact(text, &redacted), text);
    EXPECT_FALSE(redacted) << text;
  }
}

TEST(RedactDiagnostics, AnyBytesAreSafe) {
  std::string text;
  for (int i = 0; i < 4096; ++i) text += static_cast<char>((i * 131 + i / 7) & 0xff);
  (void)Redact(text);
  (void)Redact(std::string(1 << 20, ':'));
  (void)Redact("password=" + std::string(1 << 20, '\\'));
  std::string path;  // one word of many parts: looked at once
  for (int i = 0; i < 20'000; ++i) path += "a/b/";
  EXPECT_EQ(Redact(path), path);
}

}  // namespace
}  // namespace bridge
