// SPDX-License-Identifier: Apache-2.0
//
// local/execd/pty_frames.h — the messages of `/pty/{id}/ws` that need more than a line. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bridge::local::execd {

// First byte of a binary message from the daemon.
inline constexpr char kStdoutTag = 1;
inline constexpr char kStderrTag = 2;
inline constexpr char kReplayTag = 3;

// {"type":"error","error":…,"code":…}
std::string PtyErrorFrame(std::string_view message, std::string_view code);

// The tag, the number of the first byte (8 bytes, big endian), the bytes.
std::string PtyReplayFrame(int64_t offset, std::string_view bytes);

// The few signals that a client may send, by name; 0 for all other names.
int PtySignalNumber(std::string_view name);

}  // namespace bridge::local::execd
