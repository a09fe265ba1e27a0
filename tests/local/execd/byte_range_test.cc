// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/byte_range.h"

#include <gtest/gtest.h>

#include <string>

namespace bridge::local::execd {
namespace {

using Kind = ByteRange::Kind;

void ExpectPart(std::string_view header, int64_t size, int64_t start, int64_t length) {
  const ByteRange range = ParseByteRange(header, size);
  EXPECT_EQ(range.kind, Kind::kPart) << header;
  EXPECT_EQ(range.start, start) << header;
  EXPECT_EQ(range.length, length) << header;
}

// Recordings download-range-*, on a file of ten bytes.
TEST(ByteRange, AsRecorded) {
  ExpectPart("bytes=2-4", 10, 2, 3);
  ExpectPart("bytes=8-", 10, 8, 2);
  ExpectPart("bytes=-3", 10, 7, 3);
  ExpectPart("bytes=0-0,5-6", 10, 0, 1);
  ExpectPart("bytes=8-100", 10, 8, 2);
  ExpectPart("bytes=-100", 10, 0, 10);
  EXPECT_EQ(ParseByteRange("bytes=10-", 10).kind, Kind::kNoOverlap);
  EXPECT_EQ(ParseByteRange("bytes=100-200", 10).kind, Kind::kNoOverlap);
  EXPECT_EQ(ParseByteRange("items=0-1", 10).kind, Kind::kMalformed);
  EXPECT_EQ(ParseByteRange("bytes=abc", 10).kind, Kind::kMalformed);
  EXPECT_EQ(ParseByteRange("bytes=5-2", 10).kind, Kind::kMalformed);
  EXPECT_EQ(ParseByteRange("", 10).kind, Kind::kNone);
  EXPECT_EQ(ParseByteRange("bytes=0-", 0).kind, Kind::kNone);
}

TEST(ByteRange, AFirstRangeThatOverlapsIsServed) {
  ExpectPart("bytes=20-30, 3-4 ,7-7", 10, 3, 2);
  ExpectPart("bytes=,,1-1", 10, 1, 1);
}

TEST(ByteRange, OneBadElementSpoilsAll) {
  EXPECT_EQ(ParseByteRange("bytes=0-1,x", 10).kind, Kind::kMalformed);
  EXPECT_EQ(ParseByteRange("bytes=-", 10).kind, Kind::kMalformed);
  EXPECT_EQ(ParseByteRange("bytes=--1", 10).kind, Kind::kMalformed);
  EXPECT_EQ(ParseByteRange("bytes=1--1", 10).kind, Kind::kMalformed);
  EXPECT_EQ(ParseByteRange("bytes=99999999999999999999-", 10).kind, Kind::kMalformed);
  EXPECT_EQ(ParseByteRange("Bytes=0-1", 10).kind, Kind::kMalformed);
}

TEST(ByteRange, NoRangeInTheList) {
  EXPECT_EQ(ParseByteRange("bytes=", 10).kind, Kind::kNone);
  EXPECT_EQ(ParseByteRange("bytes= , ", 10).kind, Kind::kNone);
}

TEST(ByteRange, NeverLeavesTheFile) {
  for (const char* header : {"bytes=0-", "bytes=9-9", "bytes=-1", "bytes=0-9223372036854775807"}) {
    const ByteRange range = ParseByteRange(header, 10);
    ASSERT_EQ(range.kind, Kind::kPart) << header;
    EXPECT_GE(range.start, 0);
    EXPECT_LE(range.start + range.length, 10);
  }
}

}  // namespace
}  // namespace bridge::local::execd
