// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace bridge {

std::string RandomHex(size_t bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string raw(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    const ssize_t n = getrandom(raw.data() + have, bytes - have, 0);
    if (n > 0) have += static_cast<size_t>(n);
    // The kernel has no other error for a valid buffer; going on with a guessable name is no
    // option.
    if (n < 0 && errno != EINTR) std::abort();
  }
  std::string hex;
  hex.reserve(2 * bytes);
  for (const char c : raw) {
    const auto u = static_cast<unsigned char>(c);
    hex += kHex[u >> 4];
    hex += kHex[u & 15];
  }
  return hex;
}

}  // namespace bridge
