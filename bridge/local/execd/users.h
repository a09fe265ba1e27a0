// SPDX-License-Identifier: Apache-2.0
//
// local/execd/users.h — /etc/passwd and /etc/group, read directly: the C library's functions load
// plugins, which a static program cannot. One object is one reading of both files. Immutable after
// construction; any thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bridge::local::execd {

struct User {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;
};

class UserDatabase {
 public:
  // From texts in the formats of passwd(5) and group(5).
  UserDatabase(std::string_view passwd, std::string_view group);
  // From the two files; a missing file is an empty one.
  static UserDatabase Read();

  const User* FindUser(std::string_view name) const;
  const User* FindUser(uid_t uid) const;
  std::optional<gid_t> FindGroup(std::string_view name) const;

  // The name, or the number where there is none.
  std::string UserName(uid_t uid) const;
  std::string GroupName(gid_t gid) const;

  // All groups of an account: its own first, then those that list it as a member.
  std::vector<gid_t> GroupsOf(const User& user) const;

 private:
  struct Group {
    std::string name;
    gid_t gid = 0;
    std::vector<std::string> members;
  };
  std::vector<User> users_;
  std::vector<Group> groups_;
  std::map<uid_t, size_t> user_by_id_;
  std::map<gid_t, size_t> group_by_id_;
};

}  // namespace bridge::local::execd
