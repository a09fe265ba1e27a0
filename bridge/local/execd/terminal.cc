// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace bridge::local::execd {
namespace {

int OpenSlave(int master) {
  const int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave >= 0) return slave;
  // A kernel before 4.13, or a sandbox that imitates one.
  unsigned number = 0;
  if (ioctl(master, TIOCGPTN, &number) != 0) return -1;
  return open(("/dev/pts/" + std::to_string(number)).c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

int OpenTerminal(Terminal* out) {
  out->master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (out->master < 0) return errno;
  const int unlock = 0;
  if (ioctl(out->master, TIOCSPTLCK, &unlock) == 0) out->slave = OpenSlave(out->master);
  if (out->slave < 0) {
    const int error = errno;
    close(out->master);
    *out = {};
    return error;
  }
  ResizeTerminal(out->master, 80, 24);
  return 0;
}

void ResizeTerminal(int master, int columns, int rows) {
  if (columns <= 0 || rows <= 0 || columns > 65535 || rows > 65535) return;
  struct winsize size = {};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  ioctl(master, TIOCSWINSZ, &size);
}

}  // namespace bridge::local::execd
