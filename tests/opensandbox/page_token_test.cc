// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/page_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "tests/fakes/status_matchers.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PagePosition Position() {
  return {.page = 3,
          .offset = 7,
          .total = 41,
          .last = absl::FromUnixMicros(1'795'970'798'290'233),
          .ties = {1, 0xdeadbeef}};
}

std::string Raw(std::string_view text) {
  return absl::WebSafeBase64Escape(absl::string_view(text.data(), text.size()));
}

TEST(PageToken, ComesBackAsItWas) {
  const auto position = DecodePageToken(EncodePageToken(Position(), "f"), "f");
  ASSERT_THAT(position, IsOk());
  EXPECT_EQ(position->page, 3);
  EXPECT_EQ(position->offset, 7);
  EXPECT_EQ(position->total, 41);
  EXPECT_EQ(position->last, Position().last);
  EXPECT_THAT(position->ties, ElementsAre(1, 0xdeadbeef));

  const auto start = DecodePageToken(EncodePageToken({}, ""), "");
  ASSERT_THAT(start, IsOk());
  EXPECT_EQ(start->page, 1);
  EXPECT_EQ(start->total, -1);
  EXPECT_EQ(start->last, std::nullopt);
  EXPECT_THAT(start->ties, IsEmpty());
}

TEST(PageToken, IsPlainText) {
  for (const char c : EncodePageToken(Position(), "f")) {
    EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_') << c;
  }
}

TEST(PageToken, BelongsToItsFilter) {
  EXPECT_THAT(DecodePageToken(EncodePageToken(Position(), "a=1"), "a=2"),
              RejectsField("page_token"));
}

TEST(PageToken, AnythingElseIsRefused) {
  const std::string hash = "811c9dc5";  // FNV-1a of nothing
  ASSERT_EQ(ShortHash(""), 0x811c9dc5u);
  ASSERT_THAT(DecodePageToken(Raw("1." + hash + ".1.0.-1.."), ""), IsOk());
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("1"), std::string("1...."),
        "2." + hash + ".1.0.-1..", "1." + hash + ".0.0.-1..", "1." + hash + ".-1.0.-1..",
        "1." + hash + ".1000001.0.-1..", "1." + hash + ".1.-1.-1..", "1." + hash + ".1.0.-2..",
        "1." + hash + ".1.0.-1.x.", "1." + hash + ".1.0.-1..123", "1." + hash + ".1.0.-1..zzzzzzzz",
        "1." + hash + ".1.0.-1...", "1." + hash + ".99999999999999999999.0.-1..",
        "1." + hash + ".1.0.-1.9223372036854775807.",
        "1." + hash + ".1.0.-1.." + std::string(8 * 257, '0')}) {
    EXPECT_THAT(DecodePageToken(Raw(text), ""), RejectsField("page_token")) << text;
  }
  for (const std::string& token :
       {std::string("%%%"), std::string("a b"), std::string(9000, 'A'), std::string("\0\xff", 2)}) {
    EXPECT_THAT(DecodePageToken(token, ""), RejectsField("page_token"));
  }
}

TEST(PageToken, EveryPrefixIsHarmless) {
  const std::string token = EncodePageToken(Position(), "f");
  for (size_t n = 0; n < token.size(); ++n) (void)DecodePageToken(token.substr(0, n), "f");
}

TEST(PageToken, ManyTiesAreCut) {
  PagePosition position;
  position.ties.assign(1000, 7);
  EXPECT_EQ(DecodePageToken(EncodePageToken(position, ""), "")->ties.size(), kMaxTies);
}

}  // namespace
}  // namespace bridge
