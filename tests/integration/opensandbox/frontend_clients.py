# SPDX-License-Identifier: Apache-2.0
"""The frontends in the vocabulary of clients.py: the AstraBox provider and the EPP plugin."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import SandboxHandle
from astrabox.seams.sandbox_data import SandboxPathNotFound, SandboxPathRejected
from clients import Command, NotOffered, Ran, Refused
from epp_host import EppError, Plugin


class AstraBoxClient:
    """The AstraBox provider: a handle's two planes. Commands are shell lines of root."""

    def __init__(self, handle: SandboxHandle) -> None:
        self._handle = handle

    async def run(self, wanted: Command) -> Ran:
        if wanted.argv or wanted.cwd or wanted.env or wanted.user or wanted.stdin:
            raise NotOffered("only shell lines")
        try:
            ran = await self._handle.commands.run(wanted.shell, timeout=wanted.timeout)
        except TimeoutError:
            return Ran("timed out")
        except APIError as error:
            raise Refused(str(error.cause_code)) from error
        return Ran(f"exit {ran.exit_code}", ran.stdout.encode(), ran.stderr.encode())

    async def write(self, path: str, data: bytes, mode: int) -> None:
        with astrabox_failures():
            await self._handle.files.write_file(path, data, mode=mode)

    async def read(self, path: str) -> bytes:
        with astrabox_failures():
            return bytes(await self._handle.files.read_bytes(path))

    async def stat(self, path: str) -> tuple[str, int, int]:
        with astrabox_failures():
            info = (await self._handle.files.get_file_info([path]))[path]
        kind = info.entry_type
        return kind, 0 if kind == "directory" else info.size, info.mode

    async def names(self, path: str) -> list[str]:
        with astrabox_failures():
            listed = await self._handle.files.list_directory(path)
        return sorted(entry.path.rpartition("/")[2] for entry in listed)

    async def make_directory(self, path: str) -> None:
        with astrabox_failures():
            await self._handle.files.create_directories([SimpleNamespace(path=path, mode=0o755)])

    async def move(self, source: str, destination: str) -> None:
        with astrabox_failures():
            await self._handle.files.move_files([SimpleNamespace(src=source, dest=destination)])

    async def remove(self, path: str) -> None:
        with astrabox_failures():
            await self._handle.files.delete_files([path])

    async def remove_tree(self, path: str) -> None:
        with astrabox_failures():
            await self._handle.files.delete_directories([path])

    async def replace(self, path: str, old: str, new: str) -> None:
        raise NotOffered("replace")


@contextlib.contextmanager
def astrabox_failures() -> Iterator[None]:
    """The contract's exceptions as Refused."""
    try:
        yield
    except SandboxPathNotFound as error:
        raise Refused("PATH_NOT_FOUND") from error
    except SandboxPathRejected as error:
        raise Refused("PATH_REJECTED") from error
    except APIError as error:
        raise Refused(str(error.cause_code)) from error


class EppClient:
    """The EPP plugin, spoken to as its host does. Its calls block: each has a thread."""

    def __init__(self, plugin: Plugin, sandbox_id: str) -> None:
        self._plugin = plugin
        self._id = sandbox_id

    async def run(self, wanted: Command) -> Ran:
        words = list(wanted.argv) or ["sh", "-c", wanted.shell]
        extra: dict[str, Any] = {}
        if wanted.user:
            extra["user"] = "{}:{}".format(*wanted.user)
        if wanted.stdin:
            extra["stdin_b64"] = base64.b64encode(wanted.stdin).decode()
        ran = await asyncio.to_thread(
            lambda: self._plugin.run(self._id, words[0], words[1:], cwd=wanted.cwd,
                                     env=dict(wanted.env), timeout=wanted.timeout or 60, **extra))
        parts = {"stdout": b"", "stderr": b""}
        for note in ran.notes:
            if note["method"] == "exec.output":
                params = note["params"]
                exact = params.get("data_b64")
                parts[params["stream"]] += (base64.b64decode(exact) if exact is not None
                                            else params["data"].encode())
        return Ran(f"exit {ran.code}", parts["stdout"], parts["stderr"])

    async def _call(self, method: str, **params: Any) -> Any:
        try:
            return await asyncio.to_thread(
                self._plugin.call, method, {"sandbox_id": self._id, **params})
        except EppError as error:
            raise Refused(str(error.sdk_code or error.code)) from error

    async def write(self, path: str, data: bytes, mode: int) -> None:
        await self._call("files.write", path=path, mode=mode,
                         content_b64=base64.b64encode(data).decode())

    async def read(self, path: str) -> bytes:
        return base64.b64decode((await self._call("files.read", path=path))["content_b64"])

    async def stat(self, path: str) -> tuple[str, int, int]:
        entry = await self._call("files.stat", path=path)
        kind = {"dir": "directory"}.get(entry["type"], entry["type"])
        mode = entry["mode"]
        bits = int(mode, 8) if isinstance(mode, str) else mode
        return kind, 0 if kind == "directory" else entry["size"], bits

    async def names(self, path: str) -> list[str]:
        answer = await self._call("files.list", path=path)
        return sorted(entry["name"] for entry in answer["entries"])

    async def make_directory(self, path: str) -> None:
        await self._call("files.mkdir", path=path)

    async def move(self, source: str, destination: str) -> None:
        await self._call("files.move", source=source, destination=destination)

    async def remove(self, path: str) -> None:
        await self._call("files.remove", path=path)

    async def remove_tree(self, path: str) -> None:
        await self._call("files.remove", path=path)

    async def replace(self, path: str, old: str, new: str) -> None:
        raise NotOffered("replace")
