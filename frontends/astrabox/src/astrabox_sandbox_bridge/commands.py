# SPDX-License-Identifier: Apache-2.0
"""The command plane: one shell line as root with an empty stdin; a non-zero exit is data."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from . import names
from .box import Box
from .client import BridgeError, Collected, collect, command, v1
from .failures import Plane

# Seconds that the bridge gets, beyond the command's own deadline, to stop it and say so.
_GRACE = 15.0


@dataclass(frozen=True)
class Ran:
    exit_code: int
    stdout: bytes
    stderr: bytes


class BoxCommands:
    def __init__(self, box: Box) -> None:
        self._box = box

    async def run(self, line: str, *, timeout: float | None) -> Ran:
        """Runs a line to its end. Beyond `timeout` seconds it is stopped and TimeoutError raised.

        A command that a signal ended has the exit code that a shell would give it, 128 and the
        signal's number. How one ended that nobody knows the end of is never made up.
        """
        if timeout is not None and timeout <= 0:
            raise TimeoutError("the command's deadline had passed before it was started")
        with self._box.plane("commands"):
            spec = command(line, user=0, timeout=timeout)
            events = self._box.client().execs.execute(spec=spec, **self._box.where)
            try:
                # The bridge stops the command at its deadline; this one is for a bridge that does
                # not answer any more.
                async with asyncio.timeout(None if timeout is None else timeout + _GRACE):
                    ran = await collect(events, limit=self._box.settings.count("MAX_OUTPUT_BYTES"))
            except TimeoutError:
                raise TimeoutError(_late(timeout, "and its end was not confirmed")) from None
            return self._judge(ran, timeout)

    def _judge(self, ran: Collected, timeout: float | None) -> Ran:
        outcome = ran.outcome
        match outcome.WhichOneof("kind"):
            case "exit_code":
                code = outcome.exit_code
            case "signal":
                code = 128 + outcome.signal.number
            case "timed_out":
                raise TimeoutError(_late(timeout, "and was stopped"))
            case "cancelled" if outcome.cancelled.WhichOneof("end") == "exit_code":
                code = outcome.cancelled.exit_code
            case "cancelled":
                code = 128 + outcome.cancelled.signal.number
            case "spawn_failed":
                raise self._box.failure(spawn_error(outcome.spawn_failed), "commands")
            case _:
                raise names.error(
                    Plane.UNREACHABLE,
                    f"the command's end is not known: {outcome.lost.reason or 'no outcome'}",
                )
        if ran.lossy:
            message = f"the command ended with exit code {code}, but some of its output was lost"
            raise BridgeError("OUTPUT_TRUNCATED", message)
        return Ran(code, ran.stdout, ran.stderr)


def spawn_error(failed: v1.Outcome.SpawnFailed) -> BridgeError:
    """A command that never ran, as the failure it is: nothing of its own can be data."""
    return BridgeError("SANDBOX_FAILED", f"the command could not be started: {failed.message}")


def _late(timeout: float | None, what: str) -> str:
    return f"the command ran longer than {timeout or 0:g} s {what}"
