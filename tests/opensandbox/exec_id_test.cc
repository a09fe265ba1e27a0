// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/exec_id.h"

#include <gtest/gtest.h>

#include "bridge/base/error.h"

namespace bridge {
namespace {

using Route = ExecId::Route;

TEST(ExecId, ComesBackAsItWas) {
  for (const ExecId& id :
       {ExecId{Route::kOwn, "0af3", ""}, ExecId{Route::kLines, "ab-1", "", absl::Milliseconds(50)},
        ExecId{Route::kFiles, "0af3", "9e", absl::Hours(1)}}) {
    const auto parsed = ParseExecId(FormatExecId(id));
    ASSERT_TRUE(parsed.ok()) << FormatExecId(id);
    EXPECT_EQ(parsed->route, id.route);
    EXPECT_EQ(parsed->command_id, id.command_id);
    EXPECT_EQ(parsed->nonce, id.nonce);
    EXPECT_EQ(parsed->timeout, id.timeout);
  }
}

TEST(ExecId, WhatNoBridgeMadeNamesNoExec) {
  for (const char* text :
       {"",          "x",          "o",         "o.a",       "o.a.0",
        "o..0.0",    "o.a.0.0.",   "o.a.0.0.0", "x.a.0.0",   "oo.a.0.0",
        "o.a/b.0.0", "o.../x.0.0", "o.a.-1.0",  "o.a.9x.0",  "o.a.99999999999999999999.0",
        "f.a.0.0",   "o.a.0.b",    "f.a.0.b c", "f.a.0.b\n", "O.a.0.0"}) {
    EXPECT_EQ(ReasonOf(ParseExecId(text).status()), ErrorReason::ERROR_REASON_PROCESS_NOT_FOUND)
        << text;
  }
  EXPECT_FALSE(ParseExecId("o." + std::string(65, 'a') + ".0.0").ok());
}

}  // namespace
}  // namespace bridge
