// SPDX-License-Identifier: Apache-2.0
#include "frontends/epp/base64.h"

#include <string>

#include "gtest/gtest.h"

namespace bridge::epp {
namespace {

std::string Bytes(size_t n) {
  std::string bytes;
  for (size_t i = 0; i < n; ++i) bytes += static_cast<char>(i * 7 + 3);
  return bytes;
}

// RFC 4648, section 10.
TEST(Base64, AgreesWithTheRfc) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    std::string encoded;
    Base64Writer writer(&encoded);
    writer.Append(bytes);
    writer.Finish();
    EXPECT_EQ(encoded, text);
    EXPECT_EQ(*Base64Reader(text).Next(100), bytes);
    EXPECT_EQ(Base64DecodedSize(text), std::string(bytes).size());
  }
}

TEST(Base64Writer, GivesTheSameForAllParts) {
  const std::string bytes = Bytes(23);
  std::string whole;
  Base64Writer once(&whole);
  once.Append(bytes);
  once.Finish();
  for (size_t i = 0; i <= bytes.size(); ++i) {
    for (size_t j = i; j <= bytes.size(); ++j) {
      std::string parts;
      Base64Writer writer(&parts);
      writer.Append(std::string_view(bytes).substr(0, i));
      writer.Append(std::string_view(bytes).substr(i, j - i));
      writer.Append(std::string_view(bytes).substr(j));
      writer.Finish();
      ASSERT_EQ(parts, whole) << i << " " << j;
    }
  }
}

TEST(Base64Reader, GivesPartsOfAnySize) {
  const std::string bytes = Bytes(100);
  std::string text;
  Base64Writer writer(&text);
  writer.Append(bytes);
  writer.Finish();
  for (size_t size = 1; size <= 120; ++size) {
    Base64Reader reader(text);
    std::string all;
    while (true) {
      const auto part = reader.Next(size);
      ASSERT_TRUE(part.ok());
      if (part->empty()) break;
      if (size >= 3) {
        EXPECT_LE(part->size(), size);
      }
      all += *part;
    }
    ASSERT_EQ(all, bytes) << size;
  }
}

TEST(Base64Reader, TakesUnpaddedText) {
  EXPECT_EQ(*Base64Reader("Zm9vYg").Next(100), "foob");
  EXPECT_EQ(Base64DecodedSize("Zm9vYg"), 4u);
}

TEST(Base64Reader, RefusesOtherText) {
  for (const char* text :
       {"A", "Zm9v=", "Zg==Zg==", "Zm 9v", "Zm9v\n", "Zm9*", "====", "Zm\xFF\xFF"}) {
    EXPECT_FALSE(Base64Reader(text).Next(100).ok()) << text;
  }
  // Padding that a part boundary would hide.
  Base64Reader reader("Zg==Zg==");
  EXPECT_FALSE(reader.Next(3).ok());
}

}  // namespace
}  // namespace bridge::epp
