// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/bootstrap_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bridge::local::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Spec, SurvivesTheTrip) {
  const BootstrapSpec spec = {{"A=1", "B=two\nlines=ü", "EMPTY="},
                              {"/opt/opensandbox/execd", "--listen-fd=6"},
                              {"-c", "", "echo 'x'"}};
  const BootstrapSpec again = DecodeSpec(EncodeSpec(spec));
  EXPECT_EQ(again.env, spec.env);
  EXPECT_EQ(again.execd, spec.execd);
  EXPECT_EQ(again.entrypoint, spec.entrypoint) << "empty arguments count";
}

TEST(Spec, IgnoresWhatItDoesNotKnowAndACutEnd) {
  const std::string known = EncodeSpec({{"A=1"}, {}, {}});
  EXPECT_THAT(DecodeSpec(known + std::string("zfuture\0", 8) + known).env,
              ElementsAre("A=1", "A=1"));
  EXPECT_THAT(DecodeSpec("eA=1").env, IsEmpty());
  EXPECT_THAT(DecodeSpec("").entrypoint, IsEmpty());
}

TEST(Status, LineSurvivesTheTrip) {
  ExitStatus status;
  EXPECT_TRUE(ParseStatusLine(StatusLine({137, 1795970796123456789}), &status));
  EXPECT_EQ(status.code, 137);
  EXPECT_EQ(status.unix_nanos, 1795970796123456789);
}

TEST(Status, HalfALineIsNone) {
  ExitStatus status;
  for (const char* bad : {"", "exit 1 2", "nonsense\n", "exit\n", "exit 1\n"}) {
    EXPECT_FALSE(ParseStatusLine(bad, &status)) << bad;
  }
}

}  // namespace
}  // namespace bridge::local::runtime
