// SPDX-License-Identifier: Apache-2.0
//
// local/runtime/launch_mode.h — the "launch" mode of the bootstrap program.
#pragma once

namespace bridge::local::runtime {

// Command line: bootstrap FLAGS -- PROGRAM ARGS…
//   --parent=PID        die when that process does (and at once if it is gone already)
//   --cgroup=DIR        join it; repeatable
//   --disk=DIR          mount a tmpfs there, and on it a writable root over --lower: DIR/root
//   --disk_bytes=N      the tmpfs's size
//   --lower=DIR         below the writable root
//   --mask=/PATH        a directory of --lower that appears empty; repeatable
// Does that, then becomes PROGRAM. Returns only on failure, with an exit code; the reason is on
// standard error. The caller is in a mount namespace of its own when --disk is given.
int RunLaunchMode(int argc, char** argv);

}  // namespace bridge::local::runtime
