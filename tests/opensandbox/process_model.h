// SPDX-License-Identifier: Apache-2.0
//
// tests/opensandbox/process_model.h — a program whose every byte of output is known beforehand, and
// a bridge that can be thrown away. For process_model_test.cc.
#pragma once

#include <string>

#include "bridge/opensandbox/process_client.h"
#include "tests/opensandbox/exec_fixture.h"

namespace bridge {

// Answers each line that it reads: "e TEXT" by "=TEXT", "b N" by N bytes, "x N" by its end. Signals
// and new sizes of its terminal are told, too.
inline constexpr char kProgram[] = R"py(
import fcntl, os, select, signal, struct, sys, termios
def out(data):
    while data:
        data = data[os.write(1, data):]
# A signal just before a read would wait for the next line: Python runs its handler afterwards.
awake, wake = os.pipe()
os.set_blocking(wake, False)
signal.set_wakeup_fd(wake)
def read():
    while True:
        ready = select.select([0, awake], [], [])[0]
        if awake in ready:
            os.read(awake, 4096)
        if 0 in ready:
            return os.read(0, 65536)
def size():
    return struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))[:2]
def winch(*_):
    global last
    if size() != last:
        last = size()
        out(b"W%d %d\n" % last)
if os.isatty(0):
    attrs = termios.tcgetattr(0)
    attrs[1] &= ~termios.OPOST
    attrs[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, attrs)
    last = size()
    signal.signal(signal.SIGWINCH, winch)
signal.signal(signal.SIGUSR1, lambda *_: out(b"U\n"))
signal.signal(signal.SIGINT, lambda *_: out(b"I\n"))
out(b"ready\n")
rest = b""
while True:
    while b"\n" not in rest:
        data = read()
        if not data:
            out(b"EOF\n")
            sys.exit(5)
        rest += data
    line, rest = rest.split(b"\n", 1)
    word, text = line.split(b" ", 1)
    if word == b"e":
        out(b"=" + text + b"\n")
    elif word == b"b":
        out((b"0123456789abcdef" * (int(text) // 16 + 1))[:int(text)])
    else:
        sys.exit(int(text))
)py";

inline std::string Pattern(size_t n) {
  std::string text;
  while (text.size() < n) text += "0123456789abcdef";
  return text.substr(0, n);
}

// One bridge; the processes live on without it.
struct Bridge {
  explicit Bridge(const std::string& url) : bench(url) {}
  ExecBench bench;
  ProcessClient processes{bench.daemon, bench.background, bench.client};
};

}  // namespace bridge
