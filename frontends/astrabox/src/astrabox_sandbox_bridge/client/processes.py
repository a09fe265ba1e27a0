# SPDX-License-Identifier: Apache-2.0
"""ProcessService: long-lived processes and terminals."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

import grpc.aio

from .._generated import processes_pb2_grpc
from . import v1
from .connection import END, Connection, cut_here, silent
from .errors import BRIDGE_UNREACHABLE, BridgeError, PeerStatus
from .execs import signal_of, user_of

if TYPE_CHECKING:
    from .._generated.processes_pb2_grpc import ProcessServiceAsyncStub

_STDIN_CHUNK_BYTES = 256 * 1024
# Input sent and not yet taken by the process; a writer waits beyond it.
_STDIN_WINDOW_BYTES = 1024 * 1024
# Output received and not yet asked for; the network waits beyond it, and with it the process.
_OUTPUT_BACKLOG_BYTES = 4 * 1024 * 1024

# What an event says of everything that is sent afterwards.
_ENDS = {
    "displaced": ("ALREADY_ATTACHED", "another client took the process over"),
    "exited": ("PROCESS_NOT_FOUND", "the process has ended"),
}


class Processes:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        stub = processes_pb2_grpc.ProcessServiceStub(connection.channel)
        self._stub = cast("ProcessServiceAsyncStub", stub)

    async def start(
        self,
        sandbox_id: str,
        shell: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        terminal: tuple[int, int] | None = None,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        user: str | int | tuple[int, int] | None = None,
        on_attach: bool = False,
        incarnation: str = "",
    ) -> v1.StartProcessResponse:
        """Starts a process; without a command, the sandbox's shell. `terminal` is (rows, columns);
        without it the process gets pipes. With `on_attach` it begins with the first attachment."""
        spec = v1.ProcessSpec(
            cwd=cwd,
            env=[v1.EnvVar(name=name, value=value) for name, value in (env or {}).items()],
            user=user_of(user),
        )
        if shell is not None and argv is not None:
            raise ValueError("a process is either a shell line or argv")
        if shell is not None:
            spec.shell = shell
        elif argv is not None:
            spec.argv.args.extend(argv)
        if terminal is not None:
            spec.terminal.CopyFrom(v1.TerminalSize(rows=terminal[0], columns=terminal[1]))
        request = v1.StartProcessRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            spec=spec,
            start_on_attach=on_attach,
        )
        return await self._connection.unary(self._stub.StartProcess, request)

    async def attach(
        self,
        sandbox_id: str,
        process_id: str,
        *,
        offset: int | None = None,
        takeover: bool = False,
        restart_if_exited: bool = False,
        incarnation: str = "",
    ) -> Attachment:
        """Holds a process. `offset` is the first output byte wanted, None what comes from now on.
        Raises ALREADY_ATTACHED, REPLAY_GAP, PROCESS_NOT_FOUND."""
        first = v1.AttachProcessRequest(
            attach=v1.AttachProcessRequest.Attach(
                sandbox_id=sandbox_id,
                expected_incarnation=incarnation,
                process_id=process_id,
                offset=offset,
                takeover=takeover,
                restart_if_exited=restart_if_exited,
            )
        )

        async def attempt() -> Attachment:
            await self._connection.ready()
            call = self._stub.AttachProcess(metadata=self._connection.metadata())
            attachment = Attachment(call, self._connection.options.silence_timeout)
            try:
                await attachment._begin(first)
            except BaseException:
                await attachment.close()
                raise
            return attachment

        return await self._connection.repeated(attempt)

    async def list(
        self, sandbox_id: str, *, everything: bool = False, incarnation: str = ""
    ) -> Sequence[v1.ProcessInfo]:
        """The processes that the bridge started, or every process of the sandbox."""
        request = v1.ListProcessesRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, all=everything
        )
        answer = await self._connection.unary(self._stub.ListProcesses, request, repeatable=True)
        return answer.processes

    async def signal(
        self,
        sandbox_id: str,
        target: str | int,
        signal: int | str,
        *,
        group: bool = False,
        incarnation: str = "",
    ) -> v1.SignalProcessResponse:
        """`target` is a process_id, or a pid of the sandbox."""
        request = v1.SignalProcessRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            signal=signal_of(signal),
            group=group,
        )
        if isinstance(target, str):
            request.process_id = target
        else:
            request.pid = target
        return await self._connection.unary(self._stub.SignalProcess, request)

    async def get(
        self, sandbox_id: str, process_id: str, *, incarnation: str = ""
    ) -> v1.ProcessInfo:
        request = v1.GetProcessRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, process_id=process_id
        )
        return await self._connection.unary(self._stub.GetProcess, request, repeatable=True)

    async def delete(self, sandbox_id: str, process_id: str, *, incarnation: str = "") -> bool:
        """Kills and forgets a process. False when there was none of this id."""
        request = v1.DeleteProcessRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, process_id=process_id
        )
        answer = await self._connection.unary(self._stub.DeleteProcess, request, repeatable=True)
        return answer.existed


class Attachment:
    """A held process. Iterate over it for `output`, `exited`, `displaced` and `drained` events;
    leave it (`async with`, close()) to detach, which leaves the process running.

    Belongs to one event loop. Methods that send may be called from several tasks; what they send
    keeps the order of the calls.
    """

    def __init__(
        self,
        call: grpc.aio.StreamStreamCall[v1.AttachProcessRequest, v1.ProcessEvent],
        silence: float,
    ) -> None:
        self._call = call
        self._status = PeerStatus(call)
        self._silence = silence
        self.attached = v1.ProcessEvent.Attached()
        self._events: deque[v1.ProcessEvent] = deque()
        self._backlog = 0
        self._failure: BridgeError | None = None
        # Why this holds nothing any more, where that is known: a reason and words.
        self._end: tuple[str, str] | None = None
        self._ended = False
        self._sent = 0
        self._taken = 0
        self._changed = asyncio.Condition()
        self._sending = asyncio.Lock()
        self._reader: asyncio.Task[None] | None = None

    async def _begin(self, first: v1.AttachProcessRequest) -> None:
        try:
            await self._call.write(first)
        except asyncio.InvalidStateError:
            pass  # refused at once: the read tells why
        except grpc.aio.AioRpcError as error:
            raise await self._status.failure(error) from error
        event = await self._read()
        if event is None or event.WhichOneof("event") != "attached":
            raise BridgeError("INTERNAL", "the bridge did not begin with `attached`")
        self.attached = event.attached
        self._reader = asyncio.create_task(self._receive())

    async def _read(self) -> v1.ProcessEvent | None:
        try:
            async with asyncio.timeout(self._silence):
                event = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise await self._status.failure(error) from error
        except TimeoutError:
            raise silent(self._silence) from None
        except asyncio.CancelledError as error:
            raise cut_here(error) from error
        return None if event is END else cast("v1.ProcessEvent", event)

    async def _receive(self) -> None:
        """Takes events from the network: acknowledgements at once, the rest into the backlog."""
        failure: BridgeError | None = None
        try:
            while (event := await self._read()) is not None:
                async with self._changed:
                    kind = event.WhichOneof("event")
                    if kind == "stdin_ack":
                        self._taken = max(self._taken, event.stdin_ack.offset)
                    elif kind != "keepalive":
                        self._end = _ENDS.get(kind or "", self._end)
                        self._events.append(event)
                        self._backlog += len(event.output.data)
                    self._changed.notify_all()
                    while self._backlog > _OUTPUT_BACKLOG_BYTES:
                        await self._changed.wait()
        except BridgeError as error:
            failure = error
        finally:
            self._ended = True
            self._failure = failure
            async with self._changed:
                self._changed.notify_all()

    def __aiter__(self) -> AsyncIterator[v1.ProcessEvent]:
        return self

    async def __anext__(self) -> v1.ProcessEvent:
        async with self._changed:
            while not self._events and not self._ended:
                await self._changed.wait()
            if self._events:
                event = self._events.popleft()
                self._backlog -= len(event.output.data)
                self._changed.notify_all()
                return event
        if self._failure is not None:
            raise self._failure
        raise StopAsyncIteration

    async def write(self, data: bytes) -> None:
        """Sends input. Returns when it is on its way, at most 1 MiB ahead of the process.
        Raises BridgeError when the attachment has ended: ALREADY_ATTACHED when another client
        took the process over, PROCESS_NOT_FOUND when it ended, CANCELLED after close()."""
        async with self._sending:
            view = memoryview(data)
            for start in range(0, len(view), _STDIN_CHUNK_BYTES):
                piece = bytes(view[start : start + _STDIN_CHUNK_BYTES])
                async with self._changed:
                    while (
                        self._sent - self._taken + len(piece) > _STDIN_WINDOW_BYTES
                        and not self._over
                    ):
                        await self._changed.wait()
                stdin = v1.AttachProcessRequest.Stdin(offset=self._sent, data=piece)
                await self._send(v1.AttachProcessRequest(stdin=stdin))
                self._sent += len(piece)

    async def taken(self) -> int:
        """Waits until all input sent so far was taken by the process; answers its bytes."""
        async with self._changed:
            while self._taken < self._sent and not self._over:
                await self._changed.wait()
        return self._taken

    async def write_eof(self) -> None:
        """Ends the input; on a terminal this is Ctrl-D."""
        eof = v1.AttachProcessRequest.StdinEof()
        async with self._sending:
            await self._send(v1.AttachProcessRequest(stdin_eof=eof))

    async def resize(self, rows: int, columns: int) -> None:
        size = v1.TerminalSize(rows=rows, columns=columns)
        async with self._sending:
            await self._send(v1.AttachProcessRequest(resize=size))

    async def signal(self, signal: int | str) -> None:
        async with self._sending:
            await self._send(v1.AttachProcessRequest(signal=signal_of(signal)))

    async def _send(self, request: v1.AttachProcessRequest) -> None:
        if self._over:
            raise self._why()
        try:
            await self._call.write(request)
        except (asyncio.InvalidStateError, grpc.aio.UsageError) as error:
            raise self._why() from error
        except grpc.aio.AioRpcError as error:
            if self._end is not None:
                raise self._why() from error
            raise await self._status.failure(error) from error

    @property
    def _over(self) -> bool:
        """Nobody takes what is sent, though the stream may have yet to end."""
        return self._ended or self._end is not None

    def _why(self) -> BridgeError:
        """Why nothing can be sent any more."""
        if self._end is not None:
            return BridgeError(*self._end)
        return self._failure or BridgeError(BRIDGE_UNREACHABLE, "the attachment has ended")

    async def close(self) -> None:
        """Detaches; the process runs on. May be called twice."""
        if self._end is None:
            self._end = ("CANCELLED", "the attachment was closed here; attach again")
        self._call.cancel()
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([self._reader])
        self._ended = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
