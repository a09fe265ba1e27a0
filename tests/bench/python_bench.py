# SPDX-License-Identifier: Apache-2.0
"""What the Python client costs: 10,000 events of one command against httpx on the same daemon, and
a file of 256 MiB against a C++ client of the same bridge.

    bazel build --config=opt //bridge:sandbox_bridge //bridge/local:local_opensandbox \
        //tests/bench:bench_client //frontends/astrabox:stubs
    python tests/bench/python_bench.py "$(bazel info --config=opt bazel-bin)"

Python: .deps/python, with the packages of third_party/python. Ways are measured in turn, so that what else
the machine does falls on all of them; what counts are the ratios of the medians.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests/runner"))

from program import BRIDGE_LISTENS, OPENSANDBOX_LISTENS, Program  # noqa: E402

EVENTS = 10_000
SIZE = 256 << 20
REPEATS = 9
COMMAND = f"seq {EVENTS}"
FILE = "/tmp/python-bench"


def daemon_of(upstream: str, sandbox_id: str) -> str:
    """The daemon's own port, not its proxy."""
    where = f"{upstream}/v1/sandboxes/{sandbox_id}/endpoints/44772"
    with urllib.request.urlopen(where) as answer:
        return "http://" + str(json.load(answer)["endpoint"]).removesuffix("/proxy/44772")


async def measure(ways: dict[str, Callable[[], Awaitable[int]]], unit: str) -> dict[str, float]:
    """Medians of how much a second, the ways taken in turn; each returns how much it got."""
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(REPEATS + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            amount = await way()
            if turn:  # the first warms up
                rates[name].append(amount / (time.perf_counter() - start))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, values in rates.items():
        spread = f"{min(values):,.0f} to {max(values):,.0f}"
        print(f"  {name:28} {medians[name]:12,.0f} {unit}   ({spread})")
    return medians


async def direct(http: Any, daemon: str) -> int:
    """As the SDK does it: each event is a line of JSON."""
    count = 0
    async with http.stream("POST", f"{daemon}/command", json={"command": COMMAND}) as answer:
        async for line in answer.aiter_lines():
            event = json.loads(line) if line else {}
            count += event.get("type") == "stdout"
            if event.get("type") in ("execution_complete", "error"):
                break
    assert count == EVENTS, count
    return count


async def execute(client: Any, box: str, fidelity: int) -> int:
    from astrabox_sandbox_bridge.client import command

    count = 0
    async for event in client.execs.execute(box, command(COMMAND, fidelity=fidelity)):
        for output in event.output_batch.outputs:
            count += output.data.count(b"\n")
    assert count == EVENTS, count
    return count


async def measure_events(upstream: str, bridge: str) -> None:
    import httpx
    from astrabox_sandbox_bridge.client import BridgeClient, Options, v1

    async with BridgeClient(Options(bridge)) as client, httpx.AsyncClient(timeout=60) as http:
        made = await client.sandboxes.create(v1.SandboxSpec(image="debian:12"))
        box = made.sandbox.sandbox_id
        daemon = daemon_of(upstream, box)
        found = (await client.bridge.capabilities(box)).daemon
        print(f"{EVENTS} events of one command, {found}:")
        got = await measure(
            {
                "httpx, direct": lambda: direct(http, daemon),
                "bridge, LINES": lambda: execute(client, box, v1.FIDELITY_LINES),
                "bridge, BYTES": lambda: execute(client, box, v1.FIDELITY_BYTES),
            },
            "events/s",
        )
        for name in ("bridge, LINES", "bridge, BYTES"):
            print(f"  {name} / httpx: {got[name] / got['httpx, direct']:.2f}")
        await client.sandboxes.delete(box)


async def measure_file(bin_: Path, bridge: str) -> None:
    from astrabox_sandbox_bridge.client import BridgeClient, Options, command, v1

    async with BridgeClient(Options(bridge)) as client:
        made = await client.sandboxes.create(v1.SandboxSpec(image="debian:12"))
        box = made.sandbox.sandbox_id
        ran = await client.execs.run(box, command(f"head -c {SIZE} /dev/urandom > {FILE}"))
        assert ran.outcome.exit_code == 0, ran

        async def python() -> int:
            size = 0
            async for chunk in client.files.read(box, FILE):
                size += len(chunk)
            assert size == SIZE
            return size >> 20

        async def cpp() -> int:
            done = await asyncio.create_subprocess_exec(
                bin_ / "tests/bench/bench_client",
                *("download", f"--bridge={bridge}", f"--sandbox={box}", f"--path={FILE}"),
                stdout=subprocess.PIPE,
            )
            out, _ = await done.communicate()
            assert json.loads(out)["items"] == SIZE, out
            return SIZE >> 20

        print(f"a file of {SIZE >> 20} MiB:")
        got = await measure({"C++ client": cpp, "Python client": python}, "MiB/s")
        print(f"  Python takes {got['C++ client'] / got['Python client']:.2f} times as long as C++")
        await client.sandboxes.delete(box)


@contextmanager
def both(bin_: Path, *flags: str | Path) -> Iterator[tuple[str, str]]:
    """(URL, address) of a local OpenSandbox and of a bridge in front of it."""
    local, bridge = bin_ / "bridge/local/local_opensandbox", bin_ / "bridge/sandbox_bridge"
    with (
        Program(local, "--listen=127.0.0.1:0", *flags, says=OPENSANDBOX_LISTENS) as upstream,
        Program(bridge, f"--upstream={upstream.place}", "--listen=127.0.0.1:0", says=BRIDGE_LISTENS) as front,
    ):
        yield upstream.place, front.place


def main() -> None:
    bin_ = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(ROOT / "frontends/astrabox/src"))
    import astrabox_sandbox_bridge

    # The stubs are among Bazel's outputs, the rest is in the tree.
    astrabox_sandbox_bridge.__path__.append(str(bin_ / "frontends/astrabox/src/astrabox_sandbox_bridge"))
    with tempfile.TemporaryDirectory() as folder:
        stock = Path(folder) / "execd"
        ours = bin_ / "bridge/local/execd/execd"
        stock.write_text(f'#!/bin/sh\nexec {ours} --extras=false "$@"\n')
        stock.chmod(0o755)
        # Plain processes: the script lies outside of every sandbox.
        with both(bin_, "--isolation=none", f"--execd={stock}") as (upstream, address):
            asyncio.run(measure_events(upstream, address))
    with both(bin_) as (upstream, address):
        asyncio.run(measure_events(upstream, address))
        asyncio.run(measure_file(bin_, address))


if __name__ == "__main__":
    main()
