# SPDX-License-Identifier: Apache-2.0
"""The real bridge and an OpenSandbox, for tests that prove what the fake bridge only claims.

The build names the programs: SANDBOX_BRIDGE_BINARY, LOCAL_OPENSANDBOX_BINARY. Where OPENSANDBOX_URL
and OPENSANDBOX_API_KEY_FILE name a running server (tests/integration/opensandbox), it is that one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

import pytest
from program import BRIDGE_LISTENS, OPENSANDBOX_LISTENS, Program


def program(variable: str) -> Path:
    """A program that the build names; without it the test is skipped and says so."""
    named = os.environ.get(variable)
    if not named:
        pytest.skip(f"{variable} names no program; run the tests with ./test")
    return Path(named).resolve()


class LocalOpenSandbox(Program):
    """`place` is its URL."""

    def __init__(self, *flags: str) -> None:
        super().__init__(
            program("LOCAL_OPENSANDBOX_BINARY"),
            "--listen=127.0.0.1:0",
            *flags,
            says=OPENSANDBOX_LISTENS,
        )


class ServerThatRuns:
    """The OpenSandbox that was started before the tests, as a LocalOpenSandbox."""

    def __init__(self) -> None:
        self.place = os.environ["OPENSANDBOX_URL"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def an_opensandbox() -> LocalOpenSandbox | ServerThatRuns:
    """A local OpenSandbox, or the server that runs already."""
    unavailable = os.environ.get("OPENSANDBOX_UNAVAILABLE")
    if unavailable:
        pytest.skip(f"no real OpenSandbox here: {unavailable}")
    return ServerThatRuns() if "OPENSANDBOX_URL" in os.environ else LocalOpenSandbox()


class RealBridge(Program):
    """`place` is its address. Without an upstream: the local one inside it, or the server that
    runs already."""

    def __init__(self, upstream: str = "", *flags: str, port: int = 0) -> None:
        running = os.environ.get("OPENSANDBOX_URL")
        upstream = upstream or running or "local"
        if upstream == running and not any(flag.startswith("--api_key_file") for flag in flags):
            flags = (*flags, f"--api_key_file={os.environ['OPENSANDBOX_API_KEY_FILE']}")
        super().__init__(
            program("SANDBOX_BRIDGE_BINARY"),
            f"--upstream={upstream}",
            f"--listen=127.0.0.1:{port}",
            *flags,
            says=BRIDGE_LISTENS,
        )
