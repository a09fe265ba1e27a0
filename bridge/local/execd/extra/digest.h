// SPDX-License-Identifier: Apache-2.0
//
// execd/extra/digest.h — SHA-256 of bytes that come in pieces. libcrypto's plain functions, since
// its general interface would make the static daemon some megabytes larger. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace bridge::local::execd::extra {

class Digest {
 public:
  Digest();
  ~Digest();
  void Add(std::string_view bytes);
  std::string Hex();  // once, at the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Is it 64 hex digits in lower case?
bool IsDigest(std::string_view text);

}  // namespace bridge::local::execd::extra
