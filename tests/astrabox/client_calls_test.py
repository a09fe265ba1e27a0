# SPDX-License-Identifier: Apache-2.0
"""The plain client: lists, commands, files, processes, times."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from astrabox_sandbox_bridge.client import (
    BRIDGE_UNREACHABLE,
    BridgeClient,
    Options,
    collect,
    command,
    duration,
    moment,
    timestamp,
    v1,
)

from conftest import bridge_failure as failure
from fake_bridge import FakeBridge, Upstream

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def box(client: BridgeClient) -> str:
    made = await client.sandboxes.create(v1.SandboxSpec(image="i"))
    return made.sandbox.sandbox_id


async def test_lists_page_by_page_without_doubles(
    bridge: FakeBridge, client: BridgeClient, upstream: Upstream
) -> None:
    for _ in range(7):
        upstream.create(v1.SandboxSpec(metadata={"of": "me"}))
    upstream.create(v1.SandboxSpec())
    found = [s.sandbox_id async for s in client.sandboxes.list(metadata={"of": "me"}, page_size=3)]
    assert found == [f"box-{i}" for i in range(7, 0, -1)]
    assert len(bridge.asked("ListSandboxes")) == 3


async def test_a_token_that_stands_still_ends_the_list(
    client: BridgeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def page(**_: Any) -> v1.ListSandboxesResponse:
        return v1.ListSandboxesResponse(
            sandboxes=[v1.Sandbox(sandbox_id="x")],
            next_page_token="same",  # noqa: S106
        )

    monkeypatch.setattr(client.sandboxes, "page", page)
    assert len([s async for s in client.sandboxes.list()]) == 1


async def test_commands_stream_and_collect(client: BridgeClient, box: str) -> None:
    ran = await client.execs.run(
        box, command(argv=["sh", "-c", 'cat; echo "$A" >&2; exit 3'], env={"A": "b c"}, stdin=b"in")
    )
    assert (ran.outcome.exit_code, ran.stdout, ran.stderr) == (3, b"in", b"b c\n")
    collected = await collect(client.execs.execute(box, command("seq 3; exit 4")), limit=100)
    assert (collected.outcome.exit_code, collected.stdout) == (4, b"1\n2\n3\n")


@pytest.mark.parametrize("told", [True, False, None])
async def test_what_may_still_print_is_true_false_or_not_known(told: bool | None) -> None:
    async def events() -> AsyncIterator[v1.ExecEvent]:
        yield v1.ExecEvent(exited=v1.ExecEvent.Exited(outcome=v1.Outcome(exit_code=0)))
        yield v1.ExecEvent(drained=v1.ExecEvent.Drained(still_open=told))

    assert (await collect(events(), limit=9)).still_open is told


async def test_too_much_output_is_an_error_and_stops_the_command(
    client: BridgeClient, box: str, tmp_path: Path
) -> None:
    mark = tmp_path / "end"
    line = f"head -c 3000000 /dev/zero; sleep 1; touch {mark}"
    error = await failure(collect(client.execs.execute(box, command(line)), limit=1_000_000))
    assert error.reason == "OUTPUT_TRUNCATED"
    await asyncio.sleep(1.5)
    assert not mark.exists()


async def test_leaving_a_stream_cancels_it(client: BridgeClient, box: str, tmp_path: Path) -> None:
    mark = tmp_path / "end"
    events = client.execs.execute(box, command(f"echo x; sleep 1; touch {mark}"))
    async with contextlib.aclosing(events):  # type: ignore[type-var]
        async for event in events:
            if event.HasField("output_batch"):
                break
    await asyncio.sleep(1.5)
    assert not mark.exists()


async def test_a_silent_stream_is_given_up(
    bridge: FakeBridge, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keepalives are promised; the fake bridge sends none."""
    async with BridgeClient(Options(bridge.address, silence_timeout=0.3)) as client:
        upstream.create(v1.SandboxSpec())
        error = await failure(collect(client.execs.execute("box-1", command("sleep 30")), limit=9))
        assert error.reason == BRIDGE_UNREACHABLE
        assert "silent" in error.message


async def test_a_command_is_either_shell_or_argv() -> None:
    for wrong in ({}, {"shell": "x", "argv": ["y"]}):
        with pytest.raises(ValueError, match="either"):
            command(**wrong)  # type: ignore[arg-type]
    assert not command("").argv.args
    assert command("", user=0).user.ids.uid == 0
    assert command("", user=(1, 2)).user.ids.gid == 2
    assert not command("", user=1).user.ids.HasField("gid")
    assert command("", user="agent").user.name == "agent"


