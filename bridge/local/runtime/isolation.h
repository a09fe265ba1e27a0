// SPDX-License-Identifier: Apache-2.0
//
// local/runtime/isolation.h — the three ways of walling a sandbox off, and the command line of the
// program (bwrap) that does it. None of them is a boundary for hostile code, and all share the
// machine's network. Pure, but for reading the names in the root directory; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bridge::local::runtime {

enum class Isolation {
  kOverlay,  // root: a private writable root over the host's, or over an image's
  kBwrap,    // no root needed: read-only host root, private /tmp, /home, /root, /workspace
  kNone,     // plain processes
};

std::string_view IsolationName(Isolation isolation);  // "overlay"
std::optional<Isolation> ParseIsolation(std::string_view name);

// A directory of the host that appears in the sandbox.
struct Bind {
  std::string source;
  std::string target;
  bool read_only = false;
};

struct RootPlan {
  Isolation isolation = Isolation::kOverlay;
  std::string root = "/";  // of the host or of an unpacked image
  std::string disk;        // overlay: where the writable root is mounted (below it, "root")
  std::string execd;       // programs of the host
  std::string bootstrap;
  std::string hostname;
  bool die_with_parent = true;
  long long disk_bytes = 0;
  std::vector<Bind> binds;        // volumes
  std::vector<Bind> host_mounts;  // overlay: other file systems of the host below its root
};

// Directories of the host's root that a sandbox over it does not see.
const std::vector<std::string>& HiddenHostDirs();

// All options of bwrap. They are passed by --args, since a command line can be read by every user
// of the machine.
std::vector<std::string> BwrapArguments(const RootPlan& plan);

// The flags of the bootstrap's "launch" mode that mount the root; none without overlay.
std::vector<std::string> LaunchFlags(const RootPlan& plan);

// How much memory its files can take: those of the file systems that are memory.
long long MemoryOfFiles(const RootPlan& plan);

// File systems on disk that are mounted below the root, as in /proc/self/mountinfo, except below
// the hidden directories. An overlay over "/" does not include them.
std::vector<Bind> ParseHostMounts(std::string_view mountinfo);

}  // namespace bridge::local::runtime
