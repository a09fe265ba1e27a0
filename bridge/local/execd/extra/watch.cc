// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/extra/watch.h"

#include <dirent.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "bridge/local/execd/file_info.h"

namespace bridge::local::execd::extra {
namespace {

constexpr uint32_t kMask = IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM |
                           IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// The second half of a move follows the first one at once, but maybe behind the end of a read.
constexpr int kPartnerMs = 10;

std::string Join(const std::string& directory, const std::string& name) {
  return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

std::string_view TypeAt(const std::string& path, bool directory) {
  struct stat info;
  if (lstat(path.c_str(), &info) == 0) return FileTypeName(info.st_mode);
  return directory ? "directory" : "unknown";
}

Failure CannotWatch(const std::string& path, int error) {
  if (error != ENOSPC && error != EMFILE) return FromErrno("watch", path, error);
  Failure many = FromErrno("watch", path, error);
  many.status = 429;
  many.code = "TOO_MANY";
  many.message = "the kernel's limit of directory watches is reached";
  return many;
}

constexpr std::array<std::string_view, 7> kNames = {"created", "modified", "attributes", "deleted",
                                                    "moved",   "overflow", "gone"};

}  // namespace

std::string WatchEvent::Line() const {
  std::string out = "{\"event\":\"" + std::string(kNames[static_cast<size_t>(kind)]) + "\"";
  if (!path.empty()) {
    out += ',';
    AppendText(out, "path", path);
  }
  if (!old_path.empty()) {
    out += ',';
    AppendText(out, "old_path", old_path);
  }
  if (!type.empty()) out += ",\"type\":\"" + std::string(type) + "\"";
  return out + "}\n";
}

Watch::~Watch() {
  if (fd_ >= 0) close(fd_);
}

std::optional<Failure> Watch::Open(const std::string& root, bool recursive) {
  root_ = root;
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
  recursive_ = recursive;
  fd_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd_ < 0) return CannotWatch(root, errno);
  std::vector<WatchEvent> found;
  if (auto failure = AddTree(root_, &found)) return failure;
  root_wd_ = paths_.begin()->first;
  return std::nullopt;
}

// Watches a directory, and with `recursive` all below it. What is found there is reported too,
// since it may have been made before the watch was. A loop: a tree may be deeper than the stack.
std::optional<Failure> Watch::AddTree(const std::string& path, std::vector<WatchEvent>* found) {
  std::vector<std::string> left = {path};
  while (!left.empty()) {
    const std::string next = std::move(left.back());
    left.pop_back();
    if (auto failure = AddDirectory(next, found, &left)) return failure;
  }
  return std::nullopt;
}

// Those in it are appended to `below`.
std::optional<Failure> Watch::AddDirectory(const std::string& path, std::vector<WatchEvent>* found,
                                           std::vector<std::string>* below) {
  const bool is_root = paths_.empty();
  const int wd = inotify_add_watch(fd_, path.c_str(), is_root ? kMask : kMask | IN_DONT_FOLLOW);
  if (wd < 0) {
    const bool vanished = errno == ENOENT || errno == ENOTDIR;
    if (!is_root && (vanished || errno == EACCES)) return std::nullopt;
    return CannotWatch(path, errno);
  }
  paths_[wd] = path;
  if (!recursive_) return std::nullopt;
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) return std::nullopt;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string child = Join(path, std::string(name));
    const std::string_view type = TypeAt(child, entry->d_type == DT_DIR);
    found->push_back({WatchEvent::Kind::kCreated, child, "", type});
    if (type == "directory") below->push_back(child);
  }
  closedir(directory);
  return std::nullopt;
}

bool Watch::ReadRaw(std::vector<Raw>* out) {
  alignas(inotify_event) char buffer[64 * 1024];
  const ssize_t n = read(fd_, buffer, sizeof(buffer));
  for (ssize_t at = 0; at < n;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
    out->push_back({event->wd, event->mask, event->cookie,
                    event->len > 0 ? std::string(event->name) : std::string()});
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
  }
  return n > 0;
}

