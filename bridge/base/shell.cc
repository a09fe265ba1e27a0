// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/shell.h"

namespace bridge {

std::string ShellQuote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace bridge
