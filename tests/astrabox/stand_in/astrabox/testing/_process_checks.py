# SPDX-License-Identifier: Apache-2.0
"""Clauses about resident processes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from astrabox.seams.sandbox_data import (
    SandboxProcessAlreadyAttached,
    SandboxProcessAttachment,
    SandboxProcesses,
    SandboxProcessReplayGap,
)
from astrabox.testing._data_checks import DataContractBox, checks_of, raised

PATIENCE = 60.0


def _processes(box: DataContractBox) -> SandboxProcesses:
    assert box.processes is not None
    processes: SandboxProcesses = box.processes
    return processes


class Reader:
    """Takes an attachment's output and checks that its numbers have no hole."""

    def __init__(self, held: SandboxProcessAttachment, at: int | None = None) -> None:
        self._output: AsyncIterator[tuple[int, bytes]] = held.output()
        self.start = at
        self.seen = b""

    @property
    def end(self) -> int:
        return (self.start or 0) + len(self.seen)

    async def until(self, mark: bytes) -> bytes:
        async with asyncio.timeout(PATIENCE):
            while mark not in self.seen:
                await self._take()
        return self.seen

    async def to_the_end(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            try:
                while True:
                    await self._take()
            except StopAsyncIteration:
                return self.seen

    async def _take(self) -> None:
        offset, data = await anext(self._output)
        if self.start is None:
            self.start = offset
        assert offset == self.end, f"byte {offset} follows byte {self.end}"
        self.seen += data


async def _run(box: DataContractBox, command: str) -> tuple[str, bytes]:
    """A process run to its end; its id and all of its output."""
    processes = _processes(box)
    name = await processes.create(command=command)
    held = await processes.attach(name)
    try:
        return name, await Reader(held, 0).to_the_end()
    finally:
        await held.close()


async def check_a_process_is_written_to_and_read(box: DataContractBox) -> None:
    processes = _processes(box)
    name = await processes.create(command="cat", cwd="/")
    held = await processes.attach(name)
    reader = Reader(held, 0)
    await held.write(b"first\n")
    assert await reader.until(b"first\n") == b"first\n"
    await held.write(bytes(range(1, 256)))
    assert (await reader.until(b"\xff")).endswith(bytes(range(1, 256)))
    await held.close()
    await processes.delete(name)


async def check_cwd_and_env_are_given(box: DataContractBox) -> None:
    processes = _processes(box)
    env = {"CONTRACT_VALUE": "a 'b' $c\nd"}
    name = await processes.create(
        command='pwd; printf "%s" "$CONTRACT_VALUE"', cwd=box.scratch, env=env
    )
    held = await processes.attach(name)
    assert await Reader(held, 0).to_the_end() == f"{box.scratch}\na 'b' $c\nd".encode()
    await held.close()
    await processes.delete(name)


async def check_a_process_outlives_its_holder(box: DataContractBox) -> None:
    processes = _processes(box)
    name = await processes.create(command="echo one; read line; echo two $line; read line")
    held = await processes.attach(name)
    reader = Reader(held, 0)
    await reader.until(b"one\n")
    await held.close()
    assert (await processes.status(name)).running
    again = await processes.attach(name, since=reader.end)
    await again.write(b"x\n")
    assert await Reader(again, reader.end).until(b"two x\n") == b"two x\n"
    await again.close()
    await processes.delete(name)


async def check_both_outputs_are_numbered_together(box: DataContractBox) -> None:
    name, seen = await _run(
        box, "for i in 1 2 3; do echo out$i; sleep 0.05; echo err$i >&2; sleep 0.05; done"
    )
    assert sorted(seen.split()) == sorted(f"{s}{i}".encode() for s in ("out", "err") for i in "123")
    assert (await _processes(box).status(name)).output_offset >= len(seen)
    await _processes(box).delete(name)


async def check_kept_output_is_replayed_from_a_byte(box: DataContractBox) -> None:
    processes = _processes(box)
    name = await processes.create(command="printf '0123456789☃abc'; read line")
    held = await processes.attach(name)
    reader = Reader(held, 0)
    whole = await reader.until(b"abc")
    await held.close()
    for since in (0, 1, 11, 12, 15):  # 11 and 12 lie inside a character
        again = await processes.attach(name, since=since)
        assert await Reader(again, since).until(whole[-1:]) == whole[since:]
        await again.close()
    await processes.delete(name)


async def check_lost_output_is_a_gap(box: DataContractBox) -> None:
    processes = _processes(box)
    command = "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end; read line"
    name = await processes.create(command=command)
    held = await processes.attach(name)
    end = len(await Reader(held, 0).until(b"end\n"))
    await held.close()
    await raised(SandboxProcessReplayGap, processes.attach(name, since=0))
    again = await processes.attach(name, since=end - 4)
    assert await Reader(again, end - 4).until(b"end\n") == b"end\n"
    await again.close()
    await processes.delete(name)


async def check_one_holder_at_a_time(box: DataContractBox) -> None:
    processes = _processes(box)
    name = await processes.create(command="echo ready; cat")
    first = await processes.attach(name)
    await Reader(first, 0).until(b"ready\n")
    await raised(SandboxProcessAlreadyAttached, processes.attach(name, takeover=False))
    second = await processes.attach(name, since=6, takeover=True)
    await second.write(b"mine\n")
    await Reader(second, 6).until(b"mine\n")
    # The first holder is told, and does not take it for the process's end.
    await raised(SandboxProcessAlreadyAttached, Reader(first).to_the_end())
    await first.close()
    await second.close()
    await processes.delete(name)


async def check_an_exited_process_runs_again(box: DataContractBox) -> None:
    name, seen = await _run(box, f"echo run >> '{box.at('log')}'; cat '{box.at('log')}'; exit 3")
    assert seen == b"run\n"
    processes = _processes(box)
    assert not (await processes.status(name)).running
    # The numbering goes on; a daemon may have numbered its own word of the end.
    held = await processes.attach(name, since=len(seen))
    again = Reader(held)
    assert await again.to_the_end() == b"run\nrun\n"
    assert (again.start or 0) >= len(seen)
    await held.close()
    await processes.delete(name)


async def check_the_last_output_is_not_lost(box: DataContractBox) -> None:
    wanted = "".join(f"{i}\n" for i in range(1, 5001)).encode()
    for _ in range(5):
        name, seen = await _run(box, "seq 1 5000; exit 7")
        assert seen == wanted
        await _processes(box).delete(name)


async def check_deleting_ends_a_process_and_can_be_repeated(box: DataContractBox) -> None:
    processes = _processes(box)
    name = await processes.create(command=f"echo $$ > '{box.at('pid')}'; exec sleep 300")
    held = await processes.attach(name)
    for _ in range(100):
        if (await box.commands.run(f"test -s '{box.at('pid')}'")).exit_code == 0:
            break
        await asyncio.sleep(0.05)
    await held.close()
    await processes.delete(name)
    await processes.delete(name)
    gone = f"for i in $(seq 100); do kill -0 $(cat '{box.at('pid')}') || exit 0; sleep 0.05; done"
    assert (await box.commands.run(gone + "; exit 1")).exit_code == 0
    await raised(Exception, processes.attach(name))


async def check_a_signal_reaches_the_process(box: DataContractBox) -> None:
    processes = _processes(box)
    command = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.1; done"
    name = await processes.create(command=command)
    held = await processes.attach(name)
    reader = Reader(held, 0)
    await reader.until(b"ready\n")
    await held.signal("INT")
    assert (await reader.to_the_end()).endswith(b"caught\n")
    await held.close()
    await processes.delete(name)


async def check_binary_output_is_delivered(box: DataContractBox) -> None:
    _, seen = await _run(box, "printf '\\000\\377\\376\\r\\n\\200'; printf END")
    assert seen == b"\x00\xff\xfe\r\n\x80END"


async def check_an_unknown_process_is_an_error(box: DataContractBox) -> None:
    processes: Any = _processes(box)
    await raised(Exception, processes.attach("no-such-process"))
    await raised(Exception, processes.status("no-such-process"))


PROCESS_CHECKS = checks_of(sys.modules[__name__])
