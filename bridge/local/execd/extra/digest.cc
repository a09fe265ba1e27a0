// SPDX-License-Identifier: Apache-2.0
#define OPENSSL_SUPPRESS_DEPRECATED
#include "bridge/local/execd/extra/digest.h"

#include <openssl/sha.h>

#include <algorithm>

namespace bridge::local::execd::extra {

struct Digest::State {
  SHA256_CTX context;
};

Digest::Digest() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }
Digest::~Digest() = default;

void Digest::Add(std::string_view bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

std::string Digest::Hex() {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256_Final(digest, &state_->context);
  std::string out;
  for (const unsigned char byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 0xf];
  }
  return out;
}

bool IsDigest(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace bridge::local::execd::extra
