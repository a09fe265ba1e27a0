# SPDX-License-Identifier: Apache-2.0
"""Images whose only shell and tools are busybox's, as Alpine's are: everything that is right in a
big image is right there too, on our own daemon and on a stock one, or is refused in a word."""

from __future__ import annotations

import pytest
from astrabox_sandbox_bridge.client import BridgeClient, command, v1
from clients import GrpcClient
from conftest import Loop, OpenSandbox, Results, Sandboxes, reason_of
from scenarios import SCENARIOS, outcome, shown

STOCK = {"EXECD_EXTRAS": "false", "EXECD_COMPAT": "1.1.0"}


@pytest.mark.parametrize("daemon", ["own", "stock"])
def test_busybox_is_enough(
    opensandbox: OpenSandbox, client: BridgeClient, sandboxes: Sandboxes, loop: Loop,
    results: Results, daemon: str
) -> None:
    env = STOCK if daemon == "stock" else {}
    box = sandboxes.make(image=opensandbox.busybox_image, entrypoint=["sleep", "infinity"],
                         env=[v1.EnvVar(name=name, value=value) for name, value in env.items()])

    async def tools() -> bytes:
        ran = await client.execs.run(box, command("command -v bash python3; readlink /bin/sh"))
        return bytes(ran.stdout)

    assert loop(tools()) == b"busybox\n", "the image has what this test is about"

    async def differences() -> dict[str, str]:
        found = {}
        for number, scenario in enumerate(SCENARIOS):
            await client.files.make_directory(box, f"/tmp/{number}")
            got = await outcome(scenario, GrpcClient(client, box), f"/tmp/{number}")
            if shown(got) != shown(scenario.right):
                found[scenario.name] = shown(got)
        return found

    assert loop(differences()) == {}
    listed = loop(client.processes.list(box, everything=True))
    assert len(listed) >= 2, "process 1 and the daemon"
    assert reason_of(loop, client.processes.start(box, "true")) == "UNSUPPORTED_FEATURE"
    results.works("images without bash, coreutils and Python", "FULL",
                  "but for processes, which need bash")
