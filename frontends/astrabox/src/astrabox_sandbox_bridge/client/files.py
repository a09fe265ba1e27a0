# SPDX-License-Identifier: Apache-2.0
"""FileService: the sandbox's file system."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable
from typing import TYPE_CHECKING, BinaryIO, cast

import grpc
import grpc.aio

from .._generated import files_pb2_grpc
from . import v1
from .connection import Connection, cut_here
from .errors import BRIDGE_UNREACHABLE, BridgeError, PeerStatus

if TYPE_CHECKING:
    from .._generated.files_pb2_grpc import FileServiceAsyncStub

# Seconds without any progress of a transfer before it is given up.
_STALL = 120.0
_CHUNK_BYTES = 256 * 1024
# Content up to this size travels in one message; the rest of the message fits beside it in 1 MiB.
_SMALL_BYTES = 768 * 1024

Content = bytes | bytearray | memoryview | str | BinaryIO | AsyncIterable[bytes] | Iterable[bytes]


class Files:
    """Paths are absolute and literal; links are described, not followed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        stub = files_pb2_grpc.FileServiceStub(connection.channel)
        self._stub = cast("FileServiceAsyncStub", stub)

    async def stat(
        self, sandbox_id: str, path: str, *, follow_symlink: bool = False, incarnation: str = ""
    ) -> v1.FileInfo:
        request = v1.StatRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            path=path,
            follow_symlink=follow_symlink,
        )
        return await self._connection.unary(self._stub.Stat, request, repeatable=True)

    async def list(
        self, sandbox_id: str, path: str, *, depth: int = 1, incarnation: str = ""
    ) -> AsyncIterator[v1.FileInfo]:
        """Parents before children. `depth` -1 is everything."""
        request = v1.ListDirectoryRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, path=path, depth=depth
        )
        batches = self._connection.stream(self._stub.ListDirectory, request, silence=_STALL)
        async for batch in batches:
            for entry in batch.entries:
                yield entry

    async def search(
        self,
        sandbox_id: str,
        path: str,
        pattern: str,
        *,
        types: Iterable[v1.FileType.ValueType] = (),
        max_results: int = 0,
        incarnation: str = "",
    ) -> AsyncIterator[v1.FileInfo]:
        request = v1.SearchRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            path=path,
            pattern=pattern,
            types=types,
            max_results=max_results,
        )
        batches = self._connection.stream(self._stub.Search, request, silence=_STALL)
        async for batch in batches:
            for entry in batch.entries:
                yield entry

    async def read(
        self,
        sandbox_id: str,
        path: str,
        *,
        offset: int = 0,
        length: int | None = None,
        incarnation: str = "",
    ) -> AsyncIterator[bytes]:
        """A file's bytes, in pieces, in constant memory."""
        request = v1.ReadFileRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            path=path,
            offset=offset,
            length=length,
        )
        async for chunk in self._connection.stream(self._stub.ReadFile, request, silence=_STALL):
            if chunk.WhichOneof("part") == "data":
                yield chunk.data

    async def read_bytes(
        self,
        sandbox_id: str,
        path: str,
        *,
        offset: int = 0,
        length: int | None = None,
        incarnation: str = "",
    ) -> bytes:
        """A whole file, in memory."""
        pieces = self.read(sandbox_id, path, offset=offset, length=length, incarnation=incarnation)
        return b"".join([piece async for piece in pieces])

    async def write(
        self,
        sandbox_id: str,
        options: v1.WriteOptions,
        content: Content,
        *,
        incarnation: str = "",
    ) -> v1.WriteFileResponse:
        """Writes a file, by default in one step for its readers. A binary file object is read
        in a thread; an iterable is taken piece by piece, at most one ahead of the network."""
        whole = _in_memory(content)
        if whole is not None and len(whole) <= _SMALL_BYTES:
            request = v1.WriteSmallFileRequest(
                sandbox_id=sandbox_id,
                expected_incarnation=incarnation,
                options=options,
                data=bytes(whole),
            )
            return await self._connection.unary(
                self._stub.WriteSmallFile,
                request,
                repeatable=not options.HasField("precondition"),
            )
        header = v1.WriteFileChunk.Header(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            options=options,
            size_bytes=None if whole is None else len(whole),
        )
        if whole is None:  # taken as it is sent: it cannot be sent again
            return await self._upload(header, content)
        return await self._connection.repeated(lambda: self._upload(header, _slices(whole)))

    async def _upload(
        self, header: v1.WriteFileChunk.Header, content: Content
    ) -> v1.WriteFileResponse:
        await self._connection.ready()
        call = self._stub.WriteFile(metadata=self._connection.metadata())
        status = PeerStatus(call)
        try:
            await _within_stall(call.write(v1.WriteFileChunk(header=header)))
            async for piece in _pieces(content):
                view = memoryview(piece)
                for start in range(0, len(view), _CHUNK_BYTES):
                    data = bytes(view[start : start + _CHUNK_BYTES])
                    await _within_stall(call.write(v1.WriteFileChunk(data=data)))
            await call.done_writing()
            return await call
        except (asyncio.InvalidStateError, grpc.aio.UsageError):
            # The bridge ended the call before all was written; its status says why.
            return await self._answer(call, status)
        except grpc.aio.AioRpcError as error:
            raise await status.failure(error) from error
        except asyncio.CancelledError as error:
            raise cut_here(error) from error
        finally:
            call.cancel()

    @staticmethod
    async def _answer(
        call: grpc.aio.StreamUnaryCall[v1.WriteFileChunk, v1.WriteFileResponse],
        status: PeerStatus,
    ) -> v1.WriteFileResponse:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise await status.failure(error) from error

    async def make_directory(
        self,
        sandbox_id: str,
        path: str,
        *,
        mode: int | None = None,
        owner: str = "",
        group: str = "",
        parents: bool = False,
        incarnation: str = "",
    ) -> bool:
        """False when the directory existed."""
        request = v1.MakeDirectoryRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            path=path,
            mode=mode,
            owner=owner,
            group=group,
            parents=parents,
        )
        answer = await self._connection.unary(self._stub.MakeDirectory, request, repeatable=True)
        return answer.created

    async def remove(
        self,
        sandbox_id: str,
        path: str,
        *,
        recursive: bool = False,
        missing_ok: bool = False,
        incarnation: str = "",
    ) -> bool:
        """False when nothing was there (with `missing_ok`)."""
        request = v1.RemoveRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            path=path,
            recursive=recursive,
            missing_ok=missing_ok,
        )
        answer = await self._connection.unary(self._stub.Remove, request, repeatable=missing_ok)
        return answer.removed

    async def move(
        self,
        sandbox_id: str,
        source: str,
        destination: str,
        *,
        overwrite: bool = False,
        create_parents: bool = False,
        incarnation: str = "",
    ) -> bool:
        """True when a file at the destination was replaced."""
        request = v1.MoveRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            source=source,
            destination=destination,
            overwrite=overwrite,
            create_parents=create_parents,
        )
        return (await self._connection.unary(self._stub.Move, request)).replaced

    async def set_attributes(
        self,
        sandbox_id: str,
        path: str,
        *,
        mode: int | None = None,
        owner: str = "",
        group: str = "",
        follow_symlink: bool = False,
        incarnation: str = "",
    ) -> v1.FileInfo:
        """A symbolic link is refused unless it is to be followed."""
        request = v1.SetAttributesRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            path=path,
            mode=mode,
            owner=owner,
            group=group,
            follow_symlink=follow_symlink,
        )
        return await self._connection.unary(self._stub.SetAttributes, request, repeatable=True)

    async def replace_text(
        self,
        sandbox_id: str,
        path: str,
        old: bytes,
        new: bytes,
        *,
        expected_count: int | None = None,
        incarnation: str = "",
    ) -> int:
        """How often it was replaced."""
        request = v1.ReplaceTextRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            path=path,
            old_text=old,
            new_text=new,
            expected_count=expected_count,
        )
        return (await self._connection.unary(self._stub.ReplaceText, request)).count

    async def watch(
        self, sandbox_id: str, path: str, *, recursive: bool = False, incarnation: str = ""
    ) -> AsyncIterator[v1.WatchEvent]:
        """Changes below a directory, the first event when the watch is in place."""
        request = v1.WatchDirectoryRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            path=path,
            recursive=recursive,
        )
        batches = self._connection.stream(
            self._stub.WatchDirectory, request, silence=self._connection.options.silence_timeout
        )
        async for batch in batches:
            for event in batch.events:
                yield event


async def _within_stall(taken: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(_STALL):
            await taken
    except TimeoutError:
        raise BridgeError(
            BRIDGE_UNREACHABLE,
            f"the bridge took nothing of the file for {_STALL:g} s",
            code=grpc.StatusCode.UNAVAILABLE,
        ) from None


def _in_memory(content: Content) -> bytes | bytearray | memoryview | None:
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, bytes | bytearray | memoryview):
        return memoryview(content).cast("B") if isinstance(content, memoryview) else content
    return None


def _slices(whole: bytes | bytearray | memoryview) -> Iterable[bytes]:
    view = memoryview(whole)
    return (bytes(view[i : i + _CHUNK_BYTES]) for i in range(0, len(view), _CHUNK_BYTES))


async def _pieces(content: Content) -> AsyncIterator[bytes]:
    if isinstance(content, AsyncIterable):
        async for piece in content:
            yield piece
        return
    read = getattr(content, "read", None)
    if read is not None:
        while piece := await asyncio.to_thread(read, _CHUNK_BYTES):
            yield piece
        return
    for piece in cast("Iterable[bytes]", content):
        yield piece
