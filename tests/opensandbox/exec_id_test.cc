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
  // With the right digits at its end.
  for (const ExecId& id : {ExecId{Route::kOwn, ""}, ExecId{Route::kOwn, "a/b"},
                           ExecId{Route::kOwn, "../x"}, ExecId{Route::kOwn, "a", "b"},
                           ExecId{Route::kOwn, std::string(65, 'a')}, ExecId{Route::kFiles, "a"},
                           ExecId{Route::kFiles, "a", "b c"}, ExecId{Route::kFiles, "a", "b.c"},
                           ExecId{Route::kLines, "a", "", absl::Milliseconds(-1)}}) {
    EXPECT_FALSE(ParseExecId(FormatExecId(id)).ok()) << FormatExecId(id);
  }
}

// Of such ids the daemon's word on the true one was told.
TEST(ExecId, AnIdThatWasChangedNamesNoExec) {
  for (const ExecId& id :
       {ExecId{Route::kOwn, "0af3", ""}, ExecId{Route::kLines, "ab-1", "", absl::Milliseconds(50)},
        ExecId{Route::kFiles, "0af3", "9e01", absl::Hours(1)}}) {
    const std::string text = FormatExecId(id);
    for (size_t i = 0; i < text.size(); ++i) {
      std::string changed = text;
      changed[i] = changed[i] == '0' ? '1' : '0';
      EXPECT_FALSE(ParseExecId(changed).ok()) << changed;
      EXPECT_FALSE(ParseExecId(text.substr(0, i)).ok()) << text.substr(0, i);
    }
    EXPECT_FALSE(ParseExecId(text + "ff").ok());
    EXPECT_FALSE(ParseExecId(text + ".0").ok());
  }
}

}  // namespace
}  // namespace bridge
