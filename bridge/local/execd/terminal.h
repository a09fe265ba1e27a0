// SPDX-License-Identifier: Apache-2.0
//
// local/execd/terminal.h — pseudo terminals. Any thread.
#pragma once

namespace bridge::local::execd {

struct Terminal {
  int master = -1;
  int slave = -1;
};

// Opens a pair, both close-on-exec, 80 columns and 24 rows. 0 or the errno.
int OpenTerminal(Terminal* out);

// Both greater than 0, or nothing happens.
void ResizeTerminal(int master, int columns, int rows);

}  // namespace bridge::local::execd
