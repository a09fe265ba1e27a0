# SPDX-License-Identifier: Apache-2.0
"""One vocabulary for all ways into a sandbox, so that one table of scenarios goes through each.

A client does a thing or raises: `NotOffered` where its API has no such thing, `Refused` with one
word for the failure. Bytes are what a user of that API gets, in the reading most favourable to it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from astrabox_sandbox_bridge.client import BridgeClient, BridgeError, collect, command, v1
from opensandbox import Sandbox as SdkSandbox
from opensandbox.exceptions import SandboxException
from opensandbox.models.execd import OutputMessage, RunCommandOpts
from opensandbox.models.filesystem import (
    ContentReplaceEntry,
    DirectoryListEntry,
    MoveEntry,
    WriteEntry,
)

MAX_OUTPUT_BYTES = 64 << 20


class NotOffered(Exception):
    """This way into a sandbox cannot express the scenario."""


class Refused(Exception):
    """The operation failed, in one word."""


@dataclass(frozen=True)
class Command:
    """What to run: a shell line or argv."""

    shell: str = ""
    argv: tuple[str, ...] = ()
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    user: tuple[int, int] | None = None
    timeout: float | None = None
    stdin: bytes = b""


@dataclass(frozen=True)
class Ran:
    """What a command did: `end` is "exit N", "signal N", "timed out", "not started"."""

    end: str
    stdout: bytes = b""
    stderr: bytes = b""


class Client(Protocol):
    """A sandbox in the hands of one API. Paths are absolute, modes are POSIX bits."""

    async def run(self, wanted: Command) -> Ran: ...

    async def write(self, path: str, data: bytes, mode: int) -> None: ...

    async def read(self, path: str) -> bytes: ...

    async def stat(self, path: str) -> tuple[str, int, int]:
        """(type, size, mode); a link is described, not followed."""

    async def names(self, path: str) -> list[str]: ...

    async def make_directory(self, path: str) -> None: ...

    async def move(self, source: str, destination: str) -> None: ...

    async def remove(self, path: str) -> None: ...

    async def remove_tree(self, path: str) -> None: ...

    async def replace(self, path: str, old: str, new: str) -> None: ...


class SdkClient:
    """The official Python SDK."""

    def __init__(self, sandbox: SdkSandbox) -> None:
        self._sandbox = sandbox

    async def run(self, wanted: Command) -> Ran:
        if wanted.stdin:
            raise NotOffered("stdin")
        uid, gid = wanted.user or (None, None)
        options = RunCommandOpts(
            working_directory=wanted.cwd or None, envs=dict(wanted.env) or None, uid=uid, gid=gid,
            timeout=None if wanted.timeout is None else timedelta(seconds=wanted.timeout))
        try:
            ran = await self._sandbox.commands.run(
                wanted.shell or list(wanted.argv), opts=options)
        except SandboxException as error:
            raise Refused(type(error).__name__) from error
        if ran.error is not None and ran.exit_code is None:
            end = "not started" if "exec" in ran.error.value else f"error {ran.error.value}"
        else:
            end = f"exit {ran.exit_code}"
        return Ran(end, _lines(ran.logs.stdout), _lines(ran.logs.stderr))

    async def write(self, path: str, data: bytes, mode: int) -> None:
        with sdk_failures():
            await self._sandbox.files.write_file(path, data, mode=int(f"{mode:o}"))

    async def read(self, path: str) -> bytes:
        with sdk_failures():
            return await self._sandbox.files.read_bytes(path)

    async def stat(self, path: str) -> tuple[str, int, int]:
        with sdk_failures():
            info = (await self._sandbox.files.get_file_info([path]))[path]
        kind = info.entry_type or "?"
        return kind, 0 if kind == "directory" else info.size, int(str(info.mode), 8)

    async def names(self, path: str) -> list[str]:
        with sdk_failures():
            listed = await self._sandbox.files.list_directory(DirectoryListEntry(path=path))
        return sorted(entry.path.rpartition("/")[2] for entry in listed)

    async def make_directory(self, path: str) -> None:
        with sdk_failures():
            await self._sandbox.files.create_directories([WriteEntry(path=path, mode=755)])

    async def move(self, source: str, destination: str) -> None:
        with sdk_failures():
            await self._sandbox.files.move_files([MoveEntry(src=source, dest=destination)])

    async def remove(self, path: str) -> None:
        with sdk_failures():
            await self._sandbox.files.delete_files([path])

    async def remove_tree(self, path: str) -> None:
        with sdk_failures():
            await self._sandbox.files.delete_directories([path])

    async def replace(self, path: str, old: str, new: str) -> None:
        with sdk_failures():
            await self._sandbox.files.replace_contents(
                [ContentReplaceEntry(path=path, old_content=old, new_content=new)])


@contextlib.contextmanager
def sdk_failures() -> Iterator[None]:
    """The SDK's exceptions as Refused."""
    try:
        yield
    except SandboxException as error:
        raise Refused(error.error.code or type(error).__name__) from error


