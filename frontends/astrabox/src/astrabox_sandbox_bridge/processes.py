# SPDX-License-Identifier: Apache-2.0
"""The process plane: resident processes, by id from any replica, one holder at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from . import names
from .box import Box
from .client import Attachment, BridgeError, v1
from .commands import spawn_error
from .failures import Plane

_TERMINAL = (24, 80)


class BoxProcesses:
    def __init__(self, box: Box) -> None:
        self._box = box

    async def start(
        self,
        line: str | None,
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
        terminal: bool,
    ) -> str:
        """Makes a process of a shell line (or the shell) and answers the id that any replica knows
        it by. It starts with its first attachment: attaching restarts what has exited, and must
        not run a short command twice."""
        with self._box.plane("processes"):
            started = await self._box.client().processes.start(
                shell=line,
                cwd=cwd or "",
                env=env,
                terminal=_TERMINAL if terminal else None,
                user=0,
                on_attach=True,
                **self._box.where,
            )
            return started.process_id

    async def get(self, process_id: str) -> v1.ProcessInfo:
        with self._box.plane("processes"):
            return await self._box.client().processes.get(process_id=process_id, **self._box.where)

    async def attach(self, process_id: str, *, since: int, takeover: bool) -> BoxAttachment:
        """Holds a process; one that has exited is run again. Output begins at byte `since`."""
        with self._box.plane("processes"):
            held = await self._box.client().processes.attach(
                process_id=process_id,
                offset=since,
                takeover=takeover,
                restart_if_exited=True,
                **self._box.where,
            )
            return BoxAttachment(self._box, held)

    async def delete(self, process_id: str) -> bool:
        """False when there was none of this id, which is success too."""
        with self._box.plane("processes"):
            return await self._box.client().processes.delete(
                process_id=process_id, **self._box.where
            )


class BoxAttachment:
    """A held process. Closing it lets go; the process runs on."""

    def __init__(self, box: Box, held: Attachment) -> None:
        self._box = box
        self._held = held
        # How the process ended, once its output is read to the end.
        self.outcome: v1.Outcome | None = None

    @property
    def offset(self) -> int:
        """Number of the first byte that output() yields."""
        return self._held.attached.offset

    @property
    def exit_code(self) -> int | None:
        """None while it runs. 128 and the signal's number when a signal ended it."""
        match self.outcome and self.outcome.WhichOneof("kind"):
            case "exit_code":
                assert self.outcome is not None
                return self.outcome.exit_code
            case "signal":
                assert self.outcome is not None
                return 128 + self.outcome.signal.number
            case "cancelled":
                assert self.outcome is not None
                return 128 + self.outcome.cancelled.signal.number
            case _:
                return None

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Both outputs together, each piece with the number of its first byte, to the process's
        end. Raises when the process was taken over, or when the connection broke (attach again
        at the next byte)."""
        with self._box.plane("processes"):
            async for event in self._held:
                match event.WhichOneof("event"):
                    case "output":
                        yield event.output.offset, event.output.data
                    case "exited":
                        self.outcome = event.exited.outcome
                        if self.outcome.HasField("spawn_failed"):
                            raise spawn_error(self.outcome.spawn_failed)
                    case "displaced":
                        raise names.error(Plane.ATTACHED, "another client took the process over")
                    case "drained":
                        return
            raise BridgeError("SANDBOX_UNREACHABLE", "the output ended and the process did not")

    async def write(self, data: bytes) -> None:
        with self._box.plane("processes"):
            await self._held.write(data)

    async def signal(self, name: int | str) -> None:
        with self._box.plane("processes"):
            await self._held.signal(name)

    async def resize(self, rows: int, columns: int) -> None:
        with self._box.plane("processes"):
            await self._held.resize(rows, columns)

    async def close(self) -> None:
        await self._held.close()
