// SPDX-License-Identifier: Apache-2.0
//
// local/runtime/bootstrap_protocol.h — what the server and the bootstrap program agree on.
//
// One small static program does what happens between the server's fork and the user's entrypoint.
// The variable kModeVariable says which part:
//
//   "launch"   outside of the sandbox: dies with the server, joins cgroups, mounts the writable
//   root
//              in a mount namespace of its own, and becomes the next program of its command line.
//   "sandbox"  inside, as process 1: starts execd and the entrypoint of the spec (kSpecFd), stamps
//              their output into the log, reaps, passes SIGTERM on, ends with the entrypoint's
//              code.
//   unset      the same for a container of a real OpenSandbox, as its
//   /opt/opensandbox/bootstrap.sh:
//              the entrypoint is the command line, execd is $EXECD or /opt/opensandbox/execd.
//
// Plain values and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bridge::local::runtime {

inline constexpr char kModeVariable[] = "LOCAL_OPENSANDBOX_BOOTSTRAP";
inline constexpr char kModeLaunch[] = "launch";
inline constexpr char kModeSandbox[] = "sandbox";

// Descriptors of the "sandbox" mode; 0 is /dev/null, 1 and 2 are the log (opened for appending).
inline constexpr int kSpecFd = 3;    // read: BootstrapSpec
inline constexpr int kStatusFd = 4;  // written once: StatusLine()
inline constexpr int kReadyFd = 5;   // a pipe: "R" is written when the spec was read
inline constexpr int kListenFd = 6;  // execd's listening socket, left open for it
inline constexpr int kInfoFd = 7;    // bwrap's --info-fd
inline constexpr int kArgsFd = 8;    // bwrap's --args
inline constexpr int kBlockFd = 9;   // bwrap's --block-fd

// Where things are inside of a sandbox.
inline constexpr char kSandboxExecd[] = "/opt/opensandbox/execd";
inline constexpr char kSandboxBootstrap[] = "/opt/opensandbox/bootstrap.sh";

// Not in the environment or the command line of any process: those can be read by others.
struct BootstrapSpec {
  std::vector<std::string> env;         // "NAME=value" of both programs
  std::vector<std::string> execd;       // its command line
  std::vector<std::string> entrypoint;  // a first element "-c" makes the rest shell text
};

std::string EncodeSpec(const BootstrapSpec& spec);
BootstrapSpec DecodeSpec(std::string_view bytes);

// How the entrypoint ended: an exit code (128+n for signal n) and when, nanoseconds since 1970.
struct ExitStatus {
  int code = 0;
  long long unix_nanos = 0;
};
std::string StatusLine(const ExitStatus& status);
// False when `text` holds no complete line.
bool ParseStatusLine(std::string_view text, ExitStatus* status);

}  // namespace bridge::local::runtime
