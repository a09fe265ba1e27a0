// SPDX-License-Identifier: Apache-2.0
//
// How `sbx shell` behaves on a terminal is in shell_reconnect_test.cc and in
// tests/integration/programs/shell_test.py.
#include "frontends/cli/shell_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bridge::cli {
namespace {

// What comes out for keys typed in these pieces; "!" at its end when the person leaves.
std::string Filtered(const std::vector<std::string>& pieces) {
  EscapeFilter filter;
  std::string out;
  for (const std::string& piece : pieces) {
    bool leave = false;
    out += filter.Feed(piece, &leave);
    if (leave) return out + "!";
  }
  return out;
}

TEST(EscapeFilter, OnlyAtTheBeginningOfALine) {
  EXPECT_EQ(Filtered({"~."}), "!");
  EXPECT_EQ(Filtered({"ls\r~.rest"}), "ls\r!");
  EXPECT_EQ(Filtered({"ls\n~."}), "ls\n!");
  EXPECT_EQ(Filtered({"cd ~.\r"}), "cd ~.\r");
  EXPECT_EQ(Filtered({"~~.\r"}), "~.\r");
  EXPECT_EQ(Filtered({"~/x\r"}), "~/x\r");
  EXPECT_EQ(Filtered({"~\r~."}), "~\r!");
  EXPECT_EQ(Filtered({std::string("\0\x03\x04\x1b[A\xff", 7)}),
            std::string("\0\x03\x04\x1b[A\xff", 7));
}

TEST(EscapeFilter, AcrossPieces) {
  const std::string keys = "a\r~~b\r~x\r~.never";
  for (size_t cut = 0; cut <= keys.size(); ++cut) {
    for (size_t next = cut; next <= keys.size(); ++next) {
      EXPECT_EQ(Filtered({keys.substr(0, cut), keys.substr(cut, next - cut), keys.substr(next)}),
                "a\r~b\r~x\r!")
          << cut << " " << next;
    }
  }
}

}  // namespace
}  // namespace bridge::cli
