# SPDX-License-Identifier: Apache-2.0
"""A server for tests, as a process."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import subprocess
import threading


class Server:
    """A program that says on standard output or error where it listens."""

    def __init__(self, argv: list[str], ready: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
        )
        self.log = b""
        found: queue.Queue[str] = queue.Queue()
        pattern = re.compile(ready)

        def read() -> None:
            assert self.process.stdout is not None
            for line in self.process.stdout:
                self.log += line
                if match := pattern.search(line.decode(errors="replace")):
                    found.put(match.group(1))
            found.put("")

        threading.Thread(target=read, daemon=True).start()
        self.address = ""
        with contextlib.suppress(queue.Empty):
            self.address = found.get(timeout=60)
        if not self.address:
            self.stop()
            raise RuntimeError(f"{argv[0]} did not start: {self.log[-1000:]!r}")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
