# SPDX-License-Identifier: Apache-2.0
"""A bridge that dies takes nothing along: it has no state of its own (DEP-11)."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import SECONDS, Bridge, OpenSandbox, eventually, sbx


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    opensandbox = OpenSandbox(tmp_path_factory.mktemp("upstream") / "log")
    yield opensandbox.url
    opensandbox.stop()


def listed(address: str, label: str) -> list[str]:
    """Ids of the sandboxes with a label."""
    shown = sbx(address, "ls", "--json", "-l", label)
    assert shown.returncode == 0, shown.stderr.decode()
    rows = [json.loads(line) for line in shown.stdout.decode().splitlines()]
    flat = [each for row in rows for each in (row if isinstance(row, list)
                                              else row.get("sandboxes", [row]))]
    return [each["sandbox_id"] for each in flat]


@pytest.mark.parametrize("milliseconds", [0, 2, 5, 10, 20, 50, 100, 200])
def test_a_create_is_interrupted_and_repeated(upstream: str, tmp_path: Path,
                                              milliseconds: int) -> None:
    """Never a second sandbox of one request id, whenever the first bridge died."""
    label, request = f"at=ms{milliseconds}", f"request-{milliseconds}"
    create = ("create", "--ttl=10m", "--label", label, "--request-id", request)
    first = Bridge(tmp_path / "first", upstream)
    with subprocess.Popen([os.environ["SBX_BINARY"], *create], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={"SANDBOX_BRIDGE_ADDRESS": first.address}) as caller:
        time.sleep(milliseconds / 1000)
        first.kill()
        made, _ = caller.communicate(timeout=SECONDS)

    second = Bridge(tmp_path / "second", upstream)
    try:
        again = sbx(second.address, *create)
        assert again.returncode == 0, again.stderr.decode()
        sandbox = again.stdout.decode().strip()
        if made:
            assert made.decode().strip() == sandbox
        assert listed(second.address, label) == [sandbox]
        assert sbx(second.address, "rm", sandbox).returncode == 0
        assert listed(second.address, label) == []
        assert second.stop() == 0
    finally:
        second.kill()


def test_the_next_bridge_knows_every_sandbox_at_once(upstream: str, tmp_path: Path) -> None:
    """Also one in which the first was running a command when it died."""
    first = Bridge(tmp_path / "first", upstream)
    made = sbx(first.address, "create", "--ttl=10m", "--label", "who=next")
    sandbox = made.stdout.decode().strip()
    with subprocess.Popen([os.environ["SBX_BINARY"], "exec", sandbox, "-c",
                           "echo up; sleep 58001"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={"SANDBOX_BRIDGE_ADDRESS": first.address}) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == b"up\n"
        first.kill()
        caller.communicate(timeout=SECONDS)
        assert caller.returncode != 0

    second = Bridge(tmp_path / "second", upstream)
    try:
        assert listed(second.address, "who=next") == [sandbox]
        ran = sbx(second.address, "exec", sandbox, "--", "echo", "still here")
        assert (ran.returncode, ran.stdout) == (0, b"still here\n")
        assert sbx(second.address, "rm", sandbox).returncode == 0
        left = ["pgrep", "-f", "[s]leep 58001"]
        eventually(lambda: subprocess.run(left, capture_output=True, check=False).returncode != 0,
                   "its processes are gone with the sandbox")
        assert second.stop() == 0
    finally:
        second.kill()
