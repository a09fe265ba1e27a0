// SPDX-License-Identifier: Apache-2.0
//
// opensandbox/user_directory.h — account names of a sandbox's image → numbers, from its
// /etc/passwd. A stock daemon takes numbers only, and gives a uid without an account group 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bridge/opensandbox/exec_types.h"

namespace bridge {

struct Account {
  std::string name = {};
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string home = {};
};

// The first account of that name or number in the text of /etc/passwd.
std::optional<Account> FindAccount(std::string_view passwd, std::string_view name);
std::optional<Account> FindAccount(std::string_view passwd, uint32_t uid);

// What a stock daemon must be told so that a command has `user`'s rights.
struct StockUser {
  std::optional<uint32_t> uid = {};
  // Absent: the daemon takes the account's groups.
  std::optional<uint32_t> gid = {};
  // HOME, USER and LOGNAME of the account; the spec's own values go before them.
  std::vector<std::pair<std::string, std::string>> env = {};
};

// Errors: UNKNOWN_USER for a name that is not in the text.
absl::StatusOr<StockUser> ResolveUser(const UserSpec& user, std::string_view passwd);

}  // namespace bridge
