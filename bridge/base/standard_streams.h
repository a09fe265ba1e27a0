// SPDX-License-Identifier: Apache-2.0
//
// base/standard_streams.h — programs that are started with standard streams closed.
//
// What a program opens first gets the numbers of the closed ones, so that a line for stderr could
// land in a socket or in a file. Libraries open descriptors when they are loaded: main() is too
// late to do something about it.
#pragma once

namespace bridge {

// Takes the numbers of standard streams that are closed. A closed stdin or stdout then fails
// whoever reads or writes it (EBADF), a closed stderr is nowhere.
void ReserveStandardStreams();

// Whether a descriptor can be neither read nor written: a stream that was closed.
bool IsClosed(int fd);

}  // namespace bridge

// In the file of main(), outside of namespaces: reserves them before anything else runs.
#define RESERVE_STANDARD_STREAMS_BEFORE_MAIN                                                   \
  __attribute__((section(".preinit_array"), used)) static void (*reserve_standard_streams)() = \
      bridge::ReserveStandardStreams
