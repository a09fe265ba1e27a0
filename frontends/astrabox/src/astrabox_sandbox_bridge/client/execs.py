# SPDX-License-Identifier: Apache-2.0
"""ExecService: commands run to their end."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from .._generated import exec_pb2_grpc
from . import v1
from .connection import Connection
from .errors import BridgeError
from .times import duration

if TYPE_CHECKING:
    from .._generated.exec_pb2_grpc import ExecServiceAsyncStub

# Seconds that a call may take beyond the command's own timeout, which the bridge enforces.
_MARGIN = 30.0

_ON_DISCONNECT = {
    False: v1.ExecSpec.ON_DISCONNECT_KILL,
    True: v1.ExecSpec.ON_DISCONNECT_DETACH,
}


def command(
    shell: str | None = None,
    *,
    argv: Sequence[str] | None = None,
    cwd: str = "",
    env: Mapping[str, str] | None = None,
    user: str | int | tuple[int, int] | None = None,
    timeout: float | None = None,
    stdin: bytes = b"",
    fidelity: v1.Fidelity.ValueType = v1.FIDELITY_UNSPECIFIED,
    max_output_bytes: int | None = None,
    detach: bool = False,
) -> v1.ExecSpec:
    """What to run: a shell line, or `argv`, which no shell reads.

    `user` is an account name, a uid, or (uid, gid); `timeout` is in seconds, None for none;
    `max_output_bytes` is a bound for each of the two streams. With `detach` the command outlives
    the call that started it.
    """
    spec = v1.ExecSpec(
        cwd=cwd,
        env=[v1.EnvVar(name=name, value=value) for name, value in (env or {}).items()],
        user=user_of(user),
        stdin=stdin,
        fidelity=fidelity,
        on_disconnect=_ON_DISCONNECT[detach],
        max_output_bytes=max_output_bytes,
    )
    if (shell is None) == (argv is None):
        raise ValueError("a command is either a shell line or argv")
    if shell is not None:
        spec.shell = shell
    else:
        spec.argv.args.extend(argv or ())
    if timeout is not None:
        spec.timeout.CopyFrom(duration(timeout, "timeout"))
    return spec


def user_of(user: str | int | tuple[int, int] | None) -> v1.User | None:
    """Whose rights: an account name, a uid, (uid, gid), or None for the daemon's own."""
    if user is None:
        return None
    if isinstance(user, str):
        return v1.User(name=user)
    uid, gid = (user, None) if isinstance(user, int) else user
    return v1.User(ids=v1.User.Ids(uid=uid, gid=gid))


@dataclass(frozen=True)
class Collected:
    """All that a command printed, and how it ended."""

    outcome: v1.Outcome
    stdout: bytes
    stderr: bytes
    # Bytes may differ from what was printed, or be missing; see ExecEvent.Drained.
    lossy: bool
    # A process that the command left behind could still print, which nobody gets. None: not known.
    still_open: bool | None


async def collect(events: AsyncIterator[v1.ExecEvent], *, limit: int) -> Collected:
    """Gathers a stream of exec events. Raises OUTPUT_TRUNCATED rather than cut at `limit` bytes,
    which counts both streams; the call is cancelled then, and the command with it."""
    parts: dict[int, list[bytes]] = {v1.OUTPUT_STREAM_STDOUT: [], v1.OUTPUT_STREAM_STDERR: []}
    total, outcome, drained = 0, None, None
    # Leaving early must cancel the call now, not when the garbage is collected.
    async with contextlib.aclosing(cast("AsyncGeneratorOfEvents", events)):
        async for event in events:
            match event.WhichOneof("event"):
                case "output_batch":
                    for output in event.output_batch.outputs:
                        parts[output.stream].append(output.data)
                        total += len(output.data)
                    if total > limit:
                        raise BridgeError(
                            "OUTPUT_TRUNCATED", f"the command printed more than {limit} bytes"
                        )
                case "exited":
                    outcome = event.exited.outcome
                case "drained":
                    drained = event.drained
    if outcome is None or drained is None:
        raise BridgeError("INTERNAL", "the stream of a command ended without its outcome")
    return Collected(
        outcome,
        b"".join(parts[v1.OUTPUT_STREAM_STDOUT]),
        b"".join(parts[v1.OUTPUT_STREAM_STDERR]),
        drained.lossy,
        drained.still_open if drained.HasField("still_open") else None,
    )


if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    AsyncGeneratorOfEvents = AsyncGenerator[v1.ExecEvent, None]


class Execs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        stub = exec_pb2_grpc.ExecServiceStub(connection.channel)
        self._stub = cast("ExecServiceAsyncStub", stub)

    def execute(
        self, sandbox_id: str, spec: v1.ExecSpec, *, incarnation: str = "", detached: bool = False
    ) -> AsyncIterator[v1.ExecEvent]:
        """Runs a command; yields its events. Leaving the iteration kills it (unless detached)."""
        request = v1.ExecuteRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            spec=spec,
            detached=detached,
        )
        return self._connection.stream(
            self._stub.Execute, request, silence=self._connection.options.silence_timeout
        )

    async def run(
        self, sandbox_id: str, spec: v1.ExecSpec, *, incarnation: str = ""
    ) -> v1.RunResponse:
        """The same in one answer: output beyond 1 MiB a stream is dropped and declared. Never
        repeated, since a command may not be safe to run twice."""
        request = v1.RunRequest(sandbox_id=sandbox_id, expected_incarnation=incarnation, spec=spec)
        # Without a timeout the command may run for ever: a year stands for it.
        bound = (
            spec.timeout.ToTimedelta().total_seconds() if spec.HasField("timeout") else 366 * 86400
        )
        return await self._connection.unary(self._stub.Run, request, timeout=bound + _MARGIN)

    def attach(
        self,
        sandbox_id: str,
        exec_id: str,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
        incarnation: str = "",
    ) -> AsyncIterator[v1.ExecEvent]:
        """The events of a running or finished exec, from given bytes on."""
        request = v1.AttachExecRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            exec_id=exec_id,
            stdout_offset=stdout_offset,
            stderr_offset=stderr_offset,
        )
        return self._connection.stream(
            self._stub.AttachExec, request, silence=self._connection.options.silence_timeout
        )

    async def signal(
        self, sandbox_id: str, exec_id: str, signal: int | str, *, incarnation: str = ""
    ) -> v1.SignalExecResponse:
        request = v1.SignalExecRequest(
            sandbox_id=sandbox_id,
            expected_incarnation=incarnation,
            exec_id=exec_id,
            signal=signal_of(signal),
        )
        return await self._connection.unary(self._stub.SignalExec, request)

    async def get(self, sandbox_id: str, exec_id: str, *, incarnation: str = "") -> v1.ExecInfo:
        request = v1.GetExecRequest(
            sandbox_id=sandbox_id, expected_incarnation=incarnation, exec_id=exec_id
        )
        return await self._connection.unary(self._stub.GetExec, request, repeatable=True)


def signal_of(signal: int | str) -> v1.Signal:
    """A signal by number or by name ("TERM", "SIGTERM")."""
    return v1.Signal(name=signal) if isinstance(signal, str) else v1.Signal(number=signal)
