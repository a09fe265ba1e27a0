// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/users.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace bridge::local::execd {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<uint32_t> Number(std::string_view text) {
  uint32_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return out;
}

std::string ReadWhole(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  if (file) out << file.rdbuf();
  return out.str();
}

}  // namespace

UserDatabase::UserDatabase(std::string_view passwd, std::string_view group) {
  for (const std::string_view line : Split(passwd, '\n')) {
    const auto fields = Split(line, ':');
    if (line.starts_with('#') || fields.size() < 6 || fields[0].empty()) continue;
    const auto uid = Number(fields[2]);
    const auto gid = Number(fields[3]);
    if (!uid || !gid) continue;
    user_by_id_.emplace(*uid, users_.size());
    users_.push_back({std::string(fields[0]), *uid, *gid, std::string(fields[5])});
  }
  for (const std::string_view line : Split(group, '\n')) {
    const auto fields = Split(line, ':');
    if (line.starts_with('#') || fields.size() < 4 || fields[0].empty()) continue;
    const auto gid = Number(fields[2]);
    if (!gid) continue;
    Group entry{std::string(fields[0]), *gid, {}};
    for (const std::string_view member : Split(fields[3], ',')) {
      if (!member.empty()) entry.members.emplace_back(member);
    }
    group_by_id_.emplace(*gid, groups_.size());
    groups_.push_back(std::move(entry));
  }
}

UserDatabase UserDatabase::Read() {
  return UserDatabase(ReadWhole("/etc/passwd"), ReadWhole("/etc/group"));
}

const User* UserDatabase::FindUser(std::string_view name) const {
  const auto it =
      std::find_if(users_.begin(), users_.end(), [&](const User& u) { return u.name == name; });
  return it == users_.end() ? nullptr : &*it;
}

const User* UserDatabase::FindUser(uid_t uid) const {
  const auto it = user_by_id_.find(uid);
  return it == user_by_id_.end() ? nullptr : &users_[it->second];
}

std::optional<gid_t> UserDatabase::FindGroup(std::string_view name) const {
  for (const Group& group : groups_) {
    if (group.name == name) return group.gid;
  }
  return std::nullopt;
}

std::string UserDatabase::UserName(uid_t uid) const {
  const User* user = FindUser(uid);
  return user != nullptr ? user->name : std::to_string(uid);
}

std::string UserDatabase::GroupName(gid_t gid) const {
  const auto it = group_by_id_.find(gid);
  return it != group_by_id_.end() ? groups_[it->second].name : std::to_string(gid);
}

std::vector<gid_t> UserDatabase::GroupsOf(const User& user) const {
  std::vector<gid_t> out = {user.gid};
  for (const Group& group : groups_) {
    const bool member =
        std::find(group.members.begin(), group.members.end(), user.name) != group.members.end();
    if (member && std::find(out.begin(), out.end(), group.gid) == out.end()) {
      out.push_back(group.gid);
    }
  }
  return out;
}

}  // namespace bridge::local::execd
