# SPDX-License-Identifier: Apache-2.0
"""FileService of the fake bridge: files of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import grp
import os
import posixpath
import pwd
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from astrabox_sandbox_bridge._generated import files_pb2_grpc
from astrabox_sandbox_bridge.client import v1

from .errors import Fault

if TYPE_CHECKING:
    from .server import FakeBridge

_CHUNK = 256 * 1024


class FakeFiles(files_pb2_grpc.FileServiceServicer):
    def __init__(self, bridge: FakeBridge) -> None:
        self._upstream = bridge.upstream

    def _path(self, request: Any, path: str) -> str:
        self._upstream.find(request.sandbox_id, request.expected_incarnation, running=True)
        if not path.startswith("/") or "\0" in path or len(path.encode()) > 4096:
            raise Fault("PATH_REJECTED", "path: not an absolute path", field="path")
        return "/" + posixpath.normpath(path).lstrip("/")

    async def Stat(self, request: v1.StatRequest, context: Any) -> v1.FileInfo:  # noqa: N802
        with _faults():
            return _info(self._path(request, request.path))

    async def ListDirectory(  # noqa: N802
        self, request: v1.ListDirectoryRequest, context: Any
    ) -> AsyncIterator[v1.FileInfoBatch]:
        path = self._path(request, request.path)
        with _faults():
            found = list(_walk(path, request.depth or 1))
        yield v1.FileInfoBatch(entries=found)

    async def Search(  # noqa: N802
        self, request: v1.SearchRequest, context: Any
    ) -> AsyncIterator[v1.FileInfoBatch]:
        path = self._path(request, request.path)
        with _faults():
            found = [
                info
                for info in _walk(path, -1)
                if info.type != v1.FILE_TYPE_DIRECTORY
                and fnmatch.fnmatchcase(os.path.basename(info.path), request.pattern)
            ]
        yield v1.FileInfoBatch(entries=found)

    async def ReadFile(  # noqa: N802
        self, request: v1.ReadFileRequest, context: Any
    ) -> AsyncIterator[v1.ReadFileChunk]:
        path = self._path(request, request.path)
        left = request.length if request.HasField("length") else 1 << 62
        with _faults(), open(path, "rb") as source:  # noqa: ASYNC230
            yield v1.ReadFileChunk(info=_info(path))
            source.seek(request.offset)
            while left > 0 and (data := source.read(min(_CHUNK, left))):
                left -= len(data)
                yield v1.ReadFileChunk(data=data)

    async def WriteSmallFile(  # noqa: N802
        self, request: v1.WriteSmallFileRequest, context: Any
    ) -> v1.WriteFileResponse:
        path = self._path(request, request.options.path)
        return _write(path, request.options, request.data)

    async def WriteFile(self, requests: Any, context: Any) -> v1.WriteFileResponse:  # noqa: N802
        header: v1.WriteFileChunk.Header | None = None
        data = bytearray()
        async for chunk in requests:
            if header is None:
                header = chunk.header
                path = self._path(header, header.options.path)
            else:
                data += chunk.data
        assert header is not None
        # A client that vanished looks like one that has finished; headers on a dead stream fail.
        await context.send_initial_metadata(())
        await asyncio.sleep(0.05)
        if header.HasField("size_bytes") and header.size_bytes != len(data):
            raise Fault("INVALID_ARGUMENT", "size_bytes: the stream was cut", field="size_bytes")
        return _write(path, header.options, bytes(data))

    async def MakeDirectory(self, request: Any, context: Any) -> v1.MakeDirectoryResponse:  # noqa: N802
        path = self._path(request, request.path)
        with _faults():
            if os.path.isdir(path):
                return v1.MakeDirectoryResponse(created=False)
            if request.parents:
                os.makedirs(os.path.dirname(path), exist_ok=True)
            os.mkdir(path)
            os.chmod(path, request.mode if request.HasField("mode") else 0o755)
            os.chown(path, *_ids(request.owner, request.group))
        return v1.MakeDirectoryResponse(created=True)

    async def Remove(self, request: Any, context: Any) -> v1.RemoveResponse:  # noqa: N802
        path = self._path(request, request.path)
        if path == "/":
            raise Fault("PATH_REJECTED", "path: the root cannot be removed", field="path")
        with _faults():
            try:
                mode = os.lstat(path).st_mode
            except FileNotFoundError:
                if request.missing_ok:
                    return v1.RemoveResponse(removed=False)
                raise
            if not stat.S_ISDIR(mode):
                os.unlink(path)
            elif request.recursive:
                shutil.rmtree(path)
            else:
                os.rmdir(path)
        return v1.RemoveResponse(removed=True)

    async def Move(self, request: Any, context: Any) -> v1.MoveResponse:  # noqa: N802
        source = self._path(request, request.source)
        destination = self._path(request, request.destination)
        with _faults():
            os.lstat(source)
            if os.path.lexists(destination) and not request.overwrite:
                raise Fault("PATH_EXISTS")
            os.rename(source, destination)
        return v1.MoveResponse()

    async def SetAttributes(self, request: Any, context: Any) -> v1.FileInfo:  # noqa: N802
        path = self._path(request, request.path)
        with _faults():
            if os.path.islink(path) and not request.follow_symlink:
                raise Fault("PATH_REJECTED")
            os.chown(path, *_ids(request.owner, request.group))
            if request.HasField("mode"):
                os.chmod(path, request.mode)
            return _info(path)


def _write(path: str, options: v1.WriteOptions, data: bytes) -> v1.WriteFileResponse:
    ids = _ids(options.owner, options.group)
    with _faults():
        if os.path.isdir(path):
            raise Fault("IS_A_DIRECTORY")
        if options.no_follow and os.path.islink(path):
            raise Fault("PATH_REJECTED")
        if options.create_parents:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=os.path.dirname(path))
        try:
            with os.fdopen(handle, "wb") as target:
                target.write(data)
            os.chown(scratch, *ids)
            os.chmod(scratch, options.mode if options.HasField("mode") else 0o644)
            os.rename(scratch, path)
        except BaseException:
            os.unlink(scratch)
            raise
        return v1.WriteFileResponse(size_bytes=len(data), atomic=True, info=_info(path))


@contextlib.contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise Fault("PATH_NOT_FOUND") from None
    except IsADirectoryError:
        raise Fault("IS_A_DIRECTORY") from None
    except NotADirectoryError:
        raise Fault("NOT_A_DIRECTORY") from None
    except OSError as error:
        reason = {39: "DIRECTORY_NOT_EMPTY", 17: "PATH_EXISTS"}.get(error.errno or 0)
        raise Fault(reason or "PERMISSION_DENIED") from None


def _ids(owner: str, group: str) -> tuple[int, int]:
    try:
        uid = -1 if not owner else int(owner) if owner.isdigit() else pwd.getpwnam(owner).pw_uid
        gid = -1 if not group else int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
    except KeyError:
        raise Fault("UNKNOWN_USER") from None
    return uid, gid


def _info(path: str) -> v1.FileInfo:
    seen = os.lstat(path)
    kind = v1.FILE_TYPE_OTHER
    for test, word in (
        (stat.S_ISREG, v1.FILE_TYPE_FILE),
        (stat.S_ISDIR, v1.FILE_TYPE_DIRECTORY),
        (stat.S_ISLNK, v1.FILE_TYPE_SYMLINK),
    ):
        if test(seen.st_mode):
            kind = word
    info = v1.FileInfo(
        path=path,
        type=kind,
        size_bytes=seen.st_size,
        mode=stat.S_IMODE(seen.st_mode),
        owner=_name(pwd.getpwuid, seen.st_uid),
        group=_name(grp.getgrgid, seen.st_gid),
    )
    info.modified_at.FromNanoseconds(seen.st_mtime_ns)
    return info


def _name(look_up: Any, number: int) -> str:
    try:
        return str(look_up(number)[0])
    except KeyError:
        return str(number)


def _walk(path: str, depth: int) -> Iterator[v1.FileInfo]:
    for entry in sorted(os.scandir(path), key=lambda e: e.name):
        yield _info(entry.path)
        if depth != 1 and entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, depth - 1 if depth > 0 else depth)
