// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/pty_codec.h"

#include <gtest/gtest.h>
#include <limits.h>

#include <string>
#include <vector>

namespace bridge {
namespace {

const std::string kNonce(32, 'b');

std::vector<std::string> Frames(std::string_view bytes, int run = 0) {
  std::vector<std::string> frames;
  while (!bytes.empty()) frames.push_back(PtyPipeInput(kNonce, run, &bytes));
  return frames;
}

// What bash's `printf %b` makes of it, as its manual says.
std::string Printf(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
    } else if (text[++i] == 'n') {
      bytes += '\n';
    } else if (text[i] == '\\') {
      bytes += '\\';
    } else {
      EXPECT_EQ(text[i], '0');
      bytes += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 3)), nullptr, 8));
      i += 3;
    }
  }
  return bytes;
}

TEST(PtyPipeInput, FramesAreWrittenWholeAndHoldNoHeaderButTheirOwn) {
  std::string input;
  for (int i = 0; i < 256; ++i) input += static_cast<char>(i);
  input += "\n=" + kNonce + " 0 5\n" + std::string(9000, 'x') + std::string(9000, '\0');
  for (size_t size = 1; size < input.size(); size = size * 5 / 4 + 1) {
    for (const std::string& part : {input.substr(0, size), input.substr(input.size() - size)}) {
      std::string seen;
      for (const std::string& frame : Frames(part, 123456)) {
        ASSERT_LE(frame.size(), size_t{PIPE_BUF} + 1);
        ASSERT_EQ(frame.substr(0, 3), std::string("\0\n=", 3));
        const size_t end = frame.find('\n', 2);
        ASSERT_NE(end, std::string::npos);
        const std::string data = frame.substr(end + 1);
        EXPECT_EQ(frame.substr(3, end - 3), kNonce + " 123456 " + std::to_string(data.size()));
        EXPECT_EQ(data.find_first_of(std::string("\n=\0\x01\x7f", 5)), std::string::npos);
        seen += Printf(data);
      }
      EXPECT_TRUE(seen == part) << size;
    }
  }
}

TEST(PtyPipeInput, FramesAreFilled) {
  EXPECT_EQ(Frames(std::string(4000, 'x')).size(), 1u);
  EXPECT_LE(Frames(std::string(256 * 1024, 'x')).size(), 66u);
  EXPECT_LE(Frames(std::string(256 * 1024, '\0')).size(), 330u);
}

TEST(PtyPipeInput, NothingIsTheEnd) {
  std::string_view nothing;
  EXPECT_EQ(PtyPipeInput(kNonce, 3, &nothing), std::string(1, '\0') + "\n=" + kNonce + " 3 0\n");
}

}  // namespace
}  // namespace bridge
