// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/token_file.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "bridge/base/error.h"

namespace bridge {
namespace {

// A tenant becomes the value of a label of its sandboxes, so it follows the rules of those.
constexpr size_t kMaxTenantBytes = 63;
// Longer than any token that somebody would type into a file; bounds the work of hashing.
constexpr size_t kMaxTokenBytes = 4096;

bool IsAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool IsTenant(std::string_view text) {
  return !text.empty() && text.size() <= kMaxTenantBytes && IsAlnum(text.front()) &&
         IsAlnum(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsAlnum(c) || c == '-' || c == '_' || c == '.';
         });
}

int Nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool ParseHash(std::string_view hex, TokenDigest* hash) {
  if (hex.size() != 2 * hash->size()) return false;
  for (size_t i = 0; i < hash->size(); ++i) {
    const int high = Nibble(hex[2 * i]);
    const int low = Nibble(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    (*hash)[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

std::string_view Trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlank) - begin + 1);
}

bool StartsWithBearer(std::string_view text) {
  constexpr std::string_view kBearer = "bearer ";  // the scheme's case does not matter (RFC 9110)
  return text.size() > kBearer.size() &&
         std::equal(kBearer.begin(), kBearer.end(), text.begin(), [](char want, char c) {
           return want == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
         });
}

absl::Status Unauthenticated(std::string_view why) {
  return MakeError(ErrorReason::ERROR_REASON_CALLER_UNAUTHENTICATED, why);
}

}  // namespace

TokenDigest Sha256Of(std::string_view text) {
  TokenDigest hash;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  return hash;
}

absl::StatusOr<std::vector<TokenEntry>> ParseTokenFile(std::string_view text) {
  std::vector<TokenEntry> entries;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    const size_t colon = line.find(':');
    TokenEntry entry;
    if (colon == std::string_view::npos || !ParseHash(line.substr(colon + 1), &entry.hash)) {
      return InvalidField("auth_tokens_file", "line " + std::to_string(number) +
                                                  " is not TENANT:SHA256 with 64 hex digits");
    }
    const std::string_view tenant = line.substr(0, colon);
    if (tenant != "*" && !IsTenant(tenant)) {
      return InvalidField("auth_tokens_file",
                          "line " + std::to_string(number) +
                              " names no tenant: 1 to 63 letters, digits, '-', '_' or '.', "
                              "or * for a token without one");
    }
    if (tenant != "*") entry.tenant = std::string(tenant);
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) {
    // With no token nobody could call: that is a mistake, not a wish.
    return InvalidField("auth_tokens_file", "has no token in it");
  }
  return entries;
}

TokenAuthenticator::TokenAuthenticator(std::vector<TokenEntry> tokens) {
  Replace(std::move(tokens));
}

void TokenAuthenticator::Replace(std::vector<TokenEntry> tokens) {
  auto fresh = std::make_shared<const std::vector<TokenEntry>>(std::move(tokens));
  std::lock_guard<std::mutex> lock(mu_);
  tokens_.swap(fresh);
}

absl::StatusOr<Caller> TokenAuthenticator::Authenticate(std::string_view authorization) {
  if (authorization.empty()) {
    return Unauthenticated("this bridge wants metadata 'authorization: Bearer TOKEN'");
  }
  if (!StartsWithBearer(authorization)) {
    return Unauthenticated("metadata 'authorization' is not of the form 'Bearer TOKEN'");
  }
  const std::string_view token = authorization.substr(7);
  if (token.size() > kMaxTokenBytes) return Unauthenticated("the token is not known here");
  std::shared_ptr<const std::vector<TokenEntry>> tokens;
  {
    std::lock_guard<std::mutex> lock(mu_);
    tokens = tokens_;
  }
  const TokenDigest hash = Sha256Of(token);
  const TokenEntry* found = nullptr;
  for (const TokenEntry& entry : *tokens) {  // all of them, whatever is found
    if (CRYPTO_memcmp(hash.data(), entry.hash.data(), hash.size()) == 0) found = &entry;
  }
  if (found == nullptr) return Unauthenticated("the token is not known here");
  return Caller{found->tenant};
}

}  // namespace bridge
