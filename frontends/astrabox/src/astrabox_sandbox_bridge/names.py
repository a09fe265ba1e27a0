# SPDX-License-Identifier: Apache-2.0
"""The names of AstraBox's data planes that its published contract does not state.

The contract states what files, commands and processes do, the names of the planes and of their
errors; it does not state the names of their methods and values. What is guessed is here and
nowhere else, behind one TABLE: a correction is one edit of this module. `differences()` compares it
with the installed `astrabox`, and the provider refuses to be loaded when they differ, instead of
failing in somebody's conversation.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from datetime import datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any

from astrabox.common.utils.errors import APIError
from astrabox.seams import sandbox_data

from .client import moment, v1
from .failures import Plane

if TYPE_CHECKING:
    from .commands import BoxCommands
    from .files import BoxFiles
    from .processes import BoxAttachment, BoxProcesses


# --- Errors ---------------------------------------------------------------------------------------


class SandboxProcessNotFound(APIError):
    """No process of this id; for a contract that has no error of its own for it."""

    def __init__(self, message: str) -> None:
        super().__init__("SANDBOX_PROCESS_NOT_FOUND", message, 404)


class SandboxProcessAlreadyAttached(APIError):
    """Somebody holds the process; for a contract that has no error of its own for it."""

    def __init__(self, message: str) -> None:
        super().__init__("SANDBOX_PROCESS_ALREADY_ATTACHED", message, 409)


_OWN_ERRORS: Mapping[Plane, Callable[[str], Exception]] = {
    Plane.ATTACHED: SandboxProcessAlreadyAttached,
    Plane.NO_PROCESS: SandboxProcessNotFound,
}


def error(
    plane: Plane, message: str, *, path: str | None = None, first_available: int | None = None
) -> Exception:
    """A data plane's exception. What is known beside the words rides as attributes."""
    make = getattr(sandbox_data, plane.value, None) or _OWN_ERRORS[plane]
    failure: Exception = make(message)
    for name, value in (("path", path), ("first_available", first_available)):
        if value is not None and not hasattr(failure, name):
            setattr(failure, name, value)
    return failure


# --- Values ---------------------------------------------------------------------------------------

_TYPE_WORDS = {
    v1.FILE_TYPE_FILE: "file",
    v1.FILE_TYPE_DIRECTORY: "directory",
    v1.FILE_TYPE_SYMLINK: "symlink",
}

# Fields of a file's description, under every name that they may have.
_INFO_FIELDS: Mapping[str, Callable[[v1.FileInfo], Any]] = {
    "path": lambda info: info.path,
    "entry_type": lambda info: _TYPE_WORDS.get(info.type, "other"),
    "type": lambda info: _TYPE_WORDS.get(info.type, "other"),
    "kind": lambda info: _TYPE_WORDS.get(info.type, "other"),
    "size": lambda info: info.size_bytes,
    "size_bytes": lambda info: info.size_bytes,
    "modified_at": lambda info: moment(info.modified_at),
    "mode": lambda info: info.mode,
    "owner": lambda info: info.owner,
    "group": lambda info: info.group,
}


@dataclasses.dataclass(frozen=True)
class FileDescription:
    """For a contract that has no such type of its own."""

    path: str
    entry_type: str
    size: int
    modified_at: datetime
    mode: int
    owner: str
    group: str


@dataclasses.dataclass(frozen=True)
class ProcessStatus:
    """For a contract that has no such type of its own."""

    output_offset: int
    running: bool


_INFO_TYPE: Any = getattr(sandbox_data, "SandboxFileInfo", FileDescription)
_STATUS_TYPE: Any = getattr(sandbox_data, "SandboxProcessStatus", ProcessStatus)
_RESULT_TYPE: Any = sandbox_data.SandboxCommandResult


def _describe(info: v1.FileInfo) -> Any:
    wanted = [field.name for field in dataclasses.fields(_INFO_TYPE)]
    return _INFO_TYPE(**{name: _INFO_FIELDS[name](info) for name in wanted if name in _INFO_FIELDS})


def _printed(data: bytes) -> Any:
    """Output as the contract has it: text, unless its type says bytes."""
    as_bytes = typing.get_type_hints(_RESULT_TYPE).get("stdout") is bytes
    return data if as_bytes else data.decode("utf-8", "replace")


def _part(entry: Any, *aliases: str) -> Any:
    """An attribute or key of an entry, under the first of its names that it has."""
    for alias in aliases:
        if isinstance(entry, Mapping):
            if alias in entry:
                return entry[alias]
        elif hasattr(entry, alias):
            return getattr(entry, alias)
    return None


