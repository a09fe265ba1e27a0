// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/output_ring.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

namespace bridge::local::execd::extra {
namespace {

std::string ReadAll(const OutputRing& ring, int64_t from, size_t step) {
  std::string out;
  while (from < ring.end()) {
    const std::string piece = ring.Read(from, step);
    if (piece.empty()) return out + "<nothing>";
    out += piece;
    from += static_cast<int64_t>(piece.size());
  }
  return out;
}

TEST(OutputRing, StartsInMemoryAndGoesOnInAFile) {
  OutputRing ring(1 << 20);
  std::string all;
  for (int i = 0; i < 300; ++i) {
    const std::string line = "line " + std::to_string(i) + std::string(1000, 'x') + "\n";
    all += line;
    ring.Append(line);
    ASSERT_EQ(ring.end(), static_cast<int64_t>(all.size()));
    ASSERT_EQ(ring.begin(), 0);
  }
  EXPECT_TRUE(ReadAll(ring, 0, 70'000) == all);
  EXPECT_EQ(ring.Read(5, 3), all.substr(5, 3));
  EXPECT_EQ(ring.Room(0), (1 << 20) - static_cast<int64_t>(all.size()));
}

TEST(OutputRing, AgreesWithAPlainStringForRandomAppends) {
  std::mt19937 random(3);
  for (const int64_t capacity : {64 << 10, 100'000, 300'000}) {
    OutputRing ring(capacity);
    std::string all;
    for (int step = 0; step < 60; ++step) {
      std::string piece(random() % 40'000, '\0');
      for (char& c : piece) c = static_cast<char>(random());
      ring.Append(piece);
      all += piece;
      const int64_t begin = std::max<int64_t>(0, static_cast<int64_t>(all.size()) - capacity);
      ASSERT_EQ(ring.begin(), begin);
      ASSERT_EQ(ring.end(), static_cast<int64_t>(all.size()));
      ASSERT_TRUE(ReadAll(ring, begin, 33'333) == all.substr(static_cast<size_t>(begin)));
    }
  }
}

TEST(OutputRing, OnePieceLargerThanTheRing) {
  OutputRing ring(100'000);
  std::string piece(250'000, 'a');
  piece.back() = 'z';
  ring.Append(piece);
  EXPECT_EQ(ring.end(), 250'000);
  EXPECT_EQ(ring.begin(), 150'000);
  EXPECT_TRUE(ReadAll(ring, 150'000, 1 << 20) == piece.substr(150'000));
}

// The disk has an end: here the largest file that this process may write.
TEST(OutputRing, AFullDiskMakesItSmallerAndLosesNothingThatItHolds) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 200'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  OutputRing ring(1 << 20);
  std::string all;
  for (int i = 0; i < 50; ++i) {
    const std::string piece(10'000, static_cast<char>('a' + i % 26));
    ring.Append(piece);
    all += piece;
    ASSERT_EQ(ring.end(), static_cast<int64_t>(all.size()));
    ASSERT_TRUE(ReadAll(ring, ring.begin(), 33'333) ==
                all.substr(static_cast<size_t>(ring.begin())));
  }
  EXPECT_GT(ring.end() - ring.begin(), 100'000);
  setrlimit(RLIMIT_FSIZE, &before);
}

TEST(OutputRing, WithoutAnyFileMemoryHasToDo) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  OutputRing ring(1 << 20);
  std::string all;
  for (int i = 0; i < 30; ++i) {
    const std::string piece(10'000, static_cast<char>('a' + i % 26));
    ring.Append(piece);
    all += piece;
    ASSERT_TRUE(ReadAll(ring, ring.begin(), 33'333) ==
                all.substr(static_cast<size_t>(ring.begin())));
  }
  EXPECT_EQ(ring.end() - ring.begin(), 64 << 10);
  setrlimit(RLIMIT_FSIZE, &before);
}

}  // namespace
}  // namespace bridge::local::execd::extra
