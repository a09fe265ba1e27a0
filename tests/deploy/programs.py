# SPDX-License-Identifier: Apache-2.0
"""The built programs as processes of a test; `place` is where each is reached."""

from __future__ import annotations

import os
import subprocess

from program import BRIDGE_LISTENS, OPENSANDBOX_LISTENS, PATIENCE_SECONDS, Program


class OpenSandbox(Program):
    """A local one."""

    def __init__(self) -> None:
        super().__init__(os.environ["LOCAL_OPENSANDBOX"], "--listen=127.0.0.1:0",
                         says=OPENSANDBOX_LISTENS)


class Bridge(Program):
    """In front of `upstream`."""

    def __init__(self, upstream: str, *flags: str, listen: str = "127.0.0.1:0") -> None:
        super().__init__(os.environ["SANDBOX_BRIDGE_BINARY"], f"--listen={listen}",
                         f"--upstream={upstream}", *flags, says=BRIDGE_LISTENS)


def sbx(address: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([os.environ["SBX_BINARY"], *arguments], input=stdin, check=False,
                          env={"SANDBOX_BRIDGE_ADDRESS": address}, timeout=PATIENCE_SECONDS,
                          capture_output=True)
