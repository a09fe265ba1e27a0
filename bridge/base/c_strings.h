// SPDX-License-Identifier: Apache-2.0
//
// base/c_strings.h — an array of strings as execve() and its like want it. Pure.
#pragma once

#include <string>
#include <vector>

namespace bridge {

// Ends with a null pointer; points into `strings`, which outlives it.
inline std::vector<char*> CStrings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) {
    pointers.push_back(const_cast<char*>(string.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace bridge
