// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/multipart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/local/execd/splits.h"

namespace bridge::local::execd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Parts as "name/filename:content", "!" at the end when the body was malformed or unfinished.
class Collector final : public PartSink {
 public:
  bool BeginPart(const PartHead& head) override {
    parts.push_back(head.name + "/" + head.filename + ":");
    return true;
  }
  bool PartData(std::string_view bytes) override {
    parts.back() += bytes;
    return true;
  }
  bool EndPart() override {
    ++ended;
    return true;
  }
  std::vector<std::string> parts;
  size_t ended = 0;
};

std::vector<std::string> Parse(const Pieces& pieces) {
  Collector collector;
  MultipartParser parser("b", collector);
  bool ok = true;
  for (const std::string_view piece : pieces) ok = ok && parser.Feed(piece);
  if (!ok || !parser.done()) {
    collector.parts.emplace_back("!");
  } else {
    EXPECT_EQ(collector.ended, collector.parts.size());
  }
  return collector.parts;
}

void ExpectParts(std::string_view body, const std::vector<std::string>& expected) {
  ForEachSplit(body, [&](const Pieces& pieces) {
    ASSERT_EQ(Parse(pieces), expected) << "cut into " << Describe(pieces);
  });
}

TEST(Multipart, TwoParts) {
  ExpectParts(
      "--b\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"m\"\r\n\r\n{}\r\n"
      "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nhi\r\n--b--\r\n",
      {"metadata/m:{}", "file/f:hi"});
}

TEST(Multipart, ContentThatLooksLikeABoundary) {
  ExpectParts("--b\r\n\r\n\r\n--\r\n-b\r\r\n--\r\nx--b\r\n--b--",
              {"/:\r\n--\r\n-b\r\r\n--\r\nx--b"});
}

TEST(Multipart, EmptyParts) {
  ExpectParts("--b\r\nX: y\r\n\r\n\r\n--b--", {"/:"});
  ExpectParts("--b\r\nX: y\r\n\r\n--b--", {"/:"});
  ExpectParts("--b--\r\n", {});
}

TEST(Multipart, PreambleEpilogueAndBlanks) {
  ExpectParts("pre\r\n--b \t\r\n\r\nA\r\n--b--epi\r\n--b\r\n", {"/:A"});
}

TEST(Multipart, PreambleMayHoldHalfABoundary) {
  ExpectParts("--\r\n--b\r\n\r\nA\r\n--b--", {"/:A"});
}

TEST(Multipart, Unfinished) {
  ExpectParts("--b\r\n\r\nA", {"/:", "!"});
  ExpectParts("", {"!"});
  ExpectParts("xx", {"!"});
}

TEST(Multipart, Malformed) { ExpectParts("--bX\r\n\r\nA\r\n--b--", {"!"}); }

TEST(Multipart, BinaryContentOfAnySize) {
  std::string content;
  for (int i = 0; i < 100000; ++i) content += static_cast<char>(i * 7 % 256);
  const std::string body = "--b\r\nContent-Disposition: form-data; name=f; filename=x\r\n\r\n" +
                           content + "\r\n--b--\r\n";
  for (const size_t step : {1u, 3u, 4096u, 1000000u}) {
    Pieces pieces;
    for (size_t i = 0; i < body.size(); i += step) {
      pieces.push_back(std::string_view(body).substr(i, step));
    }
    ASSERT_THAT(Parse(pieces), ElementsAre("f/x:" + content)) << step;
  }
}

TEST(Multipart, EndlessHeadersAreRefused) {
  Collector collector;
  MultipartParser parser("b", collector);
  EXPECT_TRUE(parser.Feed("--b\r\n"));
  bool ok = true;
  for (int i = 0; i < 100 && ok; ++i) ok = parser.Feed("X: " + std::string(1000, 'x') + "\r\n");
  EXPECT_FALSE(ok);
}

TEST(Multipart, ASinkCanStop) {
  class Refuser final : public PartSink {
   public:
    bool BeginPart(const PartHead&) override { return false; }
    bool PartData(std::string_view) override { return true; }
    bool EndPart() override { return true; }
  } refuser;
  MultipartParser parser("b", refuser);
  EXPECT_FALSE(parser.Feed("--b\r\n\r\nA"));
  EXPECT_FALSE(parser.Feed("B"));
}

TEST(Multipart, HeadersOfParts) {
  ExpectParts(
      "--b\r\ncontent-disposition: FORM-DATA; Name=\"a \\\"q\\\" b\"; "
      "filename=f.x\r\n\r\n\r\n--b--",
      {"a \"q\" b/f.x:"});
  // Only form-data counts; a field has no filename; an empty one counts as none.
  ExpectParts("--b\r\nContent-Disposition: attachment; name=a; filename=f\r\n\r\n\r\n--b--",
              {"/:"});
  ExpectParts("--b\r\nContent-Disposition: form-data; name=a; filename=\"\"\r\n\r\n\r\n--b--",
              {"a/:"});
}

TEST(MediaType, Parses) {
  const auto media = ParseMediaType(
      " Multipart/Form-Data ; BOUNDARY=\"a b\\\"c\" ; x=1;filename*=UTF-8''%C3%BC%20x;");
  ASSERT_TRUE(media.has_value());
  EXPECT_EQ(media->type, "multipart/form-data");
  EXPECT_THAT(media->params, ElementsAre(Pair("boundary", "a b\"c"), Pair("filename", "\xc3\xbc x"),
                                         Pair("x", "1")));
  EXPECT_THAT(ParseMediaType("text/plain")->params, IsEmpty());
}

TEST(MediaType, BackslashesOfPathsStay) {
  EXPECT_EQ(ParseMediaType("x; filename=\"C:\\dev\\go\"")->params.at("filename"), "C:\\dev\\go");
}

TEST(MediaType, Refuses) {
  for (const char* text : {"", " ", "; a=b", "x; a", "x; =b", "x; a=", "x; a=\"b", "x a=b"}) {
    EXPECT_FALSE(ParseMediaType(text).has_value() && ParseMediaType(text)->type == "x") << text;
  }
}

}  // namespace
}  // namespace bridge::local::execd
