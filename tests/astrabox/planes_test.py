# SPDX-License-Identifier: Apache-2.0
"""What the data planes raise, and what the conformance suite cannot see from outside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from astrabox.common.utils.errors import APIError
from astrabox.seams import sandbox_data
from astrabox.seams.sandbox import SandboxCreateSpec
from astrabox_sandbox_bridge.client import v1
from astrabox_sandbox_bridge.failures import TABLE, Plane
from astrabox_sandbox_bridge.handle import SandboxBridgeHandle
from astrabox_sandbox_bridge.provider import SandboxBridgeProvider

from conftest import Providers
from fake_bridge import FakeBridge, Upstream
from fake_bridge import execs as fake_execs

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def handle(
    provider: SandboxBridgeProvider, make_spec: Callable[..., SandboxCreateSpec]
) -> SandboxBridgeHandle:
    return await provider.create_sandbox(make_spec())


def _expected(reason: str) -> type[Exception]:
    plane = TABLE[reason].plane
    if plane is Plane.API_ERROR:
        return APIError
    found = getattr(sandbox_data, plane.value, None)
    return found if found is not None else APIError


@pytest.mark.parametrize("reason", sorted(set(TABLE) - {"UNSPECIFIED", "BRIDGE_UNREACHABLE"}))
async def test_each_reason_on_each_plane(
    bridge: FakeBridge, handle: SandboxBridgeHandle, reason: str
) -> None:
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("Stat", lambda: handle.files.get_file_info(["/x"])),
        ("WriteSmallFile", lambda: handle.files.write_file("/x", b"", mode=0o600)),
        ("ReadFile", lambda: handle.files.read_bytes("/x")),
        ("Execute", lambda: handle.commands.run("true")),
        ("GetProcess", lambda: handle.processes.status("p")),
        ("AttachProcess", lambda: handle.processes.attach("p")),
    ]
    for method, call in calls:
        bridge.fail(method, reason, "words of the bridge", times=3)
        with pytest.raises(_expected(reason)) as caught:
            await call()
        assert "words of the bridge" in str(caught.value)
        while bridge.take_fault(method):
            pass


async def test_no_bridge_is_unreachable(
    bridge: FakeBridge, make_provider: Providers, make_spec: Callable[..., SandboxCreateSpec]
) -> None:
    handle = await make_provider(CONNECT_TIMEOUT_SECONDS="0.3").create_sandbox(make_spec())
    await bridge.stop()
    with pytest.raises(sandbox_data.SandboxUnreachable):
        await handle.files.read_bytes("/x")
    with pytest.raises(sandbox_data.SandboxUnreachable):
        await handle.commands.run("true")


async def test_a_stream_tells_when_it_is_awaited(handle: SandboxBridgeHandle) -> None:
    with pytest.raises(sandbox_data.SandboxPathNotFound) as caught:
        await handle.files.read_bytes_stream("/no/such/file")
    assert getattr(caught.value, "path", None) == "/no/such/file"
    # The other spelling that the contract may have.
    stream: Any = handle.files.read_bytes_stream("/etc/hostname")
    assert b"".join([piece async for piece in stream])


async def test_text_that_is_none_is_rejected(handle: SandboxBridgeHandle) -> None:
    with pytest.raises(sandbox_data.SandboxPathRejected):
        await handle.files.read_bytes("/lone surrogate \udcff")
    with pytest.raises(sandbox_data.SandboxPathRejected, match="the request is not text"):
        await handle.commands.run("echo lone surrogate \udcff")


async def test_writes_are_atomic_and_carry_their_rights(
    bridge: FakeBridge, handle: SandboxBridgeHandle, tmp_path: Any
) -> None:
    await handle.files.write_file(f"{tmp_path}/f", b"x", mode=0o640, owner="games", group="games")
    (request,) = bridge.asked("WriteSmallFile")
    options = request.options
    assert (options.mode, options.owner, options.group) == (0o640, "games", "games")
    assert not options.HasField("atomic")  # absent is true
    assert options.no_follow
    assert not bridge.asked("SetAttributes")


async def test_links_are_neither_written_through_nor_changed(
    handle: SandboxBridgeHandle, tmp_path: Any
) -> None:
    (tmp_path / "victim").write_bytes(b"old")
    (tmp_path / "victim").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(sandbox_data.SandboxPathRejected):
        await handle.files.write_file(f"{tmp_path}/link", b"x", mode=0o600)
    with pytest.raises(sandbox_data.SandboxPathRejected):
        await handle.files.set_permissions([{"path": f"{tmp_path}/link", "mode": 0o777}])
    assert (tmp_path / "victim").read_bytes() == b"old"
    assert (tmp_path / "victim").stat().st_mode & 0o777 == 0o640


async def test_every_call_is_fenced(bridge: FakeBridge, handle: SandboxBridgeHandle) -> None:
    await handle.commands.run("true")
    await handle.get_endpoint(8000)
    for method in ("Execute", "GetEndpoint"):
        assert bridge.asked(method)[0].expected_incarnation


async def test_commands_say_root_empty_stdin_and_a_deadline(
    bridge: FakeBridge, handle: SandboxBridgeHandle
) -> None:
    await handle.commands.run("true", timeout=7.5)
    await handle.commands.run("true", timeout=None)
    first, second = (request.spec for request in bridge.asked("Execute"))
    assert first.user.ids.uid == 0
    assert first.user.HasField("ids")
    assert first.stdin == b""
    assert (first.timeout.seconds, first.timeout.nanos) == (7, 500_000_000)
    assert not second.HasField("timeout")
    with pytest.raises(TimeoutError):
        await handle.commands.run("true", timeout=0)
    for endless in (float("nan"), float("inf")):
        with pytest.raises(_expected("INVALID_ARGUMENT"), match="timeout"):
            await handle.commands.run("true", timeout=endless)


def _script(monkeypatch: pytest.MonkeyPatch, *events: v1.ExecEvent, hang: bool = False) -> None:
    async def scripted(spec: v1.ExecSpec) -> AsyncIterator[v1.ExecEvent]:
        for event in events:
            yield event
        if hang:
            await asyncio.sleep(60)

    monkeypatch.setattr(fake_execs, "run_locally", scripted)


def _exited(**outcome: Any) -> tuple[v1.ExecEvent, ...]:
    return (
        v1.ExecEvent(started=v1.ExecEvent.Started(exec_id="e")),
        v1.ExecEvent(exited=v1.ExecEvent.Exited(outcome=v1.Outcome(**outcome))),
        v1.ExecEvent(drained=v1.ExecEvent.Drained()),
    )


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        ({"exit_code": 300 % 256}, 44),
        ({"signal": v1.Outcome.Signalled(number=15)}, 143),
        ({"signal": v1.Outcome.Signalled()}, 128),
        ({"cancelled": v1.Outcome.Cancelled(exit_code=5)}, 5),
        ({"cancelled": v1.Outcome.Cancelled(signal=v1.Outcome.Signalled(number=9))}, 137),
    ],
)
async def test_ends_that_are_data(
    handle: SandboxBridgeHandle,
    monkeypatch: pytest.MonkeyPatch,
    outcome: dict[str, Any],
    code: int,
) -> None:
    _script(monkeypatch, *_exited(**outcome))
    assert (await handle.commands.run("x")).exit_code == code


async def test_an_unknown_end_is_never_made_up(
    handle: SandboxBridgeHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    _script(monkeypatch, *_exited(lost=v1.Outcome.Lost(reason="the stream ended")))
    with pytest.raises(sandbox_data.SandboxUnreachable, match="the stream ended"):
        await handle.commands.run("x")
    _script(monkeypatch, *_exited())
    with pytest.raises(sandbox_data.SandboxUnreachable):
        await handle.commands.run("x")
    _script(monkeypatch, *_exited(exit_code=0)[:1])  # a stream that just ends
    with pytest.raises(sandbox_data.SandboxUnreachable):
        await handle.commands.run("x")


async def test_output_that_is_lost_is_an_error(
    handle: SandboxBridgeHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = _exited(exit_code=7)
    events[-1].drained.lossy = True
    _script(monkeypatch, *events)
    with pytest.raises(APIError, match="exit code 7, but some of its output was lost"):
        await handle.commands.run("x")


async def test_a_command_that_never_ran_is_an_error(
    handle: SandboxBridgeHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = v1.Outcome.SpawnFailed(kind=v1.Outcome.SpawnFailed.KIND_BAD_USER, message="no root")
    _script(monkeypatch, *_exited(spawn_failed=failed))
    with pytest.raises(sandbox_data.SandboxUnreachable, match="no root"):
        await handle.commands.run("x")


async def test_a_bridge_that_does_not_answer_does_not_hold_the_deadline(
    handle: SandboxBridgeHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("astrabox_sandbox_bridge.commands._GRACE", 0.2)
    _script(monkeypatch, *_exited(exit_code=0)[:1], hang=True)
    started = time.monotonic()
    with pytest.raises(TimeoutError, match="not confirmed"):
        await handle.commands.run("x", timeout=0.2)
    assert time.monotonic() - started < 5


async def test_cancelling_a_command_stops_it(handle: SandboxBridgeHandle, tmp_path: Any) -> None:
    mark = tmp_path / "end"
    running = asyncio.create_task(handle.commands.run(f"sleep 1; touch {mark}"))
    await asyncio.sleep(0.3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(1.3)
    assert not mark.exists()


async def test_too_much_output_is_an_error(
    make_provider: Providers, make_spec: Callable[..., SandboxCreateSpec]
) -> None:
    handle = await make_provider(MAX_OUTPUT_BYTES="1000").create_sandbox(make_spec())
    with pytest.raises(APIError, match="more than 1000 bytes"):
        await handle.commands.run("head -c 2000 /dev/zero")


async def test_bytes_that_are_no_text_are_kept_apart(handle: SandboxBridgeHandle) -> None:
    ran = await handle.commands.run("printf '\\377\\376 ok \\200\\n'; exit 3")
    assert (ran.exit_code, ran.stdout) == (3, "\ufffd\ufffd ok \ufffd\n")


async def test_characters_cut_between_two_parts_are_whole(
    handle: SandboxBridgeHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, *end = _exited(exit_code=0)
    parts = []
    for stream in (v1.OUTPUT_STREAM_STDOUT, v1.OUTPUT_STREAM_STDERR):
        for offset, byte in enumerate("naive \U0001f600 \u65e5".encode()):
            output = v1.ExecEvent.Output(stream=stream, data=bytes([byte]), offset=offset)
            parts.append(v1.ExecEvent(output_batch=v1.ExecEvent.OutputBatch(outputs=[output])))
    _script(monkeypatch, started, *parts, *end)
    ran = await handle.commands.run("x")
    assert (ran.stdout, ran.stderr) == ("naive \U0001f600 \u65e5",) * 2


async def test_last_lines_blank_lines_and_zero_bytes_are_kept(handle: SandboxBridgeHandle) -> None:
    for text in ("abc", "a\nb", "", "a\n\nb\n\n\nc\n", "\n\n", "a\0b\0"):
        written = text.replace("\n", "\\n").replace("\0", "\\0")
        assert (await handle.commands.run(f"printf '{written}'")).stdout == text


async def test_a_shell_gets_a_terminal_and_a_program_pipes(
    bridge: FakeBridge, handle: SandboxBridgeHandle
) -> None:
    processes: Any = handle.processes
    await processes.create(command="cat")
    await processes.create(command=None)
    await processes.create(command="top", terminal=True)
    terminals = [r.spec.HasField("terminal") for r in bridge.asked("StartProcess")]
    assert terminals == [False, True, True]


async def test_an_attachment_tells_the_exit_code(handle: SandboxBridgeHandle) -> None:
    processes: Any = handle.processes
    name = await processes.create(command="echo x; exit 7")
    assert not (await processes.status(name)).running  # it starts with its first holder
    held = await processes.attach(name)
    assert held.exit_code is None
    assert [piece async for piece in held.output()] == [(0, b"x\n")]
    assert held.exit_code == 7
    await held.close()


async def test_a_displaced_holder_gets_the_same_error_everywhere(
    handle: SandboxBridgeHandle,
) -> None:
    name = await handle.processes.create(command="cat")
    first = await handle.processes.attach(name)
    second = await handle.processes.attach(name, takeover=True)
    with pytest.raises(_expected("ALREADY_ATTACHED")):
        await anext(aiter(first.output()))
    with pytest.raises(_expected("ALREADY_ATTACHED")):
        await first.write(b"x")
    await first.close()
    await second.close()
    with pytest.raises(_expected("CANCELLED")):
        await second.write(b"x")


async def test_the_exit_code_of_who_was_signalled_to_death(handle: SandboxBridgeHandle) -> None:
    processes: Any = handle.processes
    held = await processes.attach(await processes.create(command="echo up; exec sleep 700"))
    output = held.output()
    assert await anext(output) == (0, b"up\n")
    await held.signal("KILL")
    assert [piece async for piece in output] == []
    assert held.exit_code == 137
    await held.close()


async def test_a_cut_attachment_is_no_exit(
    bridge: FakeBridge, handle: SandboxBridgeHandle, upstream: Upstream
) -> None:
    processes: Any = handle.processes
    name = await processes.create(command="echo ready; cat")
    held = await processes.attach(name)
    output = held.output()
    assert await anext(output) == (0, b"ready\n")
    await bridge.stop()
    with pytest.raises(sandbox_data.SandboxUnreachable):
        await anext(output)
    assert held.exit_code is None
    with pytest.raises(sandbox_data.SandboxUnreachable):
        await held.write(b"x")
    assert upstream.residents[name].outcome is None  # it runs on


async def test_a_gap_tells_the_first_byte_kept(
    bridge: FakeBridge, handle: SandboxBridgeHandle
) -> None:
    bridge.fail("AttachProcess", "REPLAY_GAP", first_available="4096")
    processes: Any = handle.processes
    with pytest.raises(sandbox_data.SandboxProcessReplayGap) as caught:
        await processes.attach("p", since=0)
    assert caught.value.first_available == 4096  # type: ignore[attr-defined]
