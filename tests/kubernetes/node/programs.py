# SPDX-License-Identifier: Apache-2.0
"""Long-running programs of the node, each with a log of its own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class Failed(Exception):
    """The node cannot be had; the message holds the ends of the logs."""


def eventually(condition: Callable[[], bool], what: str, seconds: float = 60.0,
               every: float = 0.1) -> None:
    """Waits until the condition holds. Raises Failed after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"not within {seconds:.0f} s: {what}")
        time.sleep(every)


class Programs:
    """Starts programs and ends them, the last one first."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        logs.mkdir(parents=True, exist_ok=True)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *command: str | Path,
              environment: Mapping[str, str] | None = None) -> int:
        """Its process id."""
        with (self.logs / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **(environment or {})}, start_new_session=True)
        return self._running[name].pid

    def alive(self, name: str) -> bool:
        return self._running[name].poll() is None

    def stop(self, name: str, seconds: float = 5.0) -> None:
        """SIGTERM, then SIGKILL."""
        process = self._running.pop(name)
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop_all(self) -> None:
        for name in reversed(list(self._running)):
            self.stop(name)

    def await_ready(self, name: str, ready: Callable[[], bool], seconds: float = 60.0) -> None:
        """Raises Failed, with the end of its log, when it ended or took too long."""
        def ready_or_dead() -> bool:
            if not self.alive(name):
                raise Failed(f"{name} ended:\n{self.tail(name)}")
            return ready()
        try:
            eventually(ready_or_dead, f"{name} is ready", seconds)
        except Failed as failed:
            raise Failed(f"{failed}\n{self.tail(name)}") from None

    def tail(self, name: str, lines: int = 25) -> str:
        text = (self.logs / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])


def run(*command: str | Path, stdin: str | bytes = "") -> str:
    """Stdout of a command that has to succeed; raises Failed with its stderr."""
    words: Sequence[str] = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, check=False,
                          input=stdin.encode() if isinstance(stdin, str) else stdin)
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)}: {(done.stderr or done.stdout).decode().strip()}")
    return done.stdout.decode()
