// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/error_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bridge/base/utf8.h"
#include "tests/opensandbox/recorded_answers.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseErrorBody, FindsTheWordsInEveryShape) {
  const struct {
    const char* body;
    const char* code;
    const char* words;
    bool from_application;
  } kCases[] = {
      {R"({"code":"X","message":"m"})", "X", "m", true},
      {R"({"detail":{"code":"X","message":"m"}})", "X", "m", true},
      {R"({"detail":"m"})", "", "m", true},
      {R"({"detail":[{"loc":["body","timeout"],"msg":"m"}]})", "", "body.timeout: m", true},
      {R"({"detail":[{"loc":["body","volumes",0,"name"],"msg":"a"},{"msg":"b"}]})", "",
       "body.volumes.0.name: a; b", true},
      {R"({"error":"m"})", "", "m", true},
      {R"({"error":{"code":"X","message":"m"}})", "X", "m", true},
      {R"({"errors":[{"message":"m"}]})", "", "m", true},
      {R"({"code":"X"})", "X", "", true},
      {R"({"code":"X","message":null,"detail":"m"})", "X", "m", true},
      {R"("m")", "", "m", false},
      {"null", "", "", false},
      {"", "", "", false},
      {"{}", "", "", false},
      {R"({"errors":[]})", "", "", false},
      {"m", "", "m", false},
      {"Internal Server Error", "", "Internal Server Error", false},
      {R"({"code":7,"message":["x"]})", "", "", false},
      {"{broken", "", "{broken", false},
  };
  for (const auto& c : kCases) {
    const ErrorBody body = ParseErrorBody("application/json", c.body);
    EXPECT_EQ(body.code, c.code) << c.body;
    EXPECT_EQ(body.words, c.words) << c.body;
    EXPECT_EQ(body.from_application, c.from_application) << c.body;
    EXPECT_FALSE(body.html);
  }
}

TEST(ParseErrorBody, ARoutersNotFoundIsNotTheApplications) {
  EXPECT_FALSE(ParseErrorBody("", Recorded("unknown-route").body).from_application);
  EXPECT_FALSE(ParseErrorBody("", Recorded("wrong-method").body).from_application);
  const ErrorBody own = ParseErrorBody("", Recorded("get-unknown-id").body);
  EXPECT_TRUE(own.from_application);
  EXPECT_EQ(own.code, "DOCKER::SANDBOX_NOT_FOUND");
  EXPECT_EQ(own.words, "Sandbox 00000000-0000-4000-8000-000000000000 not found.");
}

TEST(ParseErrorBody, NeverRepeatsTheRequestOfA422) {
  // The recorded answers repeat the whole request under "input".
  for (const char* name :
       {"create-entrypoint-missing", "create-image-auth-incomplete", "create-volume-two-backends",
        "create-template-id", "create-image-and-snapshot", "create-env-reserved-lifecycle"}) {
    const HttpResponse& response = Recorded(name);
    ASSERT_EQ(response.status, 422) << name;
    ASSERT_THAT(response.body, HasSubstr("\"input\"")) << name;
    const ErrorBody body = ParseErrorBody("application/json", response.body);
    EXPECT_FALSE(body.words.empty()) << name;
    EXPECT_THAT(body.words, Not(HasSubstr("osb-base"))) << name << ": " << body.words;
    EXPECT_THAT(body.words, Not(HasSubstr("/dev/null"))) << name << ": " << body.words;
  }
  const ErrorBody body =
      ParseErrorBody("application/json",
                     R"({"detail":[{"loc":["body","env"],"msg":"bad","input":{"TOKEN":"CANARY"},
          "ctx":{"given":"CANARY"}}]})");
  EXPECT_EQ(body.words, "body.env: bad");
}

TEST(ParseErrorBody, RecognisesWebPages) {
  const char kNginx[] =
      "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>nginx</body></html>";
  for (const char* type : {"text/html", "TEXT/HTML; charset=utf-8", "", "application/json"}) {
    const ErrorBody body = ParseErrorBody(type, kNginx);
    EXPECT_TRUE(body.html) << type;
    EXPECT_FALSE(body.login_page);
    EXPECT_EQ(body.words, "502 Bad Gateway");
    EXPECT_FALSE(body.from_application);
  }
  EXPECT_TRUE(ParseErrorBody("text/html", "x").html);
  EXPECT_TRUE(ParseErrorBody("", "\n <!DOCTYPE html><p>").html);
  const ErrorBody login = ParseErrorBody(
      "text/html", "<html><title class=x>Sign in\nto Corp</title><form><input type=\"password\">");
  EXPECT_TRUE(login.login_page);
  EXPECT_EQ(login.words, "Sign in to Corp");
}

TEST(ParseErrorBody, IsShortCleanAndUtf8) {
  const ErrorBody body =
      ParseErrorBody("text/plain", "a\r\nb\x1b[31m\x01 c\xff" + std::string(10'000, 'x'));
  EXPECT_LE(body.words.size(), kMaxUpstreamWords);
  EXPECT_TRUE(IsValidUtf8(body.words));
  EXPECT_THAT(body.words, testing::StartsWith("a b [31m c\xef\xbf\xbdx"));
  EXPECT_THAT(body.words, testing::EndsWith("..."));
  for (const char c : body.words) EXPECT_GE(static_cast<unsigned char>(c), 0x20);

  const std::string wide = R"({"message":")" + std::string(101, 'a') + [] {
    std::string s;
    for (int i = 0; i < 200; ++i) s += "\xe6\x97\xa5";
    return s;
  }() + "\"}";
  EXPECT_TRUE(IsValidUtf8(ParseErrorBody("", wide).words));
  EXPECT_LE(ParseErrorBody("", wide).words.size(), kMaxUpstreamWords);
}

TEST(ParseErrorBody, DepthAndSizeAreBounded) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"detail":)";
  EXPECT_EQ(ParseErrorBody("", deep + "\"m\"" + std::string(100'000, '}')).words, "");
  (void)ParseErrorBody("", std::string(8 << 20, '['));
  EXPECT_LE(ParseErrorBody("", std::string(8 << 20, 'x')).words.size(), kMaxUpstreamWords);
}

TEST(OneLine, CutsBetweenCharacters) {
  EXPECT_EQ(OneLine("abc", 3), "abc");
  EXPECT_EQ(OneLine("abcdefg", 6), "abc...");
  EXPECT_EQ(OneLine("  a \t b\n", 10), "a b");
  EXPECT_EQ(OneLine("aa\xc3\xbc\xc3\xbc\xc3\xbc", 7), "aa\xc3\xbc...");
  EXPECT_EQ(OneLine("", 5), "");
}

}  // namespace
}  // namespace bridge
