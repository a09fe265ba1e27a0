// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/isolation.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>

#include "bridge/local/runtime/bootstrap_protocol.h"

namespace bridge::local::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNames[] = {"overlay", "bwrap", "none"};

// What Docker leaves a container under the drop list of the recorded server.
constexpr const char* kCapabilities[] = {"CAP_CHOWN",   "CAP_DAC_OVERRIDE", "CAP_FOWNER",
                                         "CAP_FSETID",  "CAP_KILL",         "CAP_NET_BIND_SERVICE",
                                         "CAP_SETFCAP", "CAP_SETGID",       "CAP_SETPCAP",
                                         "CAP_SETUID",  "CAP_SYS_CHROOT"};

using Args = std::vector<std::string>;

void Add(Args& args, std::initializer_list<std::string> more) {
  args.insert(args.end(), more.begin(), more.end());
}

bool IsHidden(std::string_view path) {
  const std::vector<std::string>& hidden = HiddenHostDirs();
  return std::any_of(hidden.begin(), hidden.end(), [path](const std::string& dir) {
    return path == dir || path.starts_with(dir + "/");
  });
}

// Without a writable root: what programs can write to, each a tmpfs. With "/tmp".
constexpr const char* kWritableDirs[] = {"/home", "/root", "/run", "/workspace"};

// A private tmpfs of the given mode; its pages count against nobody's disk.
void AddTmpfs(Args& args, const RootPlan& plan, const std::string& path, const char* mode) {
  Add(args, {"--perms", mode});
  if (plan.disk_bytes > 0) Add(args, {"--size", std::to_string(plan.disk_bytes)});
  Add(args, {"--tmpfs", path});
}

// Puts every entry of `root` in its place, read-only; bwrap's own root around them is a tmpfs, so
// that new directories can stand beside them.
void AddReadOnlyRoot(Args& args, const RootPlan& plan) {
  static const std::set<std::string> kOwn = {"proc", "dev",       "sys", "tmp",
                                             "home", "root",      "run", "lost+found",
                                             "opt",  "workspace", "mnt", "media"};
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(plan.root, error)) {
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end());
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename();
    if (entry.is_symlink(error)) {
      Add(args, {"--symlink", fs::read_symlink(entry.path(), error), "/" + name});
    } else if (!kOwn.contains(name)) {
      Add(args, {"--ro-bind-try", entry.path(), "/" + name});
    }
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(plan.root + "/opt", error)) {
    Add(args, {"--ro-bind-try", entry.path(), "/opt/" + entry.path().filename().string()});
  }
  AddTmpfs(args, plan, "/tmp", "1777");
  for (const char* dir : kWritableDirs) AddTmpfs(args, plan, dir, "0755");
  Add(args, {"--dir", "/var"});
}

void AddKernelFiles(Args& args) {
  Add(args, {"--proc", "/proc", "--dev", "/dev", "--ro-bind-try", "/sys", "/sys"});
  // Name resolution is the host's, as its network is. On some systems resolv.conf points here.
  Add(args, {"--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"});
}

void AddPrograms(Args& args, const RootPlan& plan) {
  Add(args, {"--dir", "/opt", "--dir", "/opt/opensandbox"});
  Add(args, {"--ro-bind", plan.execd, kSandboxExecd});
  Add(args, {"--ro-bind", plan.bootstrap, kSandboxBootstrap});
}

}  // namespace

std::string_view IsolationName(Isolation isolation) { return kNames[static_cast<int>(isolation)]; }

std::optional<Isolation> ParseIsolation(std::string_view name) {
  for (int i = 0; i < 3; ++i) {
    if (kNames[i] == name) return static_cast<Isolation>(i);
  }
  return std::nullopt;
}

const std::vector<std::string>& HiddenHostDirs() {
  static const auto* const dirs = new std::vector<std::string>{
      "/tmp", "/home", "/root", "/run", "/mnt", "/media", "/var/tmp", "/var/run"};
  return *dirs;
}

std::vector<std::string> LaunchFlags(const RootPlan& plan) {
  if (plan.isolation != Isolation::kOverlay) return {};
  Args flags = {"--disk=" + plan.disk, "--disk_bytes=" + std::to_string(plan.disk_bytes),
                "--lower=" + plan.root};
  if (plan.root != "/") return flags;
  for (const std::string& dir : HiddenHostDirs()) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(dir, error);
    if (fs::is_directory(status)) flags.push_back("--mask=" + dir);
  }
  return flags;
}

std::vector<std::string> BwrapArguments(const RootPlan& plan) {
  Args args;
  if (plan.isolation == Isolation::kOverlay) {
    Add(args, {"--bind", plan.disk + "/root", "/"});
    for (const Bind& mount : plan.host_mounts) {
      Add(args, {"--ro-bind-try", mount.source, mount.target});
    }
    if (plan.root != "/") {
      for (const char* file : {"/etc/resolv.conf", "/etc/hosts"}) {
        Add(args, {"--ro-bind-try", file, file});
      }
    }
    Add(args, {"--cap-drop", "ALL"});
    for (const char* capability : kCapabilities) Add(args, {"--cap-add", capability});
  } else {
    AddReadOnlyRoot(args, plan);
    Add(args, {"--unshare-user", "--uid", "0", "--gid", "0"});
  }
  AddKernelFiles(args);
  AddPrograms(args, plan);
  for (const Bind& bind : plan.binds) {
    Add(args, {bind.read_only ? "--ro-bind" : "--bind", bind.source, bind.target});
  }
  if (plan.isolation == Isolation::kBwrap) Add(args, {"--remount-ro", "/"});
  Add(args, {"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
             "--hostname", plan.hostname, "--as-pid-1", "--chdir", "/"});
  if (plan.die_with_parent) args.emplace_back("--die-with-parent");
  Add(args, {"--info-fd", std::to_string(kInfoFd), "--block-fd", std::to_string(kBlockFd)});
  return args;
}

long long MemoryOfFiles(const RootPlan& plan) {
  switch (plan.isolation) {
    case Isolation::kOverlay:
      return plan.disk_bytes;
    case Isolation::kBwrap:
      return plan.disk_bytes * static_cast<long long>(std::size(kWritableDirs) + 1);
    case Isolation::kNone:
      break;
  }
  return 0;
}

std::vector<Bind> ParseHostMounts(std::string_view mountinfo) {
  static const std::set<std::string> kDiskTypes = {"ext2", "ext3",  "ext4",    "xfs", "btrfs",
                                                   "zfs",  "f2fs",  "erofs",   "nfs", "nfs4",
                                                   "vfat", "exfat", "bcachefs"};
  std::vector<Bind> mounts;
  std::istringstream lines{std::string(mountinfo)};
  std::string line;
  while (std::getline(lines, line)) {
    // 36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda rw
    std::istringstream fields(line);
    std::string field;
    std::string target;
    for (int i = 0; i < 5; ++i) fields >> target;
    while (fields >> field && field != "-") {
    }
    fields >> field;
    if (target == "/" || !kDiskTypes.contains(field) || IsHidden(target)) continue;
    std::error_code error;
    if (!fs::is_directory(target, error)) continue;
    mounts.push_back({target, target, true});
  }
  return mounts;
}

}  // namespace bridge::local::runtime
