# SPDX-License-Identifier: Apache-2.0
"""The built programs as processes of a test."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

LISTENING = re.compile(r'msg="listening on ([^" ]+)"')
SECONDS = 60.0


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {SECONDS} s: {what}"
        time.sleep(0.02)


class OpenSandbox:
    """A local OpenSandbox; ended by stop()."""

    def __init__(self, log: Path) -> None:
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [os.environ["LOCAL_OPENSANDBOX"], "--listen=127.0.0.1:0"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        eventually(lambda: "http://" in log.read_text() or self._process.poll() is not None,
                   "OpenSandbox listens")
        found = re.search(r"http://\S+", log.read_text())
        assert found is not None, log.read_text()
        self.url = found.group(0)

    def stop(self) -> None:
        self._process.terminate()
        assert self._process.wait(SECONDS) == 0


class Bridge:
    """A bridge in front of `upstream`; ended by kill() or stop()."""

    def __init__(self, log: Path, upstream: str, *flags: str,
                 listen: str = "127.0.0.1:0") -> None:
        self.log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [os.environ["SANDBOX_BRIDGE_BINARY"], f"--listen={listen}",
                 f"--upstream={upstream}", *flags], stdin=subprocess.DEVNULL, stderr=out)
        eventually(lambda: LISTENING.search(log.read_text()) is not None
                   or self.process.poll() is not None, "the bridge listens")
        found = LISTENING.search(log.read_text())
        assert found is not None, log.read_text()
        self.address = found.group(1)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(SECONDS)


def sbx(address: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([os.environ["SBX_BINARY"], *arguments], input=stdin, check=False,
                          env={"SANDBOX_BRIDGE_ADDRESS": address}, timeout=SECONDS,
                          capture_output=True)
