# SPDX-License-Identifier: Apache-2.0
"""The same script through `ProviderSandbox` and through gRPC, in the same sandbox: the same bytes,
the same exit codes, the same failures in the words that docs/errors.md gives to each."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from astrabox_sandbox_bridge.client import (
    BridgeClient,
    BridgeError,
    Options,
    collect,
    command,
    v1,
)
from conftest import settings
from error_table import answers
from sdk_host import Sdk

pytestmark = pytest.mark.asyncio


@dataclass
class Both:
    """One sandbox, held by both."""

    id: str
    sdk: Any  # ProviderSandbox
    bridge: BridgeClient


@pytest_asyncio.fixture
async def both(
    host: Sdk, config: dict[str, Any], bridge: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Both]:
    for name, value in {**host.environment(), **settings(config)}.items():
        monkeypatch.setenv(name, value)
    from agent_sandbox import ProviderSandbox  # finds its store when it is imported

    sandbox = await ProviderSandbox.create(provider="opensandbox", template="base", timeout=300)
    try:
        async with BridgeClient(Options(bridge)) as client:
            yield Both(sandbox.id, sandbox, client)
    finally:
        await sandbox.kill()


def exit_code(outcome: v1.Outcome) -> int:
    """As docs/epp-plugin.md says it."""
    kind = outcome.WhichOneof("kind")
    if kind == "exit_code":
        return outcome.exit_code
    if kind == "signal":
        return 128 + outcome.signal.number
    if kind == "spawn_failed":
        return 127 if outcome.spawn_failed.kind == v1.Outcome.SpawnFailed.KIND_NOT_FOUND else 126
    return {"timed_out": 124, "lost": 125}[kind]


COMMANDS: list[tuple[str, dict[str, Any]]] = [
    ("printf 'out'; printf 'err' >&2; exit 3", {}),
    ("printf 'a\\r\\nb\\tc\\0d'", {}),
    ("printf '日本語 😀\\n'", {}),
    ("printf '\\377\\376 ok \\200\\n'", {}),
    ("head -c 300000 /dev/zero | tr '\\0' x", {}),
    ('printf \'%s|%s\' "$A" "$B"', {"env": {"A": "1 \"'$x", "B": "line\nend"}}),
    ("pwd; id -u", {"cwd": "/tmp", "user": "nobody"}),
    ("cat; echo end", {}),
    ("kill -TERM $$", {}),
    ("sleep 60", {"timeout": 1}),
    ("exit 255", {}),
    ("", {}),
]


@pytest.mark.parametrize("text,options", COMMANDS, ids=[str(n) for n in range(len(COMMANDS))])
async def test_commands(both: Both, text: str, options: dict[str, Any]) -> None:
    ours = await both.sdk.commands.run(text, shell=True, **options)
    spec = command(
        argv=["sh", "-c", text],
        env=options.get("env"),
        cwd=options.get("cwd", ""),
        user=options.get("user"),
        timeout=options.get("timeout", 60),
    )
    theirs = await collect(both.bridge.execs.execute(both.id, spec), limit=1 << 22)
    assert ours.stdout == theirs.stdout.decode("utf-8", "replace")
    assert ours.stderr == theirs.stderr.decode("utf-8", "replace")
    assert ours.exit_code == exit_code(theirs.outcome)


async def test_what_never_ran(both: Both) -> None:
    """An outcome for gRPC; for a shell's user the code that shells have for it, and why."""
    for argv, options in ((["no-such-program"], {}), (["true"], {"cwd": "/none"})):
        ours = await both.sdk.commands.run(argv[0], **options)
        spec = command(argv=argv, **options)
        theirs = await collect(both.bridge.execs.execute(both.id, spec), limit=1 << 20)
        assert theirs.outcome.WhichOneof("kind") == "spawn_failed"
        assert ours.exit_code == exit_code(theirs.outcome)
        assert ours.stdout == "" and ours.stderr


CONTENTS = [
    b"",
    b"x",
    bytes(range(256)) * 5,
    "日本語\r\n".encode(),
    b"\xef\xbb\xbfbom",
    os.urandom(3_000_001),
]


