# SPDX-License-Identifier: Apache-2.0
"""Traps of time and place: sandboxes that stand still, servers that go away, signals that are
ignored, output that is overtaken by its end, a network that all sandboxes share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest
from astrabox_sandbox_bridge.client import (
    BridgeClient,
    BridgeError,
    Collected,
    Options,
    collect,
    command,
    v1,
)
from conftest import Loop, OpenSandbox, Sandboxes, SecondServer

# Longer than the bridge takes silence for death.
PAUSE_SECONDS = 17.0


@pytest.fixture(scope="module", autouse=True)
def paused(
    client: BridgeClient, loop: Loop, opensandbox: OpenSandbox
) -> Iterator[Callable[[], list[Collected]]]:
    """Sandboxes that stand still with commands in them, while the other tests of this file run; what
    it gives ends that and answers what became of the commands."""
    made = Sandboxes(client, loop, opensandbox.image)
    boxes = [made.make(), made.make_stock()]
    running: list[asyncio.Task[Collected]] = []

    async def run(box: str, line: str, timeout: float | None) -> Collected:
        events = client.execs.execute(box, command(line, timeout=timeout))
        return await collect(events, limit=1 << 20)

    async def begin() -> float:
        lines = (("echo a; sleep 3; echo b", None), ("sleep 600", 5.0))
        running.extend(asyncio.create_task(run(box, line, timeout))
                       for box in boxes for line, timeout in lines)
        await asyncio.sleep(1)
        await asyncio.gather(*(client.sandboxes.pause(box) for box in boxes))
        return time.monotonic()

    async def end() -> list[Collected]:
        await asyncio.sleep(max(0.0, since + PAUSE_SECONDS - time.monotonic()))
        await asyncio.gather(*(client.sandboxes.resume(box) for box in boxes))
        return await asyncio.gather(*running)

    since = loop(begin())
    yield lambda: loop(end())
    made.delete_all()


@pytest.mark.parametrize("stock", [False, True], ids=["own", "stock"])
def test_an_interrupt_ends_a_process(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, stock: bool
) -> None:
    """Children of a stock daemon's terminals and sessions ignore SIGINT while it is idle."""
    box = sandboxes.make_stock() if stock else sandboxes.make()

    async def end(terminal: tuple[int, int] | None) -> v1.Outcome:
        made = await client.processes.start(box, argv=["sleep", "600"], terminal=terminal)
        async with await client.processes.attach(box, made.process_id, offset=0) as held:
            await client.processes.signal(box, made.process_id, "INT")
            async for event in held:
                if event.WhichOneof("event") == "exited":
                    return event.exited.outcome
        raise AssertionError("its end was not told")

    for terminal in (None, (24, 80)):
        outcome = loop(end(terminal), seconds=30)
        # Of this one signal the shell that watches the process says no more (docs/adr/0005).
        assert outcome.exit_code == 130, outcome


@pytest.mark.parametrize("stock", [False, True], ids=["own", "stock"])
def test_a_terminals_last_output_is_not_overtaken_by_its_end(
    client: BridgeClient, sandboxes: Sandboxes, loop: Loop, stock: bool
) -> None:
    """A stock daemon's terminal lost the tail of one session in six."""
    box = sandboxes.make_stock() if stock else sandboxes.make()
    wanted = b"".join(b"%d\r\n" % i for i in range(1, 20_001))

    async def one() -> bytes:
        made = await client.processes.start(
            box, argv=["seq", "1", "20000"], terminal=(24, 80), on_attach=True)
        got = b""
        async with await client.processes.attach(box, made.process_id, offset=0) as held:
            async for event in held:
                got += event.output.data
        await client.processes.delete(box, made.process_id)
        return got

    for _ in range(15):
        got = loop(one())
        assert got == wanted, f"{len(got)} of {len(wanted)} bytes"


@pytest.mark.parametrize("second_server", [{"egress": None}], indirect=True)
def test_sandboxes_outlive_their_server(
    second_server: SecondServer, loop: Loop, image: str
) -> None:
    """While it is away commands run on and can be started; its own calls say what is wrong."""
    async def work(address: str) -> None:
        async with BridgeClient(Options(address)) as client:
            made = await client.sandboxes.create(v1.SandboxSpec(image=image))
            box = made.sandbox.sandbox_id
            # This server has no sidecar for such a thing.
            with pytest.raises(BridgeError) as walled:
                await client.sandboxes.create(
                    v1.SandboxSpec(image=image, network_policy=v1.NetworkPolicy()))
            assert walled.value.reason == "UNSUPPORTED_FEATURE"
            running = asyncio.create_task(collect(
                client.execs.execute(box, command("sleep 2; echo on")), limit=1000))
            await asyncio.sleep(0.5)
            await asyncio.to_thread(second_server.stop)
            ran = await client.execs.run(box, command("echo still"))
            assert ran.stdout == b"still\n"
            assert (await running).stdout == b"on\n"
            with pytest.raises(BridgeError) as away:
                await client.sandboxes.get(box)
            assert away.value.reason == "UPSTREAM_UNAVAILABLE"
            await asyncio.to_thread(second_server.start)
            assert (await client.sandboxes.get(box)).state == v1.SANDBOX_STATE_RUNNING
            gone = await client.sandboxes.delete(box)
            assert gone.verdict == v1.DeleteSandboxResponse.VERDICT_CONFIRMED_GONE

    with second_server.bridge() as bridge:
        loop(work(bridge.place))


@pytest.mark.parametrize("second_server", [{"docker": {"network_mode": "host"}}], indirect=True)
def test_on_a_shared_network_no_command_goes_to_another_sandbox(
    second_server: SecondServer, loop: Loop, image: str
) -> None:
    """With host networking the second daemon cannot listen, and the server sends its callers to the
    first one's."""
    async def work(address: str) -> None:
        async with BridgeClient(Options(address)) as client:
            with pytest.raises(BridgeError) as walled:
                await client.sandboxes.create(
                    v1.SandboxSpec(image=image, network_policy=v1.NetworkPolicy()))
            assert walled.value.reason == "UNSUPPORTED_FEATURE"
            first = (await client.sandboxes.create(v1.SandboxSpec(image=image))).sandbox.sandbox_id
            ran = await client.execs.run(first, command('printf %s "$OPENSANDBOX_ID"'))
            assert ran.stdout.decode() == first
            second = (await client.sandboxes.create(v1.SandboxSpec(image=image))).sandbox.sandbox_id
            with pytest.raises(BridgeError, match="another sandbox's daemon") as refused:
                await client.execs.run(second, command('printf %s "$OPENSANDBOX_ID"'))
            assert refused.value.reason == "SANDBOX_UNREACHABLE"
            with pytest.raises(BridgeError, match="another sandbox's daemon"):
                await client.files.read_bytes(second, "/etc/passwd")
            await client.sandboxes.delete(second)
            await client.sandboxes.delete(first)

    with second_server.bridge() as bridge:
        loop(work(bridge.place))


def test_commands_outlive_a_pause_and_their_timeouts_run_on(
    paused: Callable[[], list[Collected]]
) -> None:
    """A paused sandbox accepts connections and is silent; its command's clock goes on. The last of
    this file, since the pause has to be long."""
    for went_on, too_long in zip(*[iter(paused())] * 2, strict=True):
        assert (went_on.outcome.exit_code, went_on.stdout) == (0, b"a\nb\n"), went_on
        assert not went_on.lossy
        assert too_long.outcome.WhichOneof("kind") == "timed_out", too_long