CONTENT = bytes(i % 251 for i in range(2_000_000))


async def _pieces() -> AsyncIterator[bytes]:
    for start in range(0, len(CONTENT), 300_001):
        yield CONTENT[start : start + 300_001]


@pytest.mark.parametrize(
    ("content", "wanted"),
    ids=lambda value: "" if isinstance(value, bytes) else getattr(value, "__name__", "_"),
    argvalues=[
        (lambda: b"", b""),
        (lambda: b"small", b"small"),
        (lambda: "☃", "☃".encode()),
        (lambda: bytearray(b"ab"), b"ab"),
        (lambda: memoryview(b"abcd")[1:3], b"bc"),
        (lambda: CONTENT, CONTENT),
        (lambda: io.BytesIO(CONTENT), CONTENT),
        (lambda: io.BytesIO(b""), b""),
        (lambda: [CONTENT[:1], b"", CONTENT[1:]], CONTENT),
        (_pieces, CONTENT),
    ],
)
async def test_content_of_every_kind(
    bridge: FakeBridge, client: BridgeClient, box: str, tmp_path: Path, content: Any, wanted: bytes
) -> None:
    path = f"{tmp_path}/f"
    answer = await client.files.write(box, v1.WriteOptions(path=path, mode=0o600), content())
    assert answer.size_bytes == len(wanted)
    assert await client.files.read_bytes(box, path) == wanted
    assert await client.files.read_bytes(box, path, offset=3, length=4) == wanted[3:7]
    for _, request, _ in bridge.calls:
        if hasattr(request, "ByteSize"):
            assert request.ByteSize() <= 1 << 20


async def test_a_failing_source_writes_nothing(
    client: BridgeClient, box: str, tmp_path: Path
) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield CONTENT
        raise OSError("the disk is gone")

    path = tmp_path / "f"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="disk is gone"):
        await client.files.write(box, v1.WriteOptions(path=str(path)), broken())
    await asyncio.sleep(0.2)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


async def test_a_refused_upload_tells_the_reason(
    bridge: FakeBridge, client: BridgeClient, box: str
) -> None:
    """The bridge ends the call while the client still sends."""
    bridge.fail("WriteFile", "NO_SPACE", "the disk is full")
    error = await failure(client.files.write(box, v1.WriteOptions(path="/x"), CONTENT * 20))
    assert error.reason == "NO_SPACE"


