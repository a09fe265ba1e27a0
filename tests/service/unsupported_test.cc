// SPDX-License-Identifier: Apache-2.0
#include "bridge/service/unsupported.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bridge/base/error.h"

namespace bridge {
namespace {

using ::testing::HasSubstr;

// The generic service: tests/server/server_test.cc, on a real server.
TEST(UnsupportedFeature, IsTypedAndNamesTheFeature) {
  const absl::Status status = UnsupportedFeature("files.watch");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReasonOf(status), ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE);
  EXPECT_EQ(MetadataOf(status)["feature"], "files.watch");
  EXPECT_THAT(std::string(status.message()), HasSubstr("files.watch"));
}

}  // namespace
}  // namespace bridge
