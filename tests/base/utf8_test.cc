// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace bridge {
namespace {

TEST(Utf8, ValidTextStays) {
  for (const std::string text : {"", "plain", "na\xC3\xAFve", "\xE6\x97\xA5", "\xF0\x9F\x98\x80",
                                 "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF", "\xEE\x80\x80"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
    EXPECT_EQ(ToValidUtf8(text), text);
  }
  EXPECT_TRUE(IsValidUtf8(std::string("a\0b", 3)));
}

TEST(Utf8, WhatRfc3629ForbidsIsReplacedByteByByte) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(ToValidUtf8("\xFF"), r);
  EXPECT_EQ(ToValidUtf8("a\x80z"), "a" + r + "z");
  EXPECT_EQ(ToValidUtf8("\xC0\xAF"), r + r);                  // overlong '/'
  EXPECT_EQ(ToValidUtf8("\xE0\x80\xAF"), r + r + r);          // the same in three
  EXPECT_EQ(ToValidUtf8("\xED\xA0\x80"), r + r + r);          // a surrogate
  EXPECT_EQ(ToValidUtf8("\xF4\x90\x80\x80"), r + r + r + r);  // U+110000
  EXPECT_EQ(ToValidUtf8("\xF0\x9F\x98"), r + r + r);          // cut off
  EXPECT_EQ(ToValidUtf8("\xC3("), r + "(");
}

TEST(Utf8, BadBytesCanBeShown) {
  EXPECT_EQ(EscapeNonUtf8("na\xC3\xAFve"), "na\xC3\xAFve");
  EXPECT_EQ(EscapeNonUtf8("/tmp/\xFF\x0Az\x80"), "/tmp/\\xff\nz\\x80");
}

TEST(Utf8, ACutAnywhereLeavesAValidPrefix) {
  const std::string text = "na\xC3\xAFve \xF0\x9F\x98\x80 \xE6\x97\xA5";
  for (size_t n = 0; n <= text.size() + 1; ++n) {
    const std::string_view prefix = Utf8Prefix(text, n);
    EXPECT_LE(prefix.size(), n);
    EXPECT_TRUE(IsValidUtf8(prefix)) << n;
    EXPECT_GE(prefix.size() + 3, std::min(n, text.size())) << n;
  }
  EXPECT_EQ(Utf8Prefix(text, text.size()), text);
}

}  // namespace
}  // namespace bridge
