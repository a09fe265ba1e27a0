// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/ascii.h"

#include <gtest/gtest.h>

namespace bridge {
namespace {

TEST(Ascii, ComparesWithoutCase) {
  EXPECT_TRUE(EqualsIgnoreCase("Running", "rUNNING"));
  EXPECT_TRUE(EqualsIgnoreCase("", ""));
  EXPECT_FALSE(EqualsIgnoreCase("Running", "Running "));
  EXPECT_FALSE(EqualsIgnoreCase("[", "{"));                // 0x5b and 0x7b differ by the case bit
  EXPECT_FALSE(EqualsIgnoreCase("\xc3\x9c", "\xc3\xbc"));  // no letters of ASCII
}

TEST(Ascii, LowersLettersOfAsciiOnly) {
  EXPECT_EQ(AsciiLowered("HTTPS://Host-[1]@Z"), "https://host-[1]@z");
  EXPECT_EQ(AsciiLowered("\xc3\x9c"), "\xc3\x9c");
  EXPECT_EQ(AsciiLowered(""), "");
}

TEST(Ascii, FindsStartsAndParts) {
  EXPECT_TRUE(StartsWithIgnoreCase("HTTPS://h", "https://"));
  EXPECT_FALSE(StartsWithIgnoreCase("http", "https"));
  EXPECT_TRUE(StartsWithIgnoreCase("x", ""));
  EXPECT_TRUE(ContainsIgnoreCase("my_API_Key", "api_key"));
  EXPECT_FALSE(ContainsIgnoreCase("api", "api_key"));
  EXPECT_TRUE(ContainsIgnoreCase("", ""));
}

}  // namespace
}  // namespace bridge
