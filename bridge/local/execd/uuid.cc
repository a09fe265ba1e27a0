// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/uuid.h"

#include <sys/random.h>

#include <array>
#include <cstdlib>

namespace bridge::local::execd {
namespace {

std::array<unsigned char, 16> RandomBytes() {
  std::array<unsigned char, 16> bytes;
  // Sixteen bytes come whole or not at all; the latter only from a kernel older than 3.17.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) abort();
  return bytes;
}

std::string Hex(const std::array<unsigned char, 16>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xf];
  }
  return out;
}

}  // namespace

std::string RandomHex32() { return Hex(RandomBytes()); }

std::string RandomUuid() {
  auto bytes = RandomBytes();
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  std::string out = Hex(bytes);
  for (const size_t at : {20, 16, 12, 8}) out.insert(at, "-");
  return out;
}

}  // namespace bridge::local::execd
