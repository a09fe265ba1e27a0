# SPDX-License-Identifier: Apache-2.0
"""The provider on the real bridge, over the local OpenSandbox or the real one: what the fake bridge
claims, proven.

One OpenSandbox for all tests, and bridges in front of it as they are needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import time
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import pytest
from astrabox.common.utils.errors import APIError
from astrabox.seams.sandbox import SandboxNetworkPolicy
from astrabox.seams.sandbox_data import SandboxUnreachable
from astrabox_sandbox_bridge.client import BridgeClient, Options, command
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider

from conftest import INSTALLATION, Providers, Specs
from real_bridge import RealBridge

pytestmark = pytest.mark.asyncio

OWNED = {"astrabox.managed-by": "astrabox", "astrabox.installation": INSTALLATION}


async def test_a_life(live: SandboxBridgeProvider, specs: Specs) -> None:
    session = "agent-runtime:" + "x" * 100
    spec = specs(
        session_id=session,
        env={"GIVEN": "a 'b' $c"},
        metadata={"receipt": '{"any": "length ☃"}' * 30, "plain": "v"},
        cwd="/srv/deep",
        requires_command_channel=True,
        resource_limits={"cpu": "1", "memory": "512Mi"},
    )
    handle = await live.create_sandbox(spec)
    name = handle.sandbox_id
    ran = await handle.commands.run('printf %s "$GIVEN"; test -d /srv/deep')
    assert (ran.exit_code, ran.stdout) == (0, "a 'b' $c")

    described = await live.describe_sandbox(name)
    assert spec.metadata.items() <= described.metadata.items()
    assert (described.state, described.session_id) == ("running", session)
    assert (described.image, described.entrypoint) == ("debian:12", spec.entrypoint)
    found = await live.find_sandbox_by_assignment(spec.assignment_id)
    assert found is not None
    assert found.sandbox_id == name
    assert (await live.claim_of(name, expected_session_id=session)).verdict == "MINE"
    assert (await live.claim_of(name, expected_session_id="other")).verdict == "FOREIGN"

    first = await live.expires_at(name)
    assert first is not None
    assert first.timestamp() == pytest.approx(time.time() + 14400, abs=30)
    assert await live.renew(name, 60) == first
    later = await live.renew(name, 20_000)
    assert later is not None
    assert later > first

    seen = await live.probe(name)
    assert (seen.probe_status, seen.sandbox_state) == ("OK", "running")
    assert not await live.data_plane_unreachable(name)

    assert await live.kill(name)
    assert (await live.probe(name)).probe_status == "NOT_FOUND"
    assert await live.kill(name)
    assert (await live.confirm_destroyed(name)).confirmed
    with pytest.raises(APIError, match="SANDBOX_GONE"):
        await live.connect(name)
    for work in (live.describe_sandbox(name), live.expires_at(name), live.renew(name, 600)):
        with pytest.raises(APIError, match="SANDBOX_NOT_FOUND"):
            await work
    with pytest.raises(SandboxUnreachable):
        await handle.commands.run("true")
    assert (await live.claim_of(name)).verdict == "UNCLAIMED"


async def test_pause_and_resume_three_rounds(live: SandboxBridgeProvider, specs: Specs) -> None:
    handle = await live.create_sandbox(specs())
    for round_ in range(3):
        await handle.files.write_file(f"/tmp/r{round_}", b"kept", mode=0o600)  # noqa: S108
        assert await live.pause(handle.sandbox_id)
        assert (await live.probe(handle.sandbox_id)).sandbox_state == "paused"
        with pytest.raises(APIError, match="SANDBOX_GONE"):
            await live.connect(handle.sandbox_id)
        assert await live.resume(handle.sandbox_id)
        for earlier in range(round_ + 1):
            path = f"/tmp/r{earlier}"  # noqa: S108
            assert await handle.files.read_bytes(path) == b"kept"
        assert (await handle.commands.run("echo up")).stdout == "up\n"


async def test_pages(live: SandboxBridgeProvider, specs: Specs) -> None:
    made = [(await live.create_sandbox(specs())).sandbox_id for _ in range(5)]
    seen: list[str] = []
    for number in (1, 2, 3):
        page = await live.list_sandboxes(page=number, page_size=2, metadata=OWNED)
        assert (page.total_items, page.total_pages) == (5, 3)
        assert page.has_next_page == (number < 3)
        seen += [box.sandbox_id for box in page.items]
    assert sorted(seen) == sorted(made)
    assert len(set(seen)) == 5
    empty = await live.list_sandboxes(metadata={"no": "such"})
    assert (empty.items, empty.total_items) == ((), 0)


async def test_ports_and_diagnostics(live: SandboxBridgeProvider, specs: Specs) -> None:
    program = "cd / && exec python3 -m http.server 18000"
    handle = await live.create_sandbox(
        specs(
            entrypoint=("sh", "-c", program),
            wait_for_inbox_service_port=18000,
        )
    )
    assert 18000 in await live.read_listening_ports(handle.sandbox_id)
    endpoint = await handle.get_endpoint(18000)
    request = urllib.request.Request(endpoint.url + "/etc/", headers=dict(endpoint.headers))  # noqa: S310

    def fetch() -> int:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return int(answer.status)

    assert await asyncio.to_thread(fetch) == 200
    diagnostics = await live.read_diagnostics(handle.sandbox_id, scope="summary")
    assert diagnostics.text


async def test_a_port_that_never_listens(
    real: RealBridge, make_provider: Providers, specs: Specs
) -> None:
    provider = make_provider(ADDRESS=real.place, PORT_TIMEOUT_SECONDS="1")
    before = (await provider.list_sandboxes()).total_items
    with pytest.raises(APIError, match="port 9"):
        await provider.create_sandbox(specs(wait_for_inbox_service_port=9))
    assert (await provider.list_sandboxes()).total_items == before


async def test_replayed_assignments(live: SandboxBridgeProvider, specs: Specs) -> None:
    assignment = "same:" + os.urandom(8).hex()
    first = await live.create_sandbox(specs(assignment_id=assignment, env={"T": "1"}))
    same = await live.create_sandbox(specs(assignment_id=assignment, env={"T": "1"}))
    other = await live.create_sandbox(specs(assignment_id=assignment, env={"T": "2"}))
    assert first.sandbox_id == same.sandbox_id == other.sandbox_id
    with pytest.raises(APIError, match="SANDBOX_ASSIGNMENT_CONFLICT"):
        await live.create_sandbox(specs(assignment_id=assignment, session_id="another"))
    assert (await live.list_sandboxes(metadata=OWNED)).total_items == 1


async def test_an_ended_sandbox_of_the_assignment_makes_room(
    live: SandboxBridgeProvider, specs: Specs
) -> None:
    """It is destroyed and the attempt fails; the next one makes another."""
    program = "while [ ! -e /tmp/end ]; do sleep 0.1; done; exit 3"
    spec = specs(entrypoint=("sh", "-c", program))
    first = await live.create_sandbox(spec)
    await first.files.write_file("/tmp/end", b"", mode=0o600)  # noqa: S108
    for _ in range(600):
        if (await live.probe(first.sandbox_id)).sandbox_state in {"failed", "terminated"}:
            break
        await asyncio.sleep(0.05)
    with pytest.raises(APIError) as caught:
        await live.create_sandbox(spec)
    assert (caught.value.code, caught.value.status_code) == ("AGENT_RUNTIME_ERROR", 502)
    assert (await live.probe(first.sandbox_id)).probe_status == "NOT_FOUND"
    second = await live.create_sandbox(spec)
    assert second.sandbox_id != first.sandbox_id


async def test_cancelled_creates_leave_nothing(live: SandboxBridgeProvider, specs: Specs) -> None:
    """Cancelled at many moments of the create."""
    for delay in (0.0, 0.01, 0.05, 0.1, 0.2, 0.4):
        creating = asyncio.create_task(
            live.create_sandbox(specs(requires_command_channel=True, cwd="/x"))
        )
        await asyncio.sleep(delay)
        creating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            handle = await creating
            await live.kill(handle.sandbox_id)
    await live.shutdown_current_loop_resources()
    for _ in range(100):
        if (await live.list_sandboxes(metadata=OWNED)).total_items == 0:
            break
        await asyncio.sleep(0.1)
    assert (await live.list_sandboxes(metadata=OWNED)).total_items == 0


async def test_a_main_process_that_ends_is_not_running(
    live: SandboxBridgeProvider, specs: Specs
) -> None:
    """While it is made: a failed create. Just after: gone for whoever connects."""
    handle, refused = None, None
    try:
        handle = await live.create_sandbox(specs(entrypoint=("false",)))
    except APIError as error:
        refused = error
    if handle is None:
        assert refused is not None
        assert refused.status_code == 502
        assert (await live.list_sandboxes(metadata=OWNED)).total_items == 0
        return
    for _ in range(100):
        if (await live.probe(handle.sandbox_id)).sandbox_state == "failed":
            break
        await asyncio.sleep(0.05)
    with pytest.raises(APIError, match="SANDBOX_GONE.*failed"):
        await live.connect(handle.sandbox_id)


async def test_what_this_upstream_lacks_is_refused(
    live: SandboxBridgeProvider, specs: Specs
) -> None:
    with pytest.raises(APIError) as caught:
        await live.create_sandbox(specs(network_policy=SandboxNetworkPolicy("limited")))
    # The real server has policies, and no image of the sidecar that enforces them here.
    running = "OPENSANDBOX_URL" in os.environ
    assert caught.value.status_code in ((502,) if running else (400, 501))
    assert (await live.list_sandboxes(metadata=OWNED)).total_items == 0
    handle = await live.create_sandbox(specs())
    posture = await live.read_security_posture(handle.sandbox_id)
    assert not posture.available
    capability = await live.read_isolation_capability(handle.sandbox_id)
    assert not capability.available


async def test_a_cut_upload_leaves_the_old_file(live: SandboxBridgeProvider, specs: Specs) -> None:
    handle = await live.create_sandbox(specs())
    await handle.files.write_file("/tmp/f", b"old", mode=0o600)  # noqa: S108

    async def broken() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100_000
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await handle.files.write_file("/tmp/f", broken(), mode=0o600)  # noqa: S108
    await asyncio.sleep(0.3)
    assert await handle.files.read_bytes("/tmp/f") == b"old"  # noqa: S108
    listed = await handle.files.list_directory("/tmp")  # noqa: S108
    assert [entry.path for entry in listed if entry.entry_type == "file"] == ["/tmp/f"]  # noqa: S108


async def test_a_large_file_there_and_back(live: SandboxBridgeProvider, specs: Specs) -> None:
    handle = await live.create_sandbox(specs())
    block = hashlib.sha256(b"seed").digest() * 32768  # 1 MiB

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(24):
            yield block

    await handle.files.write_file("/tmp/large", pieces(), mode=0o600)  # noqa: S108
    ran = await handle.commands.run("sha256sum < /tmp/large")
    wanted = hashlib.sha256(block * 24).hexdigest()
    assert ran.stdout.split()[0] == wanted
    digest = hashlib.sha256()
    async for piece in await handle.files.read_bytes_stream("/tmp/large"):  # noqa: S108
        digest.update(piece)
    assert digest.hexdigest() == wanted


async def test_output_that_python_can_follow(real: RealBridge, live: Any, specs: Specs) -> None:
    """10,000 lines arrive in batches, not one message each."""
    handle = await live.create_sandbox(specs())
    async with BridgeClient(Options(real.place)) as client:
        spec = command("for i in $(seq 10000); do echo line $i; done")
        messages, lines = 0, 0
        async for event in client.execs.execute(handle.sandbox_id, spec):
            messages += 1
            lines += sum(o.data.count(b"\n") for o in event.output_batch.outputs)
    assert lines == 10_000
    assert messages < 2_000


async def test_how_commands_end(live: SandboxBridgeProvider, specs: Specs) -> None:
    """What the contract's own clauses leave open."""
    run = (await live.create_sandbox(specs())).commands.run
    for line, code in (
        ("kill -KILL $$", 137),
        ("kill -SEGV $$", 139),
        ("kill -TERM $$", 143),
        ("exit 300", 44),
        ("(setsid sleep 63 &)", 0),
        ("nohup sleep 63 >/dev/null 2>&1 &", 0),
    ):
        ran = await run(f"echo o; {line}", timeout=20)
        assert (ran.exit_code, ran.stdout, ran.stderr) == (code, "o\n", ""), line
    for line, out in (("read x; echo done", "done\n"), ("wc -c", "0\n")):
        assert (await run(line, timeout=20)).stdout == out


async def test_a_token_is_demanded_and_given(
    opensandbox: Any, make_provider: Providers, tmp_path: Any
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"*:{hashlib.sha256(b'CANARY-secret-token').hexdigest()}\n")
    with RealBridge(opensandbox.place, f"--auth_tokens_file={tokens}") as bridge:
        refused = make_provider(ADDRESS=bridge.place)
        with pytest.raises(APIError) as caught:
            await refused.list_sandboxes()
        assert caught.value.cause_code == "CALLER_UNAUTHENTICATED"
        assert not caught.value.retryable
        token = tmp_path / "token"
        token.write_text("CANARY-secret-token\n")
        assert (
            await make_provider(ADDRESS=bridge.place, TOKEN_FILE=str(token)).list_sandboxes()
        ).page == 1
        assert "CANARY" not in bridge.log
