// SPDX-License-Identifier: Apache-2.0
#include "tests/local/execd/replay/jail.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bridge/base/c_strings.h"

namespace bridge::local::execd {
namespace {

std::vector<std::string> Command(const std::string& shared, const JailOptions& options) {
  std::vector<std::string> out = {"bwrap",         "--die-with-parent", "--unshare-pid",
                                  "--unshare-ipc", "--unshare-uts",     "--as-pid-1"};
  const auto add = [&](std::initializer_list<std::string> words) { out.insert(out.end(), words); };
  add({"--hostname", "sandbox", "--tmpfs", "/", "--perms", "0755", "--dir", "/etc"});
  add({"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin",
       "/sbin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"});
  add({"--ro-bind", shared + "/passwd", "/etc/passwd", "--ro-bind", shared + "/group",
       "/etc/group"});
  add({"--dev", "/dev", "--tmpfs", "/dev/shm", "--proc", "/proc", "--dir", "/root", "--perms",
       "1777", "--tmpfs", "/tmp"});
  add({"--bind", shared, "/run/shared"});
  add({"--ro-bind", std::filesystem::absolute(options.binary), "/opt/opensandbox/execd"});
  add({"--chdir", "/", "--clearenv", "--setenv", "HOME", "/root", "--setenv", "OPENSANDBOX_ID",
       "test", "--setenv", "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"});
  for (const std::string& variable : options.env) {
    const size_t equals = variable.find('=');
    add({"--setenv", variable.substr(0, equals), variable.substr(equals + 1)});
  }
  add({"/opt/opensandbox/execd", "--listen=127.0.0.1:0", "--port-file=/run/shared/port"});
  out.insert(out.end(), options.flags.begin(), options.flags.end());
  return out;
}

}  // namespace

Jail::Jail(const JailOptions& options) {
  std::string name =
      std::string(getenv("TEST_TMPDIR") ? getenv("TEST_TMPDIR") : "/tmp") + "/jail_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) abort();
  shared_ = name;
  std::ofstream(shared_ + "/passwd") << "root:x:0:0:root:/root:/bin/bash\n"
                                        "nobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n";
  std::ofstream(shared_ + "/group") << "root:x:0:\nnogroup:x:65534:\n";
  const std::vector<std::string> command = Command(shared_, options);
  const std::vector<char*> argv = CStrings(command);
  pid_ = fork();
  if (pid_ == 0) {
    execvp(argv[0], argv.data());
    perror("bwrap");
    _exit(127);
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (port_ == 0 && absl::Now() < deadline) {
    std::ifstream(shared_ + "/port") >> port_;
    if (port_ == 0) absl::SleepFor(absl::Milliseconds(2));
  }
  if (port_ == 0) {
    fprintf(stderr, "execd did not start in its jail\n");
    abort();
  }
}

Jail::~Jail() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace bridge::local::execd