std::vector<Watch::Raw> Watch::ReadBatch() {
  std::vector<Raw> batch;
  while (ReadRaw(&batch) && batch.size() < 4096) {
  }
  // A move whose second half is still to come?
  if (!batch.empty() && (batch.back().mask & IN_MOVED_FROM) != 0) {
    pollfd ready{fd_, POLLIN, 0};
    if (poll(&ready, 1, kPartnerMs) > 0) ReadRaw(&batch);
  }
  return batch;
}

std::optional<Failure> Watch::Read(std::vector<WatchEvent>* out) {
  const std::vector<Raw> batch = ReadBatch();
  std::vector<bool> used(batch.size(), false);
  for (size_t i = 0; i < batch.size() && !gone_; ++i) {
    if (used[i]) continue;
    const Raw* partner = nullptr;
    if ((batch[i].mask & IN_MOVED_FROM) != 0) {
      for (size_t j = i + 1; j < batch.size() && partner == nullptr; ++j) {
        if ((batch[j].mask & IN_MOVED_TO) != 0 && batch[j].cookie == batch[i].cookie) {
          partner = &batch[j];
          used[j] = true;
        }
      }
    }
    if (auto failure = Handle(batch[i], partner, out)) return failure;
  }
  // A program that writes in small pieces is one change.
  const auto same = [](const WatchEvent& a, const WatchEvent& b) {
    return a.kind == b.kind && a.path == b.path && a.old_path == b.old_path &&
           (a.kind == WatchEvent::Kind::kModified || a.kind == WatchEvent::Kind::kAttributes ||
            a.kind == WatchEvent::Kind::kCreated);
  };
  out->erase(std::unique(out->begin(), out->end(), same), out->end());
  return std::nullopt;
}

std::optional<Failure> Watch::Handle(const Raw& event, const Raw* partner,
                                     std::vector<WatchEvent>* out) {
  using Kind = WatchEvent::Kind;
  if ((event.mask & IN_Q_OVERFLOW) != 0) {
    out->push_back({Kind::kOverflow, "", "", ""});
    return std::nullopt;
  }
  const auto known = paths_.find(event.wd);
  if (known == paths_.end()) return std::nullopt;
  if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) != 0) {
    if (event.wd == root_wd_) {
      gone_ = true;
      out->push_back({Kind::kGone, root_, "", ""});
    } else if ((event.mask & IN_IGNORED) != 0) {
      paths_.erase(known);
    }
    return std::nullopt;
  }
  if (event.name.empty()) return std::nullopt;  // about the directory itself: its parent tells
  const std::string path = Join(known->second, event.name);
  const bool directory = (event.mask & IN_ISDIR) != 0;
  if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) return Appeared(path, directory, out);
  if ((event.mask & IN_MODIFY) != 0) {
    out->push_back({Kind::kModified, path, "", TypeAt(path, directory)});
  } else if ((event.mask & IN_ATTRIB) != 0) {
    out->push_back({Kind::kAttributes, path, "", TypeAt(path, directory)});
  } else if (partner != nullptr && paths_.count(partner->wd) != 0) {
    const std::string to = Join(paths_[partner->wd], partner->name);
    if (directory) Renamed(path, to);
    out->push_back({Kind::kMoved, to, path, TypeAt(to, directory)});
  } else {
    if (directory) Vanished(path);
    out->push_back({Kind::kDeleted, path, "", directory ? "directory" : "unknown"});
  }
  return std::nullopt;
}

std::optional<Failure> Watch::Appeared(const std::string& path, bool directory,
                                       std::vector<WatchEvent>* out) {
  out->push_back({WatchEvent::Kind::kCreated, path, "", TypeAt(path, directory)});
  return directory && recursive_ ? AddTree(path, out) : std::nullopt;
}

// Moved away or removed, with everything below it.
void Watch::Vanished(const std::string& path) {
  for (auto it = paths_.begin(); it != paths_.end();) {
    if (it->second == path || it->second.starts_with(path + "/")) {
      inotify_rm_watch(fd_, it->first);
      it = paths_.erase(it);
    } else {
      ++it;
    }
  }
}

void Watch::Renamed(const std::string& from, const std::string& to) {
  for (auto& [wd, path] : paths_) {
    if (path == from || path.starts_with(from + "/")) path = to + path.substr(from.size());
  }
}

}  // namespace bridge::local::execd::extra