class ByteStream:
    """A file's pieces, for `async for`, with or without an `await` before it: the contract does not
    say which."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces

    def __await__(self) -> Generator[Any, None, AsyncIterator[bytes]]:
        return self._open().__await__()

    async def _open(self) -> AsyncIterator[bytes]:
        # The first piece is fetched now, so that awaiting tells whether the file can be read.
        first = await anext(self._pieces, None)
        return self._rest(first)

    async def _rest(self, first: bytes | None) -> AsyncIterator[bytes]:
        if first is not None:
            yield first
            async for piece in self._pieces:
                yield piece

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces


# --- The planes -----------------------------------------------------------------------------------


class ContractFiles:
    def __init__(self, files: BoxFiles) -> None:
        self._files = files

    async def read_bytes(self, path: str) -> bytes:
        return await self._files.read(path)

    def read_bytes_stream(self, path: str) -> ByteStream:
        return ByteStream(self._files.stream(path))

    async def write_file(
        self,
        path: str,
        data: Any,
        *,
        mode: int | None = None,
        owner: str | None = None,
        group: str | None = None,
    ) -> None:
        await self._files.write(path, data, mode=mode, owner=owner, group=group)

    async def create_directories(self, entries: Sequence[Any]) -> None:
        for entry in entries:
            await self._files.make_directory(
                entry if isinstance(entry, str) else _part(entry, "path"),
                mode=_part(entry, "mode"),
                owner=_part(entry, "owner"),
                group=_part(entry, "group"),
            )

    async def list_directory(self, path: str, *, depth: int = 1) -> list[Any]:
        return [_describe(info) for info in await self._files.entries(path, depth)]

    async def get_file_info(self, paths: Sequence[str]) -> dict[str, Any]:
        return {path: _describe(await self._files.stat(path)) for path in paths}

    async def move_files(self, entries: Sequence[Any]) -> None:
        for entry in entries:
            await self._files.move(
                _part(entry, "src", "source"), _part(entry, "dest", "destination", "dst")
            )

    async def delete_files(self, paths: Sequence[str]) -> None:
        await self._files.remove(paths, recursive=False)

    async def delete_directories(self, paths: Sequence[str]) -> None:
        await self._files.remove(paths, recursive=True)

    async def set_permissions(self, entries: Sequence[Any]) -> None:
        for entry in entries:
            await self._files.set_attributes(
                _part(entry, "path"),
                mode=_part(entry, "mode"),
                owner=_part(entry, "owner"),
                group=_part(entry, "group"),
            )

    async def search(self, path: str, pattern: str) -> list[Any]:
        return [_describe(info) for info in await self._files.search(path, pattern)]


class ContractCommands:
    def __init__(self, commands: BoxCommands) -> None:
        self._commands = commands

    async def run(self, command: str, *, timeout: float | None = 60.0) -> Any:
        ran = await self._commands.run(command, timeout=timeout)
        return _RESULT_TYPE(
            exit_code=ran.exit_code, stdout=_printed(ran.stdout), stderr=_printed(ran.stderr)
        )


class ContractProcesses:
    def __init__(self, processes: BoxProcesses) -> None:
        self._processes = processes

    async def create(
        self,
        *,
        command: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        terminal: bool | None = None,
    ) -> str:
        """Without a word about a terminal, a shell gets one and a program gets pipes."""
        wanted = command is None if terminal is None else terminal
        return await self._processes.start(command, cwd=cwd, env=env, terminal=wanted)

    async def status(self, process_id: str) -> Any:
        info = await self._processes.get(process_id)
        return _STATUS_TYPE(
            output_offset=info.output_offset,
            running=info.state in (v1.ProcessInfo.STATE_RUNNING, v1.ProcessInfo.STATE_STOPPED),
        )

    async def attach(
        self, process_id: str, *, since: int = 0, takeover: bool = True
    ) -> ContractAttachment:
        held = await self._processes.attach(process_id, since=since, takeover=takeover)
        return ContractAttachment(held)

    async def delete(self, process_id: str) -> bool:
        return await self._processes.delete(process_id)


class ContractAttachment:
    def __init__(self, held: BoxAttachment) -> None:
        self._held = held

    @property
    def exit_code(self) -> int | None:
        return self._held.exit_code

    async def write(self, data: bytes) -> None:
        await self._held.write(data)

    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        return self._held.output()

    async def signal(self, name: int | str) -> None:
        await self._held.signal(name)

    async def resize(self, *, cols: int, rows: int) -> None:
        await self._held.resize(rows, cols)

    async def close(self) -> None:
        await self._held.close()


# --- The table, and its check ---------------------------------------------------------------------

# The contract's protocol → what stands for it here.
TABLE: Mapping[str, type] = {
    "SandboxFiles": ContractFiles,
    "SandboxCommands": ContractCommands,
    "SandboxProcesses": ContractProcesses,
    "SandboxProcessAttachment": ContractAttachment,
}


def differences(contract: ModuleType = sandbox_data) -> list[str]:
    """Where the installed `astrabox` and this module disagree, in words; empty when they agree."""
    found = [
        f"{plane.value} is not in {contract.__name__}"
        for plane in Plane
        if plane is not Plane.API_ERROR and plane not in _OWN_ERRORS
        if not hasattr(contract, plane.value)
    ]
    for name, own in TABLE.items():
        protocol = getattr(contract, name, None)
        if protocol is not None:
            found += _protocol_differences(name, protocol, own)
    info = getattr(contract, "SandboxFileInfo", FileDescription)
    if dataclasses.is_dataclass(info):
        found += [
            f"SandboxFileInfo.{field.name} is unknown here"
            for field in dataclasses.fields(info)
            if field.name not in _INFO_FIELDS
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ]
    return found


def _protocol_differences(name: str, protocol: type, own: type) -> list[str]:
    found = []
    for member, theirs in inspect.getmembers(protocol, callable):
        if member.startswith("_"):
            continue
        ours = getattr(own, member, None)
        if ours is None:
            found.append(f"{name}.{member} is missing here")
            continue
        if inspect.iscoroutinefunction(theirs) and not _awaitable(ours):
            found.append(f"{name}.{member} must be awaited and is not here")
        accepted = inspect.signature(ours).parameters
        passed = inspect.signature(theirs).parameters
        found += [
            f"{name}.{member} takes no {parameter!r} here"
            for parameter in passed
            if parameter not in accepted
        ]
        found += [
            f"{name}.{member} needs {parameter.name!r} here"
            for parameter in accepted.values()
            if parameter.default is inspect.Parameter.empty and parameter.name not in passed
        ]
    return found


def _awaitable(function: Callable[..., Any]) -> bool:
    if inspect.iscoroutinefunction(function):
        return True
    returned = typing.get_type_hints(function).get("return")
    return isinstance(returned, type) and issubclass(returned, Awaitable)