def _lines(messages: list[OutputMessage]) -> bytes:
    """Every message is a line, unless it brings its own line end."""
    return "".join(message.text if message.text.endswith(("\n", "\r")) else message.text + "\n"
                   for message in messages).encode()


class GrpcClient:
    """The bridge."""

    def __init__(self, client: BridgeClient, sandbox_id: str) -> None:
        self._client = client
        self._id = sandbox_id

    async def run(self, wanted: Command) -> Ran:
        spec = command(wanted.shell or None, argv=wanted.argv or None, cwd=wanted.cwd,
                       env=wanted.env, user=wanted.user, timeout=wanted.timeout,
                       stdin=wanted.stdin)
        with bridge_failures():
            got = await collect(self._client.execs.execute(self._id, spec), limit=MAX_OUTPUT_BYTES)
        return Ran(end_of(got.outcome), got.stdout, got.stderr)

    async def write(self, path: str, data: bytes, mode: int) -> None:
        options = v1.WriteOptions(path=path, mode=mode, create_parents=True)
        with bridge_failures():
            await self._client.files.write(self._id, options, data)

    async def read(self, path: str) -> bytes:
        with bridge_failures():
            return await self._client.files.read_bytes(self._id, path)

    async def stat(self, path: str) -> tuple[str, int, int]:
        with bridge_failures():
            info = await self._client.files.stat(self._id, path)
        kind = v1.FileType.Name(info.type).removeprefix("FILE_TYPE_").lower()
        return kind, 0 if kind == "directory" else info.size_bytes, info.mode

    async def names(self, path: str) -> list[str]:
        with bridge_failures():
            return sorted([entry.path.rpartition("/")[2]
                           async for entry in self._client.files.list(self._id, path)])

    async def make_directory(self, path: str) -> None:
        with bridge_failures():
            await self._client.files.make_directory(self._id, path, parents=True)

    async def move(self, source: str, destination: str) -> None:
        with bridge_failures():
            await self._client.files.move(self._id, source, destination)

    async def remove(self, path: str) -> None:
        with bridge_failures():
            await self._client.files.remove(self._id, path)

    async def remove_tree(self, path: str) -> None:
        with bridge_failures():
            await self._client.files.remove(self._id, path, recursive=True)

    async def replace(self, path: str, old: str, new: str) -> None:
        with bridge_failures():
            await self._client.files.replace_text(self._id, path, old.encode(), new.encode())


@contextlib.contextmanager
def bridge_failures() -> Iterator[None]:
    """BridgeError as Refused."""
    try:
        yield
    except BridgeError as error:
        raise Refused(error.reason) from error


def end_of(outcome: v1.Outcome) -> str:
    match outcome.WhichOneof("kind"):
        case "exit_code":
            return f"exit {outcome.exit_code}"
        case "signal":
            return f"signal {outcome.signal.number}"
        case "timed_out":
            return "timed out"
        case "spawn_failed":
            return "not started"
        case other:
            return str(other)
