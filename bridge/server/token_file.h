// SPDX-License-Identifier: Apache-2.0
//
// server/token_file.h — bearer tokens and whose they are, from a file that may change at any time.
//
//   # comments and empty lines are allowed
//   red:6ca13d52ca70c883e0f0bb101e425a89e8624de51db2d2392593af6a84118090
//   *:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
//
// A line is a tenant and the SHA-256 of a token in hex (`printf %s "$TOKEN" | sha256sum`): the file
// holds no secret that could be used. `*` is a token that is bound to no tenant and sees all
// sandboxes. Several lines may name one tenant, so that a token is replaced without a gap. Tokens
// are random and long (`openssl rand -hex 32`), which is why a plain hash is enough.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bridge/service/call_host.h"

namespace bridge {

using TokenDigest = std::array<uint8_t, 32>;
TokenDigest Sha256Of(std::string_view text);

struct TokenEntry {
  std::string tenant;  // empty: `*`
  TokenDigest hash;
};

// Errors: INVALID_ARGUMENT naming the line's number, never its content.
absl::StatusOr<std::vector<TokenEntry>> ParseTokenFile(std::string_view text);

// Any thread.
class TokenAuthenticator final : public Authenticator {
 public:
  explicit TokenAuthenticator(std::vector<TokenEntry> tokens);

  // "Bearer <token>". The time it takes does not depend on which token is right, nor on how much of
  // one.
  absl::StatusOr<Caller> Authenticate(std::string_view authorization) override;

  // Takes effect for the next call; calls that run keep running.
  void Replace(std::vector<TokenEntry> tokens);

 private:
  std::mutex mu_;
  std::shared_ptr<const std::vector<TokenEntry>> tokens_;  // guarded by mu_
};

}  // namespace bridge
