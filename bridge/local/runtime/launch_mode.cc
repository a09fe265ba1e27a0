// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/runtime/launch_mode.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bridge/local/runtime/bootstrap_protocol.h"

namespace bridge::local::runtime {
namespace {

struct LaunchFlags {
  pid_t parent = 0;
  std::string descriptors;  // the soft limit of all that runs in the sandbox
  std::vector<std::string> cgroups;
  std::string disk;
  std::string disk_bytes;
  std::string lower;
  std::vector<std::string> masks;
  char** program = nullptr;
};

bool Complain(const std::string& what) {
  fprintf(stderr, "sandbox launch: %s: %s\n", what.c_str(), strerror(errno));
  return false;
}

bool ParseFlags(int argc, char** argv, LaunchFlags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const size_t equals = arg.find('=');
    const std::string_view name = arg.substr(0, equals);
    const std::string value(equals == std::string_view::npos ? "" : arg.substr(equals + 1));
    if (arg == "--") {
      flags->program = argv + i + 1;
      return *flags->program != nullptr;
    }
    if (name == "--parent") flags->parent = static_cast<pid_t>(atol(value.c_str()));
    if (name == "--descriptors") flags->descriptors = value;
    if (name == "--cgroup") flags->cgroups.push_back(value);
    if (name == "--disk") flags->disk = value;
    if (name == "--disk_bytes") flags->disk_bytes = value;
    if (name == "--lower") flags->lower = value;
    if (name == "--mask") flags->masks.push_back(value);
  }
  return false;
}

bool DieWithParent(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Complain("PR_SET_PDEATHSIG");
  return getppid() == parent;  // else it died before we could ask to be told
}

bool LimitDescriptors(const std::string& soft) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return Complain("RLIMIT_NOFILE");
  limit.rlim_cur = strtoull(soft.c_str(), nullptr, 10);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 || Complain("RLIMIT_NOFILE");
}

bool JoinCgroup(const std::string& dir) {
  const std::string path = dir + "/cgroup.procs";
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return Complain(path);
  const bool ok = write(fd, "0", 1) == 1;
  if (!ok) Complain(path);
  close(fd);
  return ok;
}

// In the value of an overlay option, a comma ends the option and a colon the path.
std::string EscapeOption(const std::string& path) {
  std::string out;
  for (const char c : path) {
    if (c == ',' || c == ':' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

// An opaque directory of the upper layer hides the one below. Its parents must exist there too.
bool Mask(const std::string& upper, const std::string& lower, const std::string& path) {
  struct stat below{};
  if (stat((lower + path).c_str(), &below) != 0 || !S_ISDIR(below.st_mode)) {
    below.st_mode = 0755;
    below.st_uid = below.st_gid = 0;
  }
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    mkdir((upper + path.substr(0, slash)).c_str(), 0755);
  }
  const std::string dir = upper + path;
  if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return Complain(dir);
  const bool ok = chmod(dir.c_str(), below.st_mode & 07777) == 0 &&
                  chown(dir.c_str(), below.st_uid, below.st_gid) == 0 &&
                  setxattr(dir.c_str(), "trusted.overlay.opaque", "y", 1, 0) == 0;
  return ok || Complain("hide " + path);
}

bool MountRoot(const LaunchFlags& flags) {
  const std::string& disk = flags.disk;
  const std::string size = "mode=0755,size=" + flags.disk_bytes;
  if (mount("sandbox", disk.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, size.c_str()) != 0) {
    return Complain("mount a tmpfs on " + disk);
  }
  for (const char* name : {"/upper", "/work", "/root"}) {
    if (mkdir((disk + name).c_str(), 0755) != 0) return Complain(disk + name);
  }
  for (const std::string& path : flags.masks) {
    if (!Mask(disk + "/upper", flags.lower, path)) return false;
  }
  const std::string options = "lowerdir=" + EscapeOption(flags.lower) +
                              ",upperdir=" + EscapeOption(disk) +
                              "/upper,workdir=" + EscapeOption(disk) + "/work";
  if (mount("sandbox", (disk + "/root").c_str(), "overlay", MS_NODEV, options.c_str()) != 0) {
    return Complain("mount an overlay over " + flags.lower);
  }
  return true;
}

}  // namespace

int RunLaunchMode(int argc, char** argv) {
  LaunchFlags flags;
  if (!ParseFlags(argc, argv, &flags)) {
    fprintf(stderr, "sandbox launch: no program\n");
    return 2;
  }
  if (flags.parent != 0 && !DieWithParent(flags.parent)) return 1;
  if (!flags.descriptors.empty() && !LimitDescriptors(flags.descriptors)) return 1;
  for (const std::string& dir : flags.cgroups) {
    if (!JoinCgroup(dir)) return 1;
  }
  if (!flags.disk.empty() && !MountRoot(flags)) return 1;
  // The next program is bwrap, whose environment the sandbox would inherit, or this one again.
  clearenv();
  setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
  setenv(kModeVariable, kModeSandbox, 1);
  execvp(flags.program[0], flags.program);
  Complain(flags.program[0]);
  return 1;
}

}  // namespace bridge::local::runtime
