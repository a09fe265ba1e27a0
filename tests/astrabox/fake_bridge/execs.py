# SPDX-License-Identifier: Apache-2.0
"""ExecService of the fake bridge: commands of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from astrabox_sandbox_bridge._generated import exec_pb2_grpc
from astrabox_sandbox_bridge.client import v1

from .upstream import outcome_of

if TYPE_CHECKING:
    from .server import FakeBridge

_E = v1.ExecEvent
# Output that comes after the command's own end, from children that hold its pipes.
_DRAIN_SECONDS = 0.1


class FakeExecs(exec_pb2_grpc.ExecServiceServicer):
    def __init__(self, bridge: FakeBridge) -> None:
        self._upstream = bridge.upstream

    async def Execute(  # noqa: N802
        self, request: v1.ExecuteRequest, context: Any
    ) -> AsyncIterator[v1.ExecEvent]:
        self._upstream.find(request.sandbox_id, request.expected_incarnation, running=True)
        async for event in run_locally(request.spec):
            yield event

    async def Run(self, request: v1.RunRequest, context: Any) -> v1.RunResponse:  # noqa: N802
        self._upstream.find(request.sandbox_id, request.expected_incarnation, running=True)
        answer = v1.RunResponse()
        async for event in run_locally(request.spec):
            for output in event.output_batch.outputs:
                if output.stream == v1.OUTPUT_STREAM_STDOUT:
                    answer.stdout += output.data
                else:
                    answer.stderr += output.data
            if event.HasField("exited"):
                answer.outcome.CopyFrom(event.exited.outcome)
        return answer


async def run_locally(spec: v1.ExecSpec) -> AsyncIterator[v1.ExecEvent]:
    """Runs a command of this machine; leaving the iteration kills its process group."""
    command = list(spec.argv.args) or ["bash", "-c", spec.shell]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=spec.cwd or "/",
        env={"PATH": "/usr/bin:/bin", **{e.name: e.value for e in spec.env}},
        start_new_session=True,
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdin.write(spec.stdin)
    process.stdin.close()
    queue: asyncio.Queue[_E.Output | None] = asyncio.Queue(maxsize=64)
    copies = [
        asyncio.create_task(_copy(process.stdout, v1.OUTPUT_STREAM_STDOUT, queue)),
        asyncio.create_task(_copy(process.stderr, v1.OUTPUT_STREAM_STDERR, queue)),
        asyncio.create_task(_finish(process, queue)),
    ]
    end = spec.timeout.ToTimedelta().total_seconds() if spec.HasField("timeout") else None
    totals = {v1.OUTPUT_STREAM_STDOUT: 0, v1.OUTPUT_STREAM_STDERR: 0}
    try:
        yield _E(started=_E.Started(exec_id="e", fidelity=v1.FIDELITY_BYTES, pid=process.pid))
        timed_out = False
        try:
            async with asyncio.timeout(end):
                while (output := await queue.get()) is not None:
                    totals[output.stream] += len(output.data)
                    yield _E(output_batch=_E.OutputBatch(outputs=[output]))
        except TimeoutError:
            timed_out = True
        outcome = outcome_of(process.returncode or 0)
        if timed_out:
            outcome = v1.Outcome(timed_out=v1.Outcome.TimedOut(after=spec.timeout))
        yield _E(exited=_E.Exited(outcome=outcome))
        yield _E(
            drained=_E.Drained(
                stdout_bytes=totals[v1.OUTPUT_STREAM_STDOUT],
                stderr_bytes=totals[v1.OUTPUT_STREAM_STDERR],
            )
        )
    finally:
        for copy in copies:
            copy.cancel()
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


async def _copy(
    source: asyncio.StreamReader, stream: v1.OutputStream.ValueType, queue: asyncio.Queue[Any]
) -> None:
    while data := await source.read(65536):
        await queue.put(_E.Output(stream=stream, data=data))


async def _finish(process: asyncio.subprocess.Process, queue: asyncio.Queue[Any]) -> None:
    # Not wait(), which also waits for whoever else holds the pipes.
    while process.returncode is None:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    await asyncio.sleep(_DRAIN_SECONDS)
    await queue.put(None)
