# SPDX-License-Identifier: Apache-2.0
"""A plain async client of the sandbox bridge.

    async with BridgeClient(Options("127.0.0.1:50051")) as bridge:
        made = await bridge.sandboxes.create(v1.SandboxSpec(image="python:3.12-slim"))
        box = made.sandbox.sandbox_id
        ran = await bridge.execs.run(box, command("echo hello"))
        print(ran.outcome.exit_code, ran.stdout)
        await bridge.sandboxes.delete(box)

Every failure is a BridgeError with the bridge's own word in `reason`. Messages are those of the
API, in `v1`. A client belongs to the event loop in which it was made.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from . import v1
from .connection import ConfigurationError, Connection, Options, token_file
from .errors import BRIDGE_UNREACHABLE, BridgeError
from .execs import Collected, Execs, collect, command
from .files import Content, Files
from .isolation import Isolation
from .processes import Attachment, Processes
from .sandboxes import Bridge, Sandboxes
from .times import duration, moment, timestamp

__all__ = [
    "BRIDGE_UNREACHABLE",
    "Attachment",
    "BridgeClient",
    "BridgeError",
    "Collected",
    "ConfigurationError",
    "Content",
    "Options",
    "collect",
    "command",
    "duration",
    "moment",
    "timestamp",
    "token_file",
    "v1",
]


class BridgeClient:
    """The services of a bridge, one attribute each, over one channel. Nothing is sent before the
    first call."""

    def __init__(self, options: Options) -> None:
        self.connection = Connection(options)
        self.bridge = Bridge(self.connection)
        self.sandboxes = Sandboxes(self.connection)
        self.execs = Execs(self.connection)
        self.files = Files(self.connection)
        self.processes = Processes(self.connection)
        self.isolation = Isolation(self.connection)

    async def close(self) -> None:
        """Cuts running calls and releases the channel."""
        await self.connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