async def test_an_upload_that_nobody_takes_fails_like_other_calls(
    client: BridgeClient, box: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("astrabox_sandbox_bridge.client.files._STALL", 0.0)
    options = v1.WriteOptions(path=str(tmp_path / "f"))
    error = await failure(client.files.write(box, options, CONTENT * 20))
    assert error.reason == BRIDGE_UNREACHABLE
    assert not (tmp_path / "f").exists()


async def test_attachments(client: BridgeClient, box: str) -> None:
    started = await client.processes.start(box, "read line; echo got $line; cat >/dev/null; exit 3")
    async with await client.processes.attach(box, started.process_id, offset=0) as held:
        await held.write(b"hello\n")
        assert await held.taken() == 6
        await held.write_eof()
        kinds = [event.WhichOneof("event") async for event in held]
    assert kinds == ["output", "exited", "drained"]
    assert (await failure(held.write(b"x"))).reason == "PROCESS_NOT_FOUND"
    await held.close()
    assert (await client.processes.get(box, started.process_id)).outcome.exit_code == 3
    assert await client.processes.delete(box, started.process_id)
    assert not await client.processes.delete(box, started.process_id)


async def test_who_lost_the_process_is_not_told_that_it_ended(
    client: BridgeClient, box: str
) -> None:
    started = await client.processes.start(box, "cat")
    first = await client.processes.attach(box, started.process_id, offset=0)
    second = await client.processes.attach(box, started.process_id, takeover=True)
    assert [event.WhichOneof("event") async for event in first] == ["displaced"]
    sends = (first.write(b"x"), first.write_eof(), first.resize(1, 2), first.signal("TERM"))
    for send in sends:
        assert (await failure(send)).reason == "ALREADY_ATTACHED"
    await first.close()
    assert (await failure(first.write(b"x"))).reason == "ALREADY_ATTACHED"
    await second.close()
    assert (await failure(second.write(b"x"))).reason == "CANCELLED"
    info = await client.processes.get(box, started.process_id)
    assert info.state == v1.ProcessInfo.STATE_RUNNING


@pytest.mark.parametrize(
    ("displaced", "reason"), [(True, "ALREADY_ATTACHED"), (False, "PROCESS_NOT_FOUND")]
)
async def test_what_is_sent_between_the_last_event_and_the_end_is_refused(
    client: BridgeClient, box: str, upstream: Upstream, displaced: bool, reason: str
) -> None:
    upstream.attachments_may_end.clear()
    started = await client.processes.start(box, "cat" if displaced else "true")
    held = await client.processes.attach(box, started.process_id, offset=0)
    if displaced:
        await client.processes.attach(box, started.process_id, takeover=True)
    assert (await anext(held)).WhichOneof("event") == ("displaced" if displaced else "exited")
    sends = (held.write(b"x"), held.write_eof(), held.resize(1, 2), held.signal("TERM"))
    for send in sends:
        assert (await failure(send)).reason == reason
    await held.close()


async def test_refused_attachments_tell_the_reason(
    bridge: FakeBridge, client: BridgeClient, box: str
) -> None:
    assert (await failure(client.processes.attach(box, "p"))).reason == "PROCESS_NOT_FOUND"
    bridge.fail("AttachProcess", "REPLAY_GAP", first_available="77")
    error = await failure(client.processes.attach(box, "p", offset=0))
    assert error.metadata["first_available"] == "77"


async def test_much_input_is_taken_in_order(client: BridgeClient, box: str) -> None:
    """2 MiB in one call and 500 small ones from four tasks, against a slow reader."""
    started = await client.processes.start(box, "sleep 0.3; exec sha256sum")
    async with await client.processes.attach(box, started.process_id, offset=0) as held:
        whole = bytearray(CONTENT)
        await held.write(CONTENT)
        for i in range(500):
            piece = f"piece {i};".encode()
            whole += piece
            await held.write(piece)
        assert await held.taken() == len(whole)
        await held.write_eof()
        output = b"".join([event.output.data async for event in held])
    assert output.decode().split()[0] == hashlib.sha256(whole).hexdigest()


async def test_unread_output_stops_the_process_not_the_client(
    client: BridgeClient, box: str
) -> None:
    started = await client.processes.start(box, "head -c 30000000 /dev/zero; echo end")
    async with await client.processes.attach(box, started.process_id, offset=0) as held:
        await asyncio.sleep(0.5)
        assert held._backlog < 6 << 20
    # Closing with a full backlog does not hang.


# --- times ----------------------------------------------------------------------------------------


async def test_times_keep_their_instant() -> None:
    east = timezone(timedelta(hours=8))
    for when in (
        datetime(2026, 9, 1, 8, tzinfo=east),
        datetime(2026, 9, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(9999, 12, 31, tzinfo=UTC),
        datetime(2026, 9, 1, 0, 0, 0, 123_456, tzinfo=UTC),
    ):
        assert moment(timestamp(when)) == when
    assert moment(timestamp(datetime(2026, 9, 1))) == datetime(2026, 9, 1, tzinfo=UTC)
    assert (duration(1.5).seconds, duration(1.5).nanos) == (1, 500_000_000)
    assert duration(timedelta(milliseconds=20)).nanos == 20_000_000
    assert duration(0).ByteSize() == 0


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), float("-inf"), 1e300])
async def test_what_is_no_length_of_time_is_named(
    bridge: FakeBridge, client: BridgeClient, seconds: float
) -> None:
    async def attempt(call: Callable[[], Any]) -> None:
        await call()

    spec = v1.SandboxSpec(image="i")
    calls: dict[str, list[Callable[[], Any]]] = {
        "timeout": [
            lambda: command("true", timeout=seconds),
            lambda: client.isolation.run("s", "i", "true", timeout=seconds),
            lambda: client.bridge.capabilities(timeout=seconds),
        ],
        "ready_timeout": [lambda: client.sandboxes.create(spec, ready_timeout=seconds)],
        "wait_for_proof": [lambda: client.sandboxes.delete("s", wait_for_proof=seconds)],
        "ttl": [lambda: client.sandboxes.set_expiration("s", ttl=seconds)],
        "wait": [
            lambda: client.sandboxes.pause("s", wait=seconds),
            lambda: client.sandboxes.resume("s", wait=seconds),
            lambda: client.sandboxes.create_snapshot("s", "n", wait=seconds),
        ],
    }
    before = len(bridge.calls)
    for name, several in calls.items():
        for call in several:
            error = await failure(attempt(call))
            assert (error.reason, error.field) == ("INVALID_ARGUMENT", name)
    assert len(bridge.calls) == before