@pytest.mark.parametrize("content", CONTENTS, ids=[str(len(c)) for c in CONTENTS])
async def test_files_written_by_one_are_read_by_the_other(both: Both, content: bytes) -> None:
    await both.sdk.files.write("/tmp/d/ours", content)
    assert await both.bridge.files.read_bytes(both.id, "/tmp/d/ours") == content
    await both.bridge.files.write(both.id, v1.WriteOptions(path="/tmp/d/theirs"), content)
    assert await both.sdk.files.read_bytes("/tmp/d/theirs") == content
    ours = {(e.name, e.path, e.size) for e in await both.sdk.files.list("/tmp/d")}
    theirs = {
        (Path(e.path).name, e.path, e.size_bytes)
        async for e in both.bridge.files.list(both.id, "/tmp/d")
    }
    assert ours == theirs and len(ours) == 2
    one = await both.sdk.files.get_info("/tmp/d/ours")
    other = await both.bridge.files.stat(both.id, "/tmp/d/ours")
    assert one.size == other.size_bytes == len(content)
    assert one.modified is not None
    milliseconds = other.modified_at.seconds * 1000 + other.modified_at.nanos // 1_000_000
    assert round(one.modified.timestamp() * 1000) == milliseconds


Failing = Callable[[Both], Awaitable[object]]


async def all_of(entries: AsyncIterator[Any]) -> None:
    async for _ in entries:
        pass


async def execute(both: Both, **spec: Any) -> None:
    await collect(both.bridge.execs.execute(both.id, command(**spec)), limit=1 << 20)


FAILURES: dict[str, tuple[Failing, Failing]] = {
    "read what is not there": (
        lambda b: b.sdk.files.read_bytes("/none"),
        lambda b: b.bridge.files.read_bytes(b.id, "/none"),
    ),
    "read a directory": (
        lambda b: b.sdk.files.read_bytes("/tmp"),
        lambda b: b.bridge.files.read_bytes(b.id, "/tmp"),
    ),
    "list a file": (
        lambda b: b.sdk.files.list("/etc/passwd"),
        lambda b: all_of(b.bridge.files.list(b.id, "/etc/passwd")),
    ),
    "list what is not there": (
        lambda b: b.sdk.files.list("/none"),
        lambda b: all_of(b.bridge.files.list(b.id, "/none")),
    ),
    "describe what is not there": (
        lambda b: b.sdk.files.get_info("/none"),
        lambda b: b.bridge.files.stat(b.id, "/none"),
    ),
    "remove what is not there": (
        lambda b: b.sdk.files.remove("/none"),
        lambda b: b.bridge.files.remove(b.id, "/none"),
    ),
    "move what is not there": (
        lambda b: b.sdk.files.move("/none", "/tmp/x"),
        lambda b: b.bridge.files.move(b.id, "/none", "/tmp/x"),
    ),
    "write over a directory": (
        lambda b: b.sdk.files.write("/tmp", "x"),
        lambda b: b.bridge.files.write(b.id, v1.WriteOptions(path="/tmp"), b"x"),
    ),
    "a relative path": (
        lambda b: b.sdk.files.read_bytes("relative"),
        lambda b: b.bridge.files.read_bytes(b.id, "relative"),
    ),
    "a user that is not there": (
        lambda b: b.sdk.commands.run("true", user="nobody-here"),
        lambda b: execute(b, argv=["true"], user="nobody-here"),
    ),
    "a process that is not there": (
        lambda b: b.sdk.commands.send_signal(2_000_000_000),
        lambda b: b.bridge.processes.signal(b.id, 2_000_000_000, 15),
    ),
    "another sandbox": (
        lambda b: type(b.sdk).connect("does-not-exist-0000", provider="opensandbox"),
        lambda b: b.bridge.sandboxes.get("does-not-exist-0000"),
    ),
}


@pytest.mark.parametrize("what", FAILURES)
async def test_failures(both: Both, what: str) -> None:
    ours, theirs = FAILURES[what]
    with pytest.raises(BridgeError) as bridge_error:
        await theirs(both)
    with pytest.raises(Exception) as sdk_error:
        await ours(both)
    word = getattr(sdk_error.value, "code", None)
    assert word == answers()[bridge_error.value.reason].shown, (
        sdk_error.value,
        bridge_error.value,
    )
