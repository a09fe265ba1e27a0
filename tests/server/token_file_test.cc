// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "bridge/base/error.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using R = ErrorReason;

// printf %s red-token | sha256sum, and so on.
constexpr char kRed[] = "54a5e79d1fbbf68c35f00fdbb1eb6ffe7b0c63e83e37cc5be9c6daa4c9a4d6c2";

std::string Hex(const TokenDigest& hash) {
  std::string text;
  for (const uint8_t byte : hash) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

std::string Line(const std::string& tenant, const std::string& token) {
  return tenant + ":" + Hex(Sha256Of(token)) + "\n";
}

// FIPS 180-2, appendix B.1.
TEST(TokenDigest, IsTheRealOne) {
  EXPECT_EQ(Hex(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(Sha256Of("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(ParseTokenFile, TakesCommentsBlanksAndBothCases) {
  const auto entries = ParseTokenFile(
      "# who may call\n"
      "\n"
      "  red:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD \r\n"
      "*:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].tenant, "red");
  EXPECT_EQ((*entries)[0].hash, Sha256Of("abc"));
  EXPECT_EQ((*entries)[1].tenant, "");
  EXPECT_EQ((*entries)[1].hash, Sha256Of(""));
}

TEST(ParseTokenFile, NamesTheBadLineAndNeverItsContent) {
  const std::string good = Line("red", "t");
  for (const std::string& bad : {
           std::string("my-secret-token-in-clear"),
           std::string("red:my-secret-token-in-clear"),
           std::string("red:") + std::string(63, 'a'),
           std::string("red:") + std::string(65, 'a'),
           std::string("red:") + std::string(64, 'g'),
           std::string(":") + kRed,
           std::string("r d:") + kRed,
           std::string("-red:") + kRed,
           std::string("red.:") + kRed,
           std::string(64, 'r') + ":" + kRed,
           std::string("red=x:") + kRed,
           std::string("\xFF:") + kRed,
       }) {
    const auto entries = ParseTokenFile(good + bad + "\n");
    ASSERT_FALSE(entries.ok()) << bad;
    EXPECT_THAT(std::string(entries.status().message()), HasSubstr("line 2"));
    EXPECT_THAT(std::string(entries.status().message()), Not(HasSubstr("secret")));
  }
}

TEST(ParseTokenFile, AFileWithoutTokensIsAMistake) {
  EXPECT_FALSE(ParseTokenFile("").ok());
  EXPECT_FALSE(ParseTokenFile("# nothing\n\n").ok());
}

TEST(TokenAuthenticator, KnowsWhoseATokenIs) {
  TokenAuthenticator authenticator(*ParseTokenFile(Line("red", "red-token-1") +
                                                   Line("red", "red-token-2") +
                                                   Line("blue", "blue-token") + Line("*", "root")));
  EXPECT_EQ(authenticator.Authenticate("Bearer red-token-1")->tenant, "red");
  EXPECT_EQ(authenticator.Authenticate("bearer red-token-2")->tenant, "red");
  EXPECT_EQ(authenticator.Authenticate("BEARER blue-token")->tenant, "blue");
  EXPECT_EQ(authenticator.Authenticate("Bearer root")->tenant, "");
}

TEST(TokenAuthenticator, RefusesTheRestWithoutRepeatingIt) {
  TokenAuthenticator authenticator(*ParseTokenFile(Line("red", "right-token")));
  for (const std::string& authorization :
       {std::string(""), std::string("Bearer"), std::string("Bearer "),
        std::string("Bearer wrong-token"), std::string("Bearer right-token "),
        std::string("Bearer  right-token"), std::string("Bearer right-toke"),
        std::string("right-token"), std::string("Basic right-token"),
        "Bearer " + std::string(10'000, 'x'),
        // The hash of a token is not the token.
        "Bearer " + Hex(Sha256Of("right-token"))}) {
    const auto caller = authenticator.Authenticate(authorization);
    ASSERT_FALSE(caller.ok()) << authorization;
    EXPECT_EQ(ReasonOf(caller.status()), R::ERROR_REASON_CALLER_UNAUTHENTICATED);
    EXPECT_THAT(std::string(caller.status().message()), Not(HasSubstr("token-")));
    EXPECT_THAT(std::string(caller.status().message()), Not(HasSubstr("right")));
  }
}

TEST(TokenAuthenticator, ReplacedTokensCountAtOnceUnderLoad) {
  TokenAuthenticator authenticator(*ParseTokenFile(Line("red", "old")));
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  callers.reserve(3);
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      while (!stop) {
        const bool one = authenticator.Authenticate("Bearer old").ok();
        (void)one;
        EXPECT_FALSE(authenticator.Authenticate("Bearer neither").ok());
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    authenticator.Replace(*ParseTokenFile(Line("red", i % 2 == 0 ? "new" : "old")));
  }
  authenticator.Replace(*ParseTokenFile(Line("red", "new")));
  EXPECT_TRUE(authenticator.Authenticate("Bearer new").ok());
  EXPECT_FALSE(authenticator.Authenticate("Bearer old").ok());
  stop = true;
  for (auto& caller : callers) caller.join();
}

}  // namespace
}  // namespace bridge
