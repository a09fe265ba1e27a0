# SPDX-License-Identifier: Apache-2.0
"""The same bridge does the same in front of the real server and of the local one: every request that
it sends gets the same answer from both, but for what differs from run to run and what is listed.

The daemons need no such comparison: it is the same program.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from astrabox_sandbox_bridge.client import BridgeClient, BridgeError, Options, command, v1
from conftest import Loop, OpenSandbox
from real_bridge import LocalOpenSandbox, RealBridge
from relay import Exchange, Relay

IMAGE = "debian:12"
Work = Callable[[BridgeClient], Awaitable[None]]


async def _refused(work: Awaitable[object]) -> None:
    with pytest.raises(BridgeError):
        await work


async def a_life(client: BridgeClient) -> None:
    spec = v1.SandboxSpec(image=IMAGE, metadata={"team": "a"}, env=[v1.EnvVar(name="A", value="b")],
                          resource_limits={"cpu": "1", "memory": "256Mi"}, ttl={"seconds": 600})
    box = (await client.sandboxes.create(spec)).sandbox.sandbox_id
    await client.execs.run(box, command("true"))
    await client.sandboxes.get(box)
    await client.sandboxes.update_metadata(box, set_keys={"n": "1"}, delete_keys=["team"])
    await client.sandboxes.set_expiration(box, ttl=1200)
    await client.sandboxes.page(metadata={"n": "1"})
    await client.sandboxes.page(metadata={"n": "2"})
    await client.sandboxes.page(
        metadata={"n": "1"}, states=[v1.SANDBOX_STATE_RUNNING], page_size=1)
    await client.sandboxes.delete(box)
    await client.sandboxes.delete(box)


async def pauses(client: BridgeClient) -> None:
    box = (await client.sandboxes.create(v1.SandboxSpec(image=IMAGE))).sandbox.sandbox_id
    await client.sandboxes.pause(box)
    await client.sandboxes.pause(box)
    await client.sandboxes.get(box)
    await client.sandboxes.resume(box)
    await client.sandboxes.resume(box)
    await client.sandboxes.delete(box)


async def endpoints(client: BridgeClient) -> None:
    box = (await client.sandboxes.create(v1.SandboxSpec(image=IMAGE))).sandbox.sandbox_id
    for port in (8080, 8000, 44772):
        for route in (v1.ENDPOINT_ROUTE_DIRECT, v1.ENDPOINT_ROUTE_SERVER_PROXY):
            await client.sandboxes.endpoint(box, port, route=route)
    later = datetime.now(UTC) + timedelta(hours=1)
    await _refused(client.sandboxes.signed_endpoint(box, 8080, expires_at=later))
    await client.sandboxes.delete(box)


async def refusals(client: BridgeClient) -> None:
    nobody = "00000000-0000-4000-8000-000000000000"
    await _refused(client.sandboxes.get(nobody))
    await client.sandboxes.delete(nobody)
    await _refused(client.sandboxes.pause(nobody))
    await _refused(client.sandboxes.set_expiration(nobody, ttl=600))
    await _refused(client.sandboxes.update_metadata(nobody, set_keys={"a": "b"}))
    await _refused(client.sandboxes.endpoint(nobody, 8080))
    for fields in ({"secure_access": True}, {"platform": "windows/amd64"},
                   {"resource_limits": {"cpu": "99999"}},
                   {"env": [v1.EnvVar(name="OPENSANDBOX_LIFECYCLE", value="x")]},
                   {"extensions": {"poolRef": "p"}}):
        await _refused(client.sandboxes.create(v1.SandboxSpec(image=IMAGE, **fields)))
    forever = await client.sandboxes.create(v1.SandboxSpec(image=IMAGE, never=True))
    await _refused(client.sandboxes.set_expiration(forever.sandbox.sandbox_id, ttl=600))
    await client.sandboxes.delete(forever.sandbox.sandbox_id)


WORKS: list[Work] = [a_life, pauses, endpoints, refusals]

# {part of a request: why its answers differ}. A row without a difference fails.
DIFFERENCES = {
    '"os": "windows"': "the local one knows no Windows images, nor the rules for them",
    '"cpu": "99999"': "the engine's words are the same, those of the client around them are not",
}


def seen_at(url: str, key_file: Path, work: Work, loop: Loop) -> list[Exchange]:
    """What went between a bridge and a server, repetitions left out."""
    async def run(address: str) -> None:
        async with BridgeClient(Options(address)) as client:
            await work(client)

    with Relay(url) as relay, RealBridge(relay.url, f"--api_key_file={key_file}") as bridge:
        loop(run(bridge.place))
        return list(dict.fromkeys(relay.exchanges))


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
def test_both_servers_answer_alike(
    work: Work, opensandbox: OpenSandbox, loop: Loop, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCAL_OPENSANDBOX_API_KEY", opensandbox.api_key)
    key_file = Path(os.environ["OPENSANDBOX_API_KEY_FILE"])
    with LocalOpenSandbox() as local:
        mine = seen_at(local.place, key_file, work, loop)
    real = seen_at(opensandbox.url, key_file, work, loop)
    expected = {exchange.request: [one for one in real if one.request == exchange.request]
                for exchange in real}
    wrong = []
    for request in dict.fromkeys([*expected, *(exchange.request for exchange in mine)]):
        answers = [str(one) for one in mine if one.request == request]
        wanted = [str(one) for one in expected.get(request, [])]
        known = any(part in request for part in DIFFERENCES)
        assert not known or answers != wanted, f"no difference any more: {request}"
        if not known and answers != wanted:
            wrong.append("\n".join(["", *(f"real  {one}" for one in wanted),
                                    *(f"local {one}" for one in answers)]))
    assert not wrong, "\n".join(wrong)
