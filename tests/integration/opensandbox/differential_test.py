# SPDX-License-Identifier: Apache-2.0
"""Every scenario through every way into a sandbox of the same real server. The result is right,
byte for byte, or it is a row of differences.py with its reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from astrabox.seams.sandbox import set_sandbox_installation_loader
from astrabox_sandbox_bridge.client import BridgeClient, v1
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider
from clients import Client, GrpcClient, SdkClient
from conftest import Loop, OpenSandbox, Results
from differences import DIFFERENCES
from epp_host import Plugin
from frontend_clients import AstraBoxClient, EppClient
from opensandbox import Sandbox as SdkSandbox
from real_bridge import RealBridge
from scenarios import SCENARIOS, Scenario, outcome, shown

WAYS = ("sdk", "bridge", "bridge, stock daemon", "bridge, server proxy", "astrabox", "epp")


@pytest.fixture(scope="module")
def stock_sandbox_id(opensandbox: OpenSandbox, client: BridgeClient, loop: Loop) -> Iterator[str]:
    """A sandbox whose daemon has the routes and habits of the 1.1.0 one and nothing else."""
    spec = v1.SandboxSpec(image=opensandbox.image, env=[
        v1.EnvVar(name="EXECD_EXTRAS", value="false"),
        v1.EnvVar(name="EXECD_COMPAT", value="1.1.0")])
    made = loop(client.sandboxes.create(spec))
    yield made.sandbox.sandbox_id
    loop(client.sandboxes.delete(made.sandbox.sandbox_id))


@pytest.fixture(scope="module")
def plugin(bridge: RealBridge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugin]:
    program = str(Path(os.environ["EPP_BINARY"]).absolute())
    running = Plugin(program, str(tmp_path_factory.mktemp("epp")))
    running.initialize({"bridge_address": bridge.place})
    yield running
    running.close()


@pytest.fixture(scope="module")
def ways(
    sandbox_id: str, stock_sandbox_id: str, sdk_sandbox: SdkSandbox, client: BridgeClient,
    proxied: BridgeClient, bridge: RealBridge, plugin: Plugin, loop: Loop,
) -> Iterator[dict[str, Client]]:
    async def installation() -> str:
        return "installation-1"

    set_sandbox_installation_loader(installation)
    settings = {"ASTRABOX_SANDBOX_BRIDGE_ADDRESS": bridge.place,
                "ASTRABOX_SANDBOX_BRIDGE_IMAGE": "unused:1"}

    async def provider() -> SandboxBridgeProvider:
        return SandboxBridgeProvider()

    with pytest.MonkeyPatch.context() as environment:
        for name, value in settings.items():
            environment.setenv(name, value)
        astrabox = loop(provider())
        handle = loop(astrabox.connect(sandbox_id))
    yield {
        "sdk": SdkClient(sdk_sandbox),
        "bridge": GrpcClient(client, sandbox_id),
        "bridge, stock daemon": GrpcClient(client, stock_sandbox_id),
        "bridge, server proxy": GrpcClient(proxied, sandbox_id),
        "astrabox": AstraBoxClient(handle),
        "epp": EppClient(plugin, sandbox_id),
    }
    loop(astrabox.shutdown_current_loop_resources())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_right_or_a_named_difference(
    scenario: Scenario, way: str, ways: dict[str, Client], client: BridgeClient, sandbox_id: str,
    stock_sandbox_id: str, loop: Loop, results: Results,
) -> None:
    scratch = f"/tmp/{SCENARIOS.index(scenario)}-{WAYS.index(way)}"
    target = stock_sandbox_id if "stock" in way else sandbox_id
    loop(client.files.make_directory(target, scratch))
    got = loop(outcome(scenario, ways[way], scratch))
    difference = DIFFERENCES.get((scenario.name, way))
    if difference is None:
        assert shown(got) == shown(scenario.right)
        results.add(scenario.name, way, "")
    else:
        assert shown(got) == shown(difference.gives), "the row of differences.py is out of date"
        assert got != scenario.right, "no difference any more: remove the row"
        results.add(scenario.name, way, difference.reason)
