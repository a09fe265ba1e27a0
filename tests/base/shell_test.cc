// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/shell.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <string>

namespace bridge {
namespace {

// What a shell makes of it, with an "x" behind it, so that line ends survive.
std::string ReadByAShell(const std::string& word) {
  FILE* pipe = popen(("printf %s " + word + "x").c_str(), "r");
  std::string text;
  for (int c = getc(pipe); c != EOF; c = getc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

TEST(ShellQuote, WrittenAsExpected) {
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuote("a'b c$"), "'a'\\''b c$'");
}

TEST(ShellQuote, EveryByteComesThrough) {
  std::string text = "$HOME `id` $(id) \\ \" ''' \n ; & | > < * ? ~ # !\n";
  for (int c = 1; c < 256; ++c) text += static_cast<char>(c);
  EXPECT_EQ(ReadByAShell(ShellQuote(text)), text + "x");
  EXPECT_EQ(ReadByAShell(ShellQuote("")), "x");
}

}  // namespace
}  // namespace bridge
