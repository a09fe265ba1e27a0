# SPDX-License-Identifier: Apache-2.0
"""The bridge beside the official SDK on the same real server: a table of milliseconds.

    python3 tests/integration/opensandbox/with_opensandbox.py .deps/python/bin/python \\
        tests/integration/opensandbox/speed.py

with the programs in the environment as with_opensandbox.py says, SANDBOX_BRIDGE_BINARY too, and on
PYTHONPATH this folder, tests/astrabox and the AstraBox frontend with its generated code. Numbers of one
run can be compared with each other, those of two machines can't.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from astrabox_sandbox_bridge.client import BridgeClient, Options, collect, command, v1
from opensandbox import Sandbox
from opensandbox.config import ConnectionConfig
from real_bridge import RealBridge

IMAGE = os.environ.get("OPENSANDBOX_IMAGE", "")
MIB = 1 << 20
STOCK = {"EXECD_EXTRAS": "false", "EXECD_COMPAT": "1.1.0"}


async def median_ms(work: Callable[[], Awaitable[object]], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        await work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


def direct_exec(endpoint: str) -> None:
    """`echo hi` by the daemon's own route, a connection each, read to its end."""
    parts = urlsplit(endpoint)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("POST", "/v1/exec", json.dumps({"shell": "echo hi"}),
                           {"Content-Type": "application/json"})
        assert b"hi" in connection.getresponse().read()
    finally:
        connection.close()


class Bench:
    def __init__(self, client: BridgeClient, config: ConnectionConfig) -> None:
        self.client = client
        self.config = config

    async def make(self, env: dict[str, str]) -> str:
        pairs = [v1.EnvVar(name=name, value=value) for name, value in env.items()]
        made = await self.client.sandboxes.create(v1.SandboxSpec(image=IMAGE, env=pairs))
        return made.sandbox.sandbox_id

    async def execute(self, box: str) -> None:
        ran = await collect(self.client.execs.execute(box, command("echo hi")), limit=1000)
        assert ran.stdout == b"hi\n"

    async def daemon(self, title: str, env: dict[str, str]) -> None:
        """What goes to the sandbox's daemon."""
        box = await self.make(env)
        sdk = await Sandbox.connect(box, connection_config=self.config)
        await self.execute(box)
        row(f"{title}: Execute echo hi", await median_ms(lambda: self.execute(box), 50),
            await median_ms(lambda: sdk.commands.run("echo hi"), 6))
        if not env:
            endpoint = (await self.client.sandboxes.endpoint(box, 44772)).url
            row("  the daemon's route itself", await median_ms(
                lambda: asyncio.to_thread(direct_exec, endpoint), 50), None)
        for size, rounds, name in ((1024, 30, "1 KiB"), (64 * MIB, 3, "64 MiB")):
            data = b"x" * size
            place = v1.WriteOptions(path="/tmp/a")
            row(f"{title}: write {name}",
                await median_ms(partial(self.client.files.write, box, place, data), rounds),
                await median_ms(partial(sdk.files.write_file, "/tmp/b", data), rounds))
            row(f"{title}: read {name}",
                await median_ms(lambda: self.client.files.read_bytes(box, "/tmp/a"), rounds),
                await median_ms(lambda: sdk.files.read_bytes("/tmp/b"), rounds))
        await sdk.close()
        await self.client.sandboxes.delete(box)

    async def lives(self) -> None:
        async def bridge() -> None:
            await self.client.sandboxes.delete(await self.make({}))

        async def sdk() -> None:
            made = await Sandbox.create(IMAGE, connection_config=self.config)
            await made.kill()
            await made.close()

        row("create until usable, delete", await median_ms(bridge, 5), await median_ms(sdk, 5))

    async def crowd(self) -> None:
        boxes = await asyncio.gather(*(self.make({}) for _ in range(10)))
        held = [await Sandbox.connect(box, connection_config=self.config) for box in boxes]

        async def bridge() -> None:
            await asyncio.gather(*(self.execute(box) for box in boxes for _ in range(30)))

        async def sdk() -> None:
            await asyncio.gather(*(box.commands.run("echo hi") for box in held for _ in range(30)))

        row("300 execs at once in 10 sandboxes", await median_ms(bridge, 2), await median_ms(sdk, 2))
        for box in held:
            await box.close()
        await asyncio.gather(*(self.client.sandboxes.delete(box) for box in boxes))


def row(name: str, bridge: float, sdk: float | None) -> None:
    rest = "" if sdk is None else f"{sdk:10.1f} {sdk / bridge:8.1f}"
    print(f"{name:44} {bridge:10.1f} {rest}", flush=True)


async def main(address: str) -> None:
    key = Path(os.environ["OPENSANDBOX_API_KEY_FILE"]).read_text(encoding="utf-8")
    config = ConnectionConfig(domain=urlsplit(os.environ["OPENSANDBOX_URL"]).netloc, api_key=key,
                              disable_metrics=True)
    print(f"{'ms':44} {'bridge':>10} {'SDK':>10} {'SDK/bridge':>8}")
    async with BridgeClient(Options(address)) as client:
        bench = Bench(client, config)
        await bench.daemon("our daemon", {})
        await bench.daemon("stock 1.1.0", STOCK)
        await bench.lives()
        await bench.crowd()


if __name__ == "__main__":
    with RealBridge() as running:
        asyncio.run(main(running.place))
