// SPDX-License-Identifier: Apache-2.0
//
// What the fuzzer found worth keeping, in every build.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/frontends/epp/fuzz/conversation_fuzz.h"

namespace bridge::epp {
namespace {

TEST(Conversation, KeepsItsRulesOverTheCorpus) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/frontends/epp/fuzz/corpus")) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_EQ(PlayConversation(text.str()), "") << entry.path();
    ++files;
  }
  EXPECT_GE(files, 20);
}

// The rules themselves: what the harness would call a violation is seen.
TEST(Conversation, AnswersWhatItUnderstands) {
  const std::string one = R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})";
  EXPECT_EQ(
      PlayConversation("\x10" + one + "\n" + R"({"jsonrpc":"2.0","id":2,"method":"shutdown"})"),
      "");
}

}  // namespace
}  // namespace bridge::epp
