// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/replay_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace bridge::local::execd {
namespace {

TEST(ReplayRing, HoldsEverythingUntilFull) {
  ReplayRing ring(8);
  int64_t offset = -1;
  EXPECT_EQ(ring.ReadFrom(0, &offset), "");
  ring.Append("abc");
  EXPECT_EQ(ring.ReadFrom(0, &offset), "abc");
  EXPECT_EQ(offset, 0);
  EXPECT_EQ(ring.ReadFrom(2, &offset), "c");
  EXPECT_EQ(offset, 2);
  EXPECT_EQ(ring.ReadFrom(3, &offset), "");
  EXPECT_EQ(ring.ReadFrom(99, &offset), "");
  EXPECT_EQ(ring.begin(), 0);
  EXPECT_EQ(ring.end(), 3);
}

TEST(ReplayRing, KeepsTheNewest) {
  ReplayRing ring(4);
  ring.Append("abcdef");
  int64_t offset = 0;
  EXPECT_EQ(ring.ReadFrom(0, &offset), "cdef");
  EXPECT_EQ(offset, 2);
  ring.Append("g");
  EXPECT_EQ(ring.ReadFrom(0, &offset), "defg");
  EXPECT_EQ(offset, 3);
  EXPECT_EQ(ring.ReadFrom(5, &offset), "fg");
  EXPECT_EQ(offset, 5);
}

// Recording pty-replay-gap: 3,000,005 bytes, the last mebibyte is held.
TEST(ReplayRing, AsRecorded) {
  ReplayRing ring(1 << 20);
  for (int i = 0; i < 3000; ++i) ring.Append(std::string(1000, 'x'));
  ring.Append("DONE\n");
  int64_t offset = 0;
  const std::string all = ring.ReadFrom(0, &offset);
  EXPECT_EQ(offset, 0x1dc6c5);
  EXPECT_EQ(all.size(), size_t{1} << 20);
  EXPECT_TRUE(all.ends_with("xDONE\n"));
  EXPECT_EQ(ring.ReadFrom(2999990, &offset), "xxxxxxxxxxDONE\n");
  EXPECT_EQ(offset, 0x2dc6b6);
}

TEST(ReplayRing, AgreesWithAPlainStringForRandomAppends) {
  std::mt19937 random(7);
  for (const size_t capacity : {1u, 2u, 7u, 64u}) {
    ReplayRing ring(capacity);
    std::string all;
    for (int step = 0; step < 500; ++step) {
      std::string piece(random() % (2 * capacity + 2), '\0');
      for (char& c : piece) c = static_cast<char>('a' + random() % 26);
      ring.Append(piece);
      all += piece;
      const size_t since = random() % (all.size() + 3);
      const size_t oldest = all.size() - std::min(all.size(), capacity);
      const size_t from = std::min(std::max(since, oldest), all.size());
      int64_t offset = 0;
      ASSERT_EQ(ring.ReadFrom(static_cast<int64_t>(since), &offset), all.substr(from));
      ASSERT_EQ(ring.end(), static_cast<int64_t>(all.size()));
      ASSERT_EQ(ring.begin(), static_cast<int64_t>(oldest));
    }
  }
}

}  // namespace
}  // namespace bridge::local::execd
