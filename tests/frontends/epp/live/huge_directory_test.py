# SPDX-License-Identifier: Apache-2.0
"""A directory of 100,000 files with names of 60 characters: by the plugin, which has lines of 8 MiB,
and over gRPC, which has all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from astrabox_sandbox_bridge.client import BridgeClient, Options, v1
from conftest import program
from epp_host import Plugin
from program import BRIDGE_LISTENS, OPENSANDBOX_LISTENS, Program, memory

pytestmark = pytest.mark.asyncio

COUNT = 100_000
FLAT = "/tmp/huge/flat"
# What gRPC takes of a client that sets no limit of its own.
MAX_MESSAGE_BYTES = 4 << 20
MAX_GROWTH_BYTES = 150 << 20
MAX_PLUGIN_BYTES = 60 << 20
SCRIPT = f"""
import os
os.makedirs("{FLAT}")
for i in range({COUNT}): open(f"{FLAT}/{{i:060d}}", "w").close()
"""


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Program, Program]]:
    argv = [program("LOCAL_OPENSANDBOX"), "--listen=127.0.0.1:0"]
    with Program(*argv, says=OPENSANDBOX_LISTENS) as local:
        argv = [program("SANDBOX_BRIDGE"), "--listen=127.0.0.1:0", f"--upstream={local.place}"]
        with Program(*argv, says=BRIDGE_LISTENS) as bridge:
            yield local, bridge


@pytest.fixture(scope="module")
def plugin(servers: tuple[Program, Program], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugin]:
    plugin = Plugin(program("PROVIDER"), str(tmp_path_factory.mktemp("data")))
    plugin.initialize({"base_url": servers[0].place})
    yield plugin
    plugin.close()


@pytest.fixture(scope="module")
def sandbox_id(plugin: Plugin) -> Iterator[str]:
    sandbox_id = plugin.create(timeout=3600)["sandbox_id"]
    made = plugin.run(sandbox_id, "python3", ["-c", SCRIPT], wait=300, timeout=300)
    assert made.code == 0, made.stderr
    yield sandbox_id
    plugin.call("sandbox.kill", {"sandbox_id": sandbox_id})


@pytest_asyncio.fixture
async def client(servers: tuple[Program, Program]) -> AsyncIterator[BridgeClient]:
    async with BridgeClient(Options(servers[1].place)) as client:
        yield client


async def test_the_plugin_says_that_no_line_holds_it(plugin: Plugin, sandbox_id: str) -> None:
    for depth in (1, 3):
        params = {"sandbox_id": sandbox_id, "path": FLAT, "depth": depth}
        error = plugin.error("files.list", params, timeout=120)
        assert error.code == -32000
        assert "too many entries" in error.message
    found = plugin.call(
        "files.search",
        {"sandbox_id": sandbox_id, "path": FLAT, "pattern": "*99", "max_results": COUNT},
        timeout=120,
    )["entries"]
    assert len({entry["name"] for entry in found}) == COUNT // 100
    assert memory(plugin.process.pid) < MAX_PLUGIN_BYTES


@pytest.mark.parametrize(("path", "depth", "extra"), [(FLAT, 1, 0), ("/tmp/huge", 3, 1)])
async def test_the_bridge_lists_all_of_it(
    client: BridgeClient,
    servers: tuple[Program, Program],
    sandbox_id: str,
    path: str,
    depth: int,
    extra: int,
) -> None:
    before = memory(servers[1].process.pid)
    request = v1.ListDirectoryRequest(sandbox_id=sandbox_id, path=path, depth=depth)
    names: list[str] = []
    largest = 0
    async for batch in client.files._stub.ListDirectory(request, timeout=120):
        largest = max(largest, batch.ByteSize())
        names += [entry.path for entry in batch.entries]
    assert len(names) == COUNT + extra
    assert len(set(names)) == len(names)
    assert largest < MAX_MESSAGE_BYTES
    assert memory(servers[1].process.pid) - before < MAX_GROWTH_BYTES


async def test_a_listing_can_be_left(client: BridgeClient, sandbox_id: str) -> None:
    seen = 0
    async for _ in client.files.list(sandbox_id, FLAT):
        seen += 1
        break
    assert seen == 1
    assert (await client.files.stat(sandbox_id, FLAT)).type == v1.FILE_TYPE_DIRECTORY
