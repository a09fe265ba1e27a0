// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/lifecycle/state_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "bridge/base/read_file.h"

namespace bridge::local::lifecycle {
namespace {

namespace fs = std::filesystem;

absl::Status Unwritable(const std::string& path) {
  return absl::UnavailableError("cannot use " + path + ": " + std::strerror(errno));
}

bool MakeDir(const std::string& path, mode_t mode = 0700) {
  return mkdir(path.c_str(), mode) == 0 || errno == EEXIST;
}

// The lock's descriptor; -1 with errno EWOULDBLOCK when somebody has it.
int Lock(const std::string& dir) {
  const int fd = open((dir + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateDir>> StateDir::Open(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (!MakeDir(path)) return Unwritable(path);
  const int fd = Lock(path);
  if (fd < 0 && errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(path + " is in use by another process");
  }
  if (fd < 0) return Unwritable(path);
  auto dir = std::unique_ptr<StateDir>(new StateDir(path, fd, false));
  if (!MakeDir(path + "/sandboxes") || !MakeDir(path + "/volumes")) return Unwritable(path);
  return dir;
}

absl::StatusOr<std::string> StateDir::MakeTemporary(const std::string& parent) {
  std::error_code error;
  fs::create_directories(fs::path(parent).parent_path(), error);
  if (!MakeDir(parent)) return Unwritable(parent);
  // In /tmp anybody could have been here first.
  struct stat owner{};
  if (lstat(parent.c_str(), &owner) != 0 || !S_ISDIR(owner.st_mode) || owner.st_uid != geteuid() ||
      (owner.st_mode & 022) != 0) {
    return absl::FailedPreconditionError(parent + " does not belong to this user alone");
  }
  std::string path = parent + "/XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return Unwritable(parent);
  return path;
}

std::vector<std::unique_ptr<StateDir>> StateDir::Abandoned(const std::string& parent) {
  std::vector<std::unique_ptr<StateDir>> dirs;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    // One that has no lock file yet is being made at this moment.
    if (!fs::exists(entry.path() / "lock", error)) continue;
    const int fd = Lock(entry.path());
    if (fd >= 0) {
      dirs.push_back(std::unique_ptr<StateDir>(new StateDir(entry.path(), fd, true)));
    }
  }
  return dirs;
}

StateDir::~StateDir() {
  if (temporary_) {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  close(lock_fd_);
}

absl::Status StateDir::MakeSandboxDir(const std::string& id) const {
  if (!MakeDir(SandboxDir(id))) return Unwritable(SandboxDir(id));
  return absl::OkStatus();
}

absl::Status StateDir::Save(const SandboxRecord& record) const {
  const std::string path = SandboxDir(record.id) + "/record.json";
  const std::string half = path + ".new";
  const std::string text = ToJson(record).dump(-1, ' ', false, Json::error_handler_t::replace);
  const int fd = open(half.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Unwritable(half);
  const bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  if (!ok || rename(half.c_str(), path.c_str()) != 0) return Unwritable(path);
  return absl::OkStatus();
}

void StateDir::Remove(const std::string& id) const {
  std::error_code error;
  fs::remove_all(SandboxDir(id), error);
}

void StateDir::RemoveVolumes(const std::vector<std::string>& names) const {
  std::error_code error;
  for (const std::string& name : names) fs::remove_all(VolumeDir(name), error);
}

std::vector<SandboxRecord> StateDir::Load(std::vector<std::string>* strays) const {
  std::vector<SandboxRecord> records;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_ + "/sandboxes", error)) {
    const std::string text = ReadFile(entry.path() / "record.json").value_or("");
    std::optional<SandboxRecord> record = FromJson(Json::parse(text, nullptr, false));
    if (record && record->id == entry.path().filename()) {
      records.push_back(*std::move(record));
    } else {
      strays->push_back(entry.path().filename());
    }
  }
  return records;
}

std::string DefaultStateParent() {
  const char* runtime_dir = getenv("XDG_RUNTIME_DIR");
  const std::string base = runtime_dir != nullptr && *runtime_dir == '/' ? runtime_dir : "/tmp";
  return base + "/local-opensandbox-" + std::to_string(geteuid());
}

}  // namespace bridge::local::lifecycle
