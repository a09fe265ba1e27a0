# SPDX-License-Identifier: Apache-2.0
"""ProcessService of the fake bridge: processes of this machine, on pipes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from astrabox_sandbox_bridge._generated import processes_pb2_grpc
from astrabox_sandbox_bridge.client import v1

from .errors import Fault
from .upstream import Resident

if TYPE_CHECKING:
    from .server import FakeBridge

_E = v1.ProcessEvent


class FakeProcesses(processes_pb2_grpc.ProcessServiceServicer):
    def __init__(self, bridge: FakeBridge) -> None:
        self._upstream = bridge.upstream

    def _resident(self, request: Any) -> Resident:
        self._upstream.find(request.sandbox_id, request.expected_incarnation, running=True)
        resident = self._upstream.residents.get(request.process_id)
        if resident is None:
            raise Fault("PROCESS_NOT_FOUND")
        return resident

    async def StartProcess(  # noqa: N802
        self, request: v1.StartProcessRequest, context: Any
    ) -> v1.StartProcessResponse:
        self._upstream.find(request.sandbox_id, request.expected_incarnation, running=True)
        resident = Resident(request.spec)
        if not request.start_on_attach:
            await resident.start()
        name = f"p-{len(self._upstream.residents)}"
        self._upstream.residents[name] = resident
        self._upstream.started.append(resident)
        return v1.StartProcessResponse(process_id=name)

    async def GetProcess(self, request: Any, context: Any) -> v1.ProcessInfo:  # noqa: N802
        resident = self._resident(request)
        state = v1.ProcessInfo.STATE_RUNNING
        if resident.process is None:
            state = v1.ProcessInfo.STATE_PENDING
        elif resident.outcome is not None:
            state = v1.ProcessInfo.STATE_EXITED
        return v1.ProcessInfo(
            process_id=request.process_id,
            state=state,
            outcome=resident.outcome,
            output_offset=resident.end,
            first_available=resident.first,
            attached=resident.holder is not None,
        )

    async def DeleteProcess(self, request: Any, context: Any) -> v1.DeleteProcessResponse:  # noqa: N802
        resident = self._upstream.residents.pop(request.process_id, None)
        if resident is not None and resident.process is not None:
            _signal(resident, signal.SIGKILL)
        return v1.DeleteProcessResponse(existed=resident is not None)

    async def AttachProcess(self, requests: Any, context: Any) -> AsyncIterator[v1.ProcessEvent]:  # noqa: N802
        first = await anext(aiter(requests))
        attach = first.attach
        resident = self._resident(attach)
        if resident.holder is not None and not attach.takeover:
            raise Fault("ALREADY_ATTACHED")
        offset = attach.offset if attach.HasField("offset") else resident.end
        if offset < resident.first:
            raise Fault("REPLAY_GAP", first_available=str(resident.first))
        restarted = resident.outcome is not None and attach.restart_if_exited
        if restarted or resident.process is None:
            await resident.start()
        me = object()
        async with resident.changed:
            resident.holder = me
            resident.wanted = offset
            resident.changed.notify_all()
        acks: asyncio.Queue[int] = asyncio.Queue()
        reader = asyncio.create_task(_feed(resident, requests, acks))
        try:
            yield _E(
                attached=_E.Attached(
                    offset=offset, running=resident.outcome is None, restarted=restarted
                )
            )
            async for event in self._events(resident, me, offset, acks):
                yield event
            await self._upstream.attachments_may_end.wait()
        finally:
            reader.cancel()
            if resident.holder is me:
                resident.holder = resident.wanted = None
                resident.trim()

    @staticmethod
    async def _events(
        resident: Resident, me: object, at: int, acks: asyncio.Queue[int]
    ) -> AsyncIterator[v1.ProcessEvent]:
        while True:
            async with resident.changed:
                while (
                    at >= resident.end
                    and resident.outcome is None
                    and resident.holder is me
                    and acks.empty()
                ):
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(resident.changed.wait(), 0.02)
                pieces = [(s, k, d) for s, k, d in resident.buffer if s + len(d) > at]
                outcome, mine = resident.outcome, resident.holder is me
            while not acks.empty():
                yield _E(stdin_ack=_E.StdinAck(offset=acks.get_nowait()))
            if not mine:
                yield _E(displaced=_E.Displaced())
                return
            for start, stream, data in pieces:
                rest = data[max(at - start, 0) :]
                yield _E(output=_E.Output(offset=at, stream=stream, data=rest))  # type: ignore[arg-type]
                at += len(rest)
                if resident.holder is me:
                    resident.wanted = at
                    resident.trim()
            if outcome is not None and at >= resident.end:
                yield _E(exited=_E.Exited(outcome=outcome))
                yield _E(drained=_E.Drained(end_offset=at))
                return


async def _feed(resident: Resident, requests: Any, acks: asyncio.Queue[int]) -> None:
    process = resident.process
    assert process is not None
    assert process.stdin is not None
    async for request in requests:
        match request.WhichOneof("message"):
            case "stdin":
                process.stdin.write(request.stdin.data)
                await process.stdin.drain()
                acks.put_nowait(request.stdin.offset + len(request.stdin.data))
            case "stdin_eof":
                process.stdin.close()
            case "signal":
                name = request.signal.name.removeprefix("SIG")
                _signal(resident, signal.Signals[f"SIG{name}"])


def _signal(resident: Resident, number: signal.Signals) -> None:
    if resident.process is not None and resident.process.returncode is None:
        resident.sent.add(number)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(resident.process.pid, number)
