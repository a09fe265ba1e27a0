// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/go_text.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <string>

namespace bridge::local::execd {
namespace {

std::string Json(std::string_view text) {
  std::string out;
  AppendGoJsonString(out, text);
  return out;
}

TEST(GoText, ErrnoInGosWords) {
  EXPECT_EQ(GoErrno(ENOENT), "no such file or directory");
  EXPECT_EQ(GoErrno(E2BIG), "argument list too long");
  EXPECT_EQ(GoErrno(EXDEV), "invalid cross-device link");
  EXPECT_EQ(GoErrno(EISDIR), "is a directory");
  EXPECT_EQ(GoErrno(ENOTDIR), "not a directory");
  EXPECT_EQ(GoErrno(EINVAL), "invalid argument");
  EXPECT_EQ(GoErrno(100000), "errno 100000");
  EXPECT_EQ(GoPathError("open", "/nope", ENOENT), "open /nope: no such file or directory");
}

// The texts of the recordings killed-by-*.
TEST(GoText, WaitStatusInGosWords) {
  EXPECT_EQ(GoWaitStatus(0), "");
  EXPECT_EQ(GoWaitStatus(3 << 8), "exit status 3");
  EXPECT_EQ(GoWaitStatus(255 << 8), "exit status 255");
  EXPECT_EQ(GoWaitStatus(SIGKILL), "signal: killed");
  EXPECT_EQ(GoWaitStatus(SIGTERM), "signal: terminated");
  EXPECT_EQ(GoWaitStatus(SIGSEGV), "signal: segmentation fault");
  EXPECT_EQ(GoWaitStatus(SIGINT), "signal: interrupt");
  EXPECT_EQ(GoWaitStatus(SIGPIPE), "signal: broken pipe");
  EXPECT_EQ(GoWaitStatus(SIGABRT | 0x80), "signal: aborted (core dumped)");
  EXPECT_EQ(GoWaitStatus(40), "signal: signal 40");
}

TEST(GoText, QuotesAsGoDoes) {
  EXPECT_EQ(GoQuote("/tmp/$NOT_DEFINED_X"), "\"/tmp/$NOT_DEFINED_X\"");
  EXPECT_EQ(GoQuote("a\"b\\c\n\t\x01\x7f"), "\"a\\\"b\\\\c\\n\\t\\x01\\x7f\"");
  EXPECT_EQ(GoQuote("gr\xc3\xbc\xff"), "\"gr\xc3\xbc\\xff\"");
}

// Texts of the recordings nul-and-controls, u2028-u0085-html, invalid-utf8, utf8-multibyte.
TEST(GoText, EscapesJsonAsGoDoes) {
  EXPECT_EQ(Json(""), "\"\"");
  EXPECT_EQ(Json(std::string("a\0b\1\33[31mred\33[0m\ttab", 20)),
            "\"a\\u0000b\\u0001\\u001b[31mred\\u001b[0m\\ttab\"");
  EXPECT_EQ(Json("\xe2\x80\xa8\xc2\x85 <&> \"q\" \\ "),
            "\"\\u2028\xc2\x85 \\u003c\\u0026\\u003e \\\"q\\\" \\\\ \"");
  EXPECT_EQ(Json("\xe2\x80\xa9"), "\"\\u2029\"");
  EXPECT_EQ(Json("x\xff\xfe\x80y"), "\"x\\ufffd\\ufffd\\ufffdy\"");
  EXPECT_EQ(Json("gr\xc3\xbc\xc3\x9f"
                 "e \xf0\x9f\x98\x80 \xe6\x97\xa5"),
            "\"gr\xc3\xbc\xc3\x9f"
            "e \xf0\x9f\x98\x80 \xe6\x97\xa5\"");
  EXPECT_EQ(Json("\b\f\n\r\x7f"), "\"\\b\\f\\n\\r\x7f\"");
}

TEST(GoText, EachBadByteOfABrokenSequenceIsReplaced) {
  EXPECT_EQ(Json("\xe2\x80"), "\"\\ufffd\\ufffd\"");             // cut short
  EXPECT_EQ(Json("\xc0\xaf"), "\"\\ufffd\\ufffd\"");             // overlong
  EXPECT_EQ(Json("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");  // a surrogate
  EXPECT_EQ(Json("\xf4\x90\x80\x80").size(), 2 + 4 * 6);         // above U+10FFFF
  EXPECT_EQ(Json("\xe2(\xa1"), "\"\\ufffd(\\ufffd\"");
  EXPECT_EQ(Json("\xef\xbf\xbd"), "\"\xef\xbf\xbd\"");  // U+FFFD itself is a character
}

TEST(GoText, Durations) {
  EXPECT_EQ(GoDuration(0), "0s");
  EXPECT_EQ(GoDuration(300), "300ms");
  EXPECT_EQ(GoDuration(1000), "1s");
  EXPECT_EQ(GoDuration(1500), "1.5s");
  EXPECT_EQ(GoDuration(61'005), "1m1.005s");
  EXPECT_EQ(GoDuration(24 * 3'600'000), "24h0m0s");
}

TEST(GoText, Times) {
  EXPECT_EQ(GoTime(1795970447, 310192444), "2026-11-29T16:40:47.310192444Z");
  EXPECT_EQ(GoTime(1795970447, 784160600), "2026-11-29T16:40:47.7841606Z");
  EXPECT_EQ(GoTime(1795970447, 0), "2026-11-29T16:40:47Z");
  EXPECT_EQ(GoTime(1795970447, 1), "2026-11-29T16:40:47.000000001Z");
  EXPECT_EQ(ParseHttpTime("Sun, 29 Nov 2026 16:40:47 GMT"), 1795970447);
  EXPECT_EQ(ParseHttpTime("Sun, 29 Nov 2026 16:40:47 GMT "), -1);
  EXPECT_EQ(ParseHttpTime("yesterday"), -1);
  EXPECT_EQ(ParseHttpTime(""), -1);
}

}  // namespace
}  // namespace bridge::local::execd
