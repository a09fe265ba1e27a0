// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/user_directory.h"

#include <charconv>

#include "bridge/base/error.h"

namespace bridge {
namespace {

std::optional<uint32_t> ParseId(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// name:password:uid:gid:comment:home:shell
std::optional<Account> ParseLine(std::string_view line) {
  std::vector<std::string_view> fields;
  size_t begin = 0;
  while (fields.size() < 7) {
    const size_t end = line.find(':', begin);
    fields.push_back(line.substr(begin, end - begin));
    if (end == std::string_view::npos) break;
    begin = end + 1;
  }
  if (fields.size() < 6 || fields[0].empty()) return std::nullopt;
  const auto uid = ParseId(fields[2]);
  const auto gid = ParseId(fields[3]);
  if (!uid || !gid) return std::nullopt;
  return Account{std::string(fields[0]), *uid, *gid, std::string(fields[5])};
}

template <class Matches>
std::optional<Account> Find(std::string_view passwd, Matches matches) {
  while (!passwd.empty()) {
    const size_t end = passwd.find('\n');
    const auto account = ParseLine(passwd.substr(0, end));
    if (account && matches(*account)) return account;
    if (end == std::string_view::npos) break;
    passwd.remove_prefix(end + 1);
  }
  return std::nullopt;
}

void AddEnv(const Account& account, StockUser* user) {
  user->env = {{"HOME", account.home}, {"USER", account.name}, {"LOGNAME", account.name}};
}

}  // namespace

std::optional<Account> FindAccount(std::string_view passwd, std::string_view name) {
  return Find(passwd, [name](const Account& account) { return account.name == name; });
}

std::optional<Account> FindAccount(std::string_view passwd, uint32_t uid) {
  return Find(passwd, [uid](const Account& account) { return account.uid == uid; });
}

absl::StatusOr<StockUser> ResolveUser(const UserSpec& user, std::string_view passwd) {
  StockUser result;
  if (!user.name.empty()) {
    const auto account = FindAccount(passwd, user.name);
    if (!account) {
      return MakeError(ErrorReason::ERROR_REASON_UNKNOWN_USER,
                       "the sandbox's image has no account of this name",
                       {.field = "spec.user.name"});
    }
    result.uid = account->uid;
    AddEnv(*account, &result);
    return result;
  }
  if (!user.uid) return result;
  result.uid = user.uid;
  const auto account = FindAccount(passwd, *user.uid);
  if (account) AddEnv(*account, &result);
  if (user.gid) {
    result.gid = user.gid;
  } else if (!account) {
    result.gid = user.uid;  // else the daemon would give it root's group
  }
  return result;
}

}  // namespace bridge
