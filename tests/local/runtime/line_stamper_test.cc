// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/line_stamper.h"

#include <gtest/gtest.h>

#include "tests/local/execd/splits.h"

namespace bridge::local::runtime {
namespace {

constexpr timespec kNow = {1795970798, 797089636};
constexpr char kStamp[] = "2026-11-29T16:46:38.797089636Z ";

TEST(Stamper, EveryLineOnceInAllSplits) {
  const std::string input = "one\n\ntwo\r\nlast";
  const std::string want =
      std::string(kStamp) + "one\n" + kStamp + "\n" + kStamp + "two\r\n" + kStamp + "last\n";
  execd::ForEachSplit(input, [&](const execd::Pieces& pieces) {
    LineStamper stamper;
    std::string got;
    for (const std::string_view piece : pieces) got += stamper.Stamp(piece, kNow);
    got += stamper.Finish();
    ASSERT_EQ(got, want) << execd::Describe(pieces);
  });
}

TEST(Stamper, NothingToFinishAfterAWholeLine) {
  LineStamper stamper;
  stamper.Stamp("line\n", kNow);
  EXPECT_EQ(stamper.Finish(), "");
  EXPECT_EQ(stamper.Stamp("", kNow), "");
}

TEST(Stamper, NanosecondsHaveNineDigits) {
  LineStamper stamper;
  EXPECT_EQ(stamper.Stamp("x", {0, 5}), "1970-01-01T00:00:00.000000005Z x");
}

}  // namespace
}  // namespace bridge::local::runtime
