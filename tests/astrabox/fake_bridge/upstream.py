# SPDX-License-Identifier: Apache-2.0
"""What survives a fake bridge: sandboxes and their processes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from astrabox_sandbox_bridge.client import v1

from .errors import Fault

if TYPE_CHECKING:
    from collections.abc import Collection

_KEPT_BYTES = 1 << 20


@dataclass
class Kept:
    """A sandbox, and how it behaves."""

    sandbox: v1.Sandbox
    spec: v1.SandboxSpec
    policy: v1.NetworkPolicy | None
    daemon_answers: bool = True
    # DELETE is accepted and it is still there.
    immortal: bool = False
    sessions: dict[str, v1.IsolatedSession] = field(default_factory=dict)


class Resident:
    """A long-lived process: its newest output, its holder."""

    def __init__(self, spec: v1.ProcessSpec) -> None:
        self.spec = spec
        self.process: asyncio.subprocess.Process | None = None
        self.buffer: deque[tuple[int, int, bytes]] = deque()
        self.first = 0
        self.end = 0
        self.outcome: v1.Outcome | None = None
        # Signals that callers sent to the present run.
        self.sent: set[int] = set()
        self.changed = asyncio.Condition()
        # Whoever holds it; replaced on take-over.
        self.holder: object | None = None
        # What the holder has not been sent yet starts here; it is kept however long it gets.
        self.wanted: int | None = None
        self._work: asyncio.Task[None] | None = None

    async def start(self) -> None:
        spec = self.spec
        command = list(spec.argv.args) or ["bash", "-c", spec.shell]
        await self.close()
        self.outcome = None
        self.sent.clear()
        self.process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=spec.cwd or "/",
            env={"PATH": "/usr/bin:/bin", **{e.name: e.value for e in spec.env}},
            start_new_session=True,
        )
        self._work = asyncio.create_task(self._pump(self.process))

    async def close(self) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        # Not wait(), which also waits for whoever else holds the pipes.
        while self.process.returncode is None:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        self.process._transport.close()  # type: ignore[attr-defined]

    async def _pump(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout
        assert process.stderr
        await asyncio.gather(
            self._copy(process.stdout, v1.OUTPUT_STREAM_STDOUT),
            self._copy(process.stderr, v1.OUTPUT_STREAM_STDERR),
        )
        code = await process.wait()
        async with self.changed:
            self.outcome = outcome_of(code, self.sent)
            self.changed.notify_all()

    async def _copy(self, source: asyncio.StreamReader, stream: int) -> None:
        while data := await source.read(65536):
            async with self.changed:
                self.buffer.append((self.end, stream, data))
                self.end += len(data)
                self.trim()
                self.changed.notify_all()

    def trim(self) -> None:
        """Forgets the oldest output beyond what is kept."""
        while self.end - self.first > _KEPT_BYTES and len(self.buffer) > 1:
            start, _, oldest = self.buffer[0]
            if self.wanted is not None and start + len(oldest) > self.wanted:
                return
            self.buffer.popleft()
            self.first = start + len(oldest)


def outcome_of(code: int, sent: Collection[int] = ()) -> v1.Outcome:
    if -code in sent:
        end = v1.Outcome.Signalled(number=-code)
        return v1.Outcome(cancelled=v1.Outcome.Cancelled(confirmed=True, signal=end))
    if code < 0:
        return v1.Outcome(signal=v1.Outcome.Signalled(number=-code))
    return v1.Outcome(exit_code=code)


class Upstream:
    def __init__(self) -> None:
        self.sandboxes: dict[str, Kept] = {}
        self.residents: dict[str, Resident] = {}
        # They outlive their sandboxes.
        self.snapshots: dict[str, v1.Snapshot] = {}
        # Every process ever made, deleted ones too.
        self.started: list[Resident] = []
        self.deleted: list[str] = []
        # Cleared: attachments stay open after their last event, as on a slow network.
        self.attachments_may_end = asyncio.Event()
        self.attachments_may_end.set()
        self._ids = itertools.count(1)

    def create(self, spec: v1.SandboxSpec, request_id: str = "") -> v1.Sandbox:
        now = datetime.now(UTC)
        sandbox = v1.Sandbox(
            sandbox_id=f"box-{next(self._ids)}",
            state=v1.SANDBOX_STATE_RUNNING,
            upstream_state="Running",
            image=spec.image,
            entrypoint=spec.entrypoint,
            metadata=spec.metadata,
            incarnation=now.isoformat(),
            request_id=request_id,
        )
        sandbox.created_at.FromDatetime(now)
        if spec.HasField("ttl"):
            sandbox.expires_at.FromDatetime(now + timedelta(seconds=spec.ttl.seconds))
        policy = spec.network_policy if spec.HasField("network_policy") else None
        self.sandboxes[sandbox.sandbox_id] = Kept(sandbox, spec, policy)
        return sandbox

    def find(self, sandbox_id: str, incarnation: str = "", *, running: bool = False) -> Kept:
        kept = self.sandboxes.get(sandbox_id)
        if kept is None:
            raise Fault("SANDBOX_NOT_FOUND", f"no sandbox {sandbox_id}", sandbox_id=sandbox_id)
        if incarnation and kept.sandbox.incarnation != incarnation:
            raise Fault("STALE_INCARNATION", sandbox_id=sandbox_id)
        if running and kept.sandbox.state != v1.SANDBOX_STATE_RUNNING:
            raise Fault("SANDBOX_NOT_RUNNING", state=kept.sandbox.upstream_state)
        if running and not kept.daemon_answers:
            raise Fault("SANDBOX_UNREACHABLE", endpoint="http://127.0.0.1:1")
        return kept

    def set_state(self, sandbox_id: str, word: str) -> None:
        sandbox = self.sandboxes[sandbox_id].sandbox
        sandbox.upstream_state = word
        name = f"SANDBOX_STATE_{word.upper()}"
        known = name in v1.SandboxState.keys()  # noqa: SIM118
        sandbox.state = v1.SandboxState.Value(name) if known else v1.SANDBOX_STATE_UNKNOWN

    async def close(self) -> None:
        """Ends what runs."""
        for resident in self.started:
            await resident.close()
