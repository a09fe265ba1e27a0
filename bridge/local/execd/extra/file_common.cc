// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/file_common.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "bridge/local/execd/tree.h"
#include "bridge/local/execd/users.h"

namespace bridge::local::execd::extra {
namespace {

std::optional<mode_t> ParseOctal(std::string_view text) {
  mode_t mode = 0;
  if (text.empty() || text.size() > 5) return std::nullopt;
  for (const char c : text) {
    if (c < '0' || c > '7') return std::nullopt;
    mode = mode * 8 + static_cast<mode_t>(c - '0');
  }
  return mode <= 07777 ? std::optional<mode_t>(mode) : std::nullopt;
}

std::optional<uint32_t> ParseId(std::string_view text) {
  const auto number = JsonInteger(text);
  if (!number || *number < 0 || *number >= UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

}  // namespace

void ReadMode(StrictQuery& query, std::optional<mode_t>* out) {
  std::optional<std::string> mode;
  query.String("mode", &mode);
  if (mode && !(*out = ParseOctal(*mode))) {
    query.Fail("mode", "must be octal digits from 0 to 7777");
  }
}

void ReadOwner(StrictQuery& query, std::optional<uid_t>* uid, std::optional<gid_t>* gid) {
  std::optional<std::string> owner, group;
  query.String("owner", &owner);
  query.String("group", &group);
  if (!owner && !group) return;
  const UserDatabase users = UserDatabase::Read();
  if (owner) {
    const User* user = users.FindUser(*owner);
    *uid = user != nullptr ? std::optional<uid_t>(user->uid) : ParseId(*owner);
    if (!*uid) query.Fail("owner", "is no account and no number");
  }
  if (group) {
    *gid = users.FindGroup(*group);
    if (!*gid) *gid = ParseId(*group);
    if (!*gid) query.Fail("group", "is no group and no number");
  }
}

void ReadTime(StrictQuery& query, std::string_view name, std::optional<absl::Time>* out) {
  std::optional<std::string> text;
  query.String(name, &text);
  if (!text) return;
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, *text, &time, &error)) {
    *out = time;
  } else {
    query.Fail(name, "is no RFC 3339 time");
  }
}

Parents::~Parents() {
  // What others have put into one keeps it, and those above.
  while (!made_.empty() && rmdir(made_.back().c_str()) == 0) made_.pop_back();
}

std::optional<Failure> Parents::Make(const std::string& directory) {
  for (const std::string& missing : MissingDirectories(directory)) {
    if (mkdir(missing.c_str(), 0755) == 0) {
      made_.push_back(missing);
      chmod(missing.c_str(), 0755);  // whatever the umask is
    } else if (errno != EEXIST) {    // made by somebody else just now
      return FromErrno("mkdir", missing, errno);
    }
  }
  return std::nullopt;
}

}  // namespace bridge::local::execd::extra
