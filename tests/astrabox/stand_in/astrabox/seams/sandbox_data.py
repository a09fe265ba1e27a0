# SPDX-License-Identifier: Apache-2.0
"""The data planes of a sandbox handle: files, commands, resident processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn, Protocol

from astrabox.common.utils.errors import APIError


class SandboxPathNotFound(Exception):
    """Nothing is at the path."""


class SandboxPathRejected(Exception):
    """The path, or what is asked of it, is refused."""


class SandboxUnreachable(Exception):
    """The sandbox could not be asked."""


class SandboxProcessReplayGap(Exception):
    """The output asked for is no longer kept."""


class SandboxProcessAlreadyAttached(Exception):
    """Somebody holds the process."""


@dataclass(frozen=True)
class SandboxCommandResult:
    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class SandboxFileInfo:
    path: str
    entry_type: str
    size: int
    modified_at: datetime
    mode: int
    owner: str
    group: str


class SandboxFiles(Protocol):
    async def read_bytes(self, path: str) -> bytes: ...

    async def read_bytes_stream(self, path: str) -> AsyncIterator[bytes]: ...

    async def write_file(
        self,
        path: str,
        data: Any,
        *,
        mode: int,
        owner: str | None = None,
        group: str | None = None,
    ) -> None: ...

    async def create_directories(self, entries: Sequence[Any]) -> None: ...

    async def list_directory(self, path: str, *, depth: int = 1) -> list[SandboxFileInfo]: ...

    async def get_file_info(self, paths: Sequence[str]) -> dict[str, SandboxFileInfo]: ...

    async def move_files(self, entries: Sequence[Any]) -> None: ...

    async def delete_files(self, paths: Sequence[str]) -> None: ...

    async def delete_directories(self, paths: Sequence[str]) -> None: ...

    async def set_permissions(self, entries: Sequence[Any]) -> None: ...

    async def search(self, path: str, pattern: str) -> list[SandboxFileInfo]: ...


class SandboxCommands(Protocol):
    async def run(self, command: str, *, timeout: float | None = 60.0) -> SandboxCommandResult: ...


@dataclass(frozen=True)
class SandboxProcessStatus:
    output_offset: int
    running: bool


class SandboxProcessAttachment(Protocol):
    async def write(self, data: bytes) -> None: ...

    def output(self) -> AsyncIterator[tuple[int, bytes]]: ...

    async def signal(self, name: str) -> None: ...

    async def resize(self, *, cols: int, rows: int) -> None: ...

    async def close(self) -> None: ...


class SandboxProcesses(Protocol):
    async def create(
        self, *, command: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> str: ...

    async def status(self, process_id: str) -> SandboxProcessStatus: ...

    async def attach(
        self, process_id: str, *, since: int = 0, takeover: bool = True
    ) -> SandboxProcessAttachment: ...

    async def delete(self, process_id: str) -> bool: ...


class UnsupportedSandboxProcesses:
    """The processes of a backend that cannot keep any."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self) -> NoReturn:
        raise APIError(
            "SANDBOX_PROCESS_SESSIONS_UNSUPPORTED",
            f"the backend {self._name} keeps no resident processes",
            501,
        )

    async def create(self, **_: Any) -> str:
        self._refuse()

    async def status(self, process_id: str) -> SandboxProcessStatus:
        self._refuse()

    async def attach(self, process_id: str, **_: Any) -> SandboxProcessAttachment:
        self._refuse()

    async def delete(self, process_id: str) -> bool:
        self._refuse()
