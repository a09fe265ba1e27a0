// SPDX-License-Identifier: Apache-2.0
#include "bridge/base/sha256.h"

#include <openssl/evp.h>

#include <cstdlib>

namespace bridge {
namespace {

// These calls fail only when there is no memory or no SHA-256; nothing can be done about either.
void Must(int ok) {
  if (ok != 1) std::abort();
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr) std::abort();
  Must(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::Update(std::string_view bytes) {
  Must(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::FinishHex() {
  constexpr char kHex[] = "0123456789abcdef";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  Must(EVP_DigestFinal_ex(context_.get(), digest, &size));
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += kHex[digest[i] >> 4];
    hex += kHex[digest[i] & 15];
  }
  return hex;
}

}  // namespace bridge
