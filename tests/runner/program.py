# SPDX-License-Identifier: Apache-2.0
"""Programs as processes of a test or a bench. Every pytest_test() has this module."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

# Sanitizer builds on a busy machine are slow; nothing waits this long when all is well.
PATIENCE_SECONDS = 60.0

# What the built programs say when they can be reached.
OPENSANDBOX_LISTENS = r"(http://[\d.:]+)"
BRIDGE_LISTENS = r"listening on ([^\s\"]+:\d+)"


def eventually(condition: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def is_sanitized(program: str | Path) -> bool:
    """Whether it was built with a sanitizer, whose memory and size are not the program's."""
    content = Path(program).read_bytes()
    return b"__asan_init" in content or b"__tsan_init" in content


def process_status(pid: int, field: str) -> int:
    """A number of /proc/PID/status: VmRSS and VmHWM in KiB, Threads."""
    found = re.search(rf"^{field}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    assert found
    return int(found[1])


def memory(pid: int, field: str = "VmHWM") -> int:
    """Bytes that a process has resident (VmRSS), or had at most (VmHWM). 0 of a sanitized program:
    most of that is not its own."""
    if is_sanitized(f"/proc/{pid}/exe"):
        return 0
    return process_status(pid, field) << 10


class Program:
    """A program that says on its output or error where it listens. Ended with the block.

    `environment` is all that it gets; by default, ours.
    """

    def __init__(
        self,
        *command: str | Path,
        says: str,
        environment: Mapping[str, str] | None = None,
        own_session: bool = False,
        seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._name = str(command[0])
        self._lines: list[str] = []
        self._ended = False
        self._changed = threading.Condition()
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=own_session,
            encoding="utf-8",
            errors="replace",
        )
        assert self.process.stdout is not None
        # To its end, or a full pipe would stop the program.
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()
        try:
            self.place = self.find(says, seconds)
        except BaseException:
            self.kill()
            raise

    def _read(self, output: IO[str]) -> None:
        with output:
            for line in output:
                with self._changed:
                    self._lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        """All that it has said; complete once it has ended."""
        if self.process.poll() is not None:
            # A child of its own may hold the other end of the pipe for longer.
            self._reader.join(2)
        with self._changed:
            return "".join(self._lines)

    def find(self, pattern: str, seconds: float = PATIENCE_SECONDS) -> str:
        """The first group of the pattern in the first line that has it, which may be yet to come."""
        deadline = time.monotonic() + seconds
        seen = 0
        with self._changed:
            while True:
                for line in self._lines[seen:]:
                    if found := re.search(pattern, line):
                        return found[1]
                seen = len(self._lines)
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    said = "".join(self._lines)
                    why = "it ended" if self._ended else f"not within {seconds} s"
                    raise AssertionError(f"{self._name}: no {pattern!r}, {why}:\n{said}")
                self._changed.wait(left)

    def kill(self) -> None:
        """As a crash. Nothing happens to what has ended."""
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = PATIENCE_SECONDS) -> int:
        """SIGTERM, and SIGKILL when it does not end by that. The exit code."""
        self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
