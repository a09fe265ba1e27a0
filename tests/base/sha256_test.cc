// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/sha256.h"

#include <gtest/gtest.h>

namespace bridge {
namespace {

TEST(Sha256, KnownDigests) {
  // FIPS 180-4 examples.
  EXPECT_EQ(Sha256().FinishHex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 abc;
  abc.Update("abc");
  EXPECT_EQ(abc.FinishHex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, PiecesAreTheWhole) {
  Sha256 pieces;
  for (const char* piece : {"a", "", "b", "c"}) pieces.Update(piece);
  EXPECT_EQ(pieces.FinishHex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace bridge
