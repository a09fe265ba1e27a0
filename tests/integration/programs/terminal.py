# SPDX-License-Identifier: Apache-2.0
"""The built `sbx` on a terminal of its own, as a person has it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from conftest import Sbx

PATIENCE_SECONDS = 40.0


class Terminal:
    """The built sbx on a terminal of 30 rows and 100 columns."""

    def __init__(self, sbx: Sbx, *args: str) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(30, 100)
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [os.environ["SBX_BINARY"], *args],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=os.environ | sbx.environment() | {"TERM": "xterm-mono"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.screen = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def until(self, pattern: str, patience: float = PATIENCE_SECONDS) -> str:
        """Reads until the screen has the pattern, and forgets everything up to its end."""
        return self._find(pattern, patience).group(0)

    def through(self, pattern: str) -> str:
        """The same; everything that it forgets."""
        found = self._find(pattern)
        return found.string[: found.end()]

    def _find(self, pattern: str, patience: float = PATIENCE_SECONDS) -> re.Match[str]:
        deadline = time.monotonic() + patience
        while not (found := re.search(pattern, self.screen)):
            ready, _, _ = select.select(
                [self.master], [], [], max(0.0, deadline - time.monotonic())
            )
            assert ready, f"no {pattern!r} in {self.screen!r}"
            self.screen += os.read(self.master, 65536).decode(errors="replace")
        self.screen = self.screen[found.end() :]
        return found

    def wait(self) -> int:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.screen
            ready, _, _ = select.select([self.master], [], [], 0.02)
            if ready:
                self.screen += os.read(self.master, 65536).decode(errors="replace")
        while select.select([self.master], [], [], 0)[0]:
            self.screen += os.read(self.master, 65536).decode(errors="replace")
        return self.process.returncode

    def restored(self) -> bool:
        return termios.tcgetattr(self.slave) == self.before

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(fd)
