// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/multipart.h"

#include <gtest/gtest.h>

namespace bridge {
namespace {

std::string BoundaryOf(const MultipartUpload& upload) {
  return upload.content_type().substr(upload.content_type().find("boundary=") + 9);
}

TEST(MultipartUpload, HasTheFormThatExecdDemands) {
  const MultipartUpload upload("/tmp/a", 0640, "agent", "staff");
  const std::string boundary = BoundaryOf(upload);
  EXPECT_EQ(upload.preamble(),
            "--" + boundary +
                "\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"metadata\"\r\n"
                "Content-Type: application/json\r\n\r\n"
                "{\"group\":\"staff\",\"mode\":640,\"owner\":\"agent\",\"path\":\"/tmp/a\"}\r\n--" +
                boundary +
                "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n"
                "Content-Type: application/octet-stream\r\n\r\n");
  EXPECT_EQ(upload.epilogue(), "\r\n--" + boundary + "--\r\n");
}

TEST(MultipartUpload, NoPathCanEndAHeader) {
  for (const char* path : {"/tmp/re\"port.txt", "/tmp/end\\", "/tmp/a\r\nX-Evil: 1", "/tmp/;name=x",
                           "/tmp/--boundary"}) {
    const MultipartUpload upload(path, std::nullopt);
    size_t lines = 0;
    for (const char c : upload.preamble()) lines += c == '\n';
    EXPECT_EQ(lines, 9u) << path;
    EXPECT_EQ(upload.preamble().find("X-Evil: 1\r\n"), std::string::npos);
    EXPECT_EQ(upload.preamble().find("mode"), std::string::npos);
  }
}

TEST(MultipartUpload, EachHasItsOwnBoundary) {
  EXPECT_NE(BoundaryOf(MultipartUpload("/a", 0)), BoundaryOf(MultipartUpload("/a", 0)));
}

TEST(ModeDigits, AreTheOctalDigitsReadAsDecimal) {
  EXPECT_EQ(ModeDigits(0644), 644);
  EXPECT_EQ(ModeDigits(0), 0);
  EXPECT_EQ(ModeDigits(04755), 755);
  for (unsigned mode = 0; mode <= 0777; ++mode) EXPECT_EQ(ModeFromDigits(ModeDigits(mode)), mode);
  EXPECT_EQ(ModeFromDigits(1777), 01777u);
  for (int digits : {-1, 8, 680, 7778, 10000}) EXPECT_FALSE(ModeFromDigits(digits)) << digits;
}

}  // namespace
}  // namespace bridge
