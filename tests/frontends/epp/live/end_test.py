# SPDX-License-Identifier: Apache-2.0
"""How the plugin's process ends, and what it sees to before it does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import API_KEY, NOWHERE, Spawn, program


def test_shutdown_is_quick(spawn: Spawn) -> None:
    plugin = spawn(NOWHERE)
    plugin.error("sandbox.list", {"limit": 1})
    ending = plugin.close()
    assert ending.answered_after is not None and ending.answered_after < 0.5
    assert ending.ended_after < 1 and ending.signal_sent is None and ending.returncode == 0


def test_end_of_input_ends_it(spawn: Spawn) -> None:
    plugin = spawn(NOWHERE)
    plugin.close_input()
    assert plugin.wait_end(3) == 0


def test_end_of_input_ends_it_before_initialize(spawn: Spawn) -> None:
    plugin = spawn()
    plugin.close_input()
    assert plugin.wait_end(3) == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("delay", [0.0, 0.01, 0.05, 0.2])
def test_a_signal_ends_it_whenever_it_comes(spawn: Spawn, name: str, delay: float) -> None:
    plugin = spawn()
    time.sleep(delay)  # the moment is what is tested
    plugin.process.send_signal(getattr(signal, name))
    # Before main() has blocked it, the signal does what it always does.
    assert plugin.wait_end(3) in (0, -getattr(signal, name))


def test_a_host_that_dies_is_noticed(spawn: Spawn) -> None:
    plugin = spawn(NOWHERE)
    assert plugin.process.stdin is not None and plugin.process.stdout is not None
    plugin.process.stdin.close()
    assert plugin.wait_end(5) == 0


def test_a_closed_output_is_the_end(tmp_path: Path) -> None:
    """The host's reading end is gone while its writing end is not: EPIPE, and no busy loop."""
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [program("PROVIDER")],
        stdin=subprocess.PIPE,
        stdout=write_end,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    os.close(write_end)
    os.close(read_end)
    assert process.stdin is not None
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')
    process.stdin.flush()
    assert process.wait(5) == 0
    process.stdin.close()


def test_a_host_that_never_reads_can_still_write(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [program("PROVIDER")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        start_new_session=True,
    )
    assert process.stdin is not None
    line = json.dumps(
        {"jsonrpc": "2.0", "id": "x" * 200, "method": "no.such", "params": {"x": "y" * 10_000}}
    )
    done = threading.Event()

    def write() -> None:
        assert process.stdin is not None
        for _ in range(3000):  # 30 MB in, and more answers than a pipe holds
            process.stdin.write(line.encode() + b"\n")
        done.set()

    threading.Thread(target=write, daemon=True).start()
    assert done.wait(30)
    process.stdin.close()
    assert process.wait(10) == 0


# --- each way in which a host gives up while it makes a sandbox (host_end_test has the real one)

WAYS = ["cancel", "cancel+shutdown", "shutdown", "eof", "sigterm"]


@pytest.mark.parametrize("way", WAYS)
def test_a_half_made_sandbox_is_removed(spawn: Spawn, slow_opensandbox: Any, way: str) -> None:
    plugin = spawn({"base_url": slow_opensandbox.url, "api_key": API_KEY, "ready_timeout": 60})
    number = plugin.start("sandbox.create", {"template": "base", "timeout": 300})
    sandbox_id = slow_opensandbox.wait_for_create()
    begin = time.monotonic()
    if way == "cancel":
        plugin.cancel(number)
        assert "error" in plugin.answer(number, 5)
    elif way == "cancel+shutdown":
        plugin.cancel(number)
        assert plugin.close().signal_sent is None
    elif way == "shutdown":
        ending = plugin.close()
        assert ending.answered_after is not None and ending.signal_sent is None
    elif way == "eof":
        plugin.close_input()
    else:
        plugin.process.terminate()
    slow_opensandbox.wait_for_delete(sandbox_id, 5)
    assert time.monotonic() - begin < 5
    if way != "cancel":
        assert plugin.wait_end(10) == 0


def test_a_removal_that_takes_long_survives_sigterm(spawn: Spawn, slow_opensandbox: Any) -> None:
    slow_opensandbox.delete_delay = 4.0
    plugin = spawn({"base_url": slow_opensandbox.url, "api_key": API_KEY})
    plugin.start("sandbox.create", {"template": "base", "timeout": 300})
    sandbox_id = slow_opensandbox.wait_for_create()
    ending = plugin.close()
    # shutdown is answered in the host's two seconds although the removal is not done; neither the
    # end of input nor SIGTERM stops it.
    assert ending.answered_after is not None and 1.5 < ending.answered_after < 2
    assert ending.signal_sent != "SIGKILL"
    slow_opensandbox.wait_for_delete(sandbox_id, 5)


def test_own_deadline_comes_before_the_hosts(spawn: Spawn, slow_opensandbox: Any) -> None:
    plugin = spawn({"base_url": slow_opensandbox.url, "api_key": API_KEY})
    begin = time.monotonic()
    params = {"template": "base", "timeout": 300, "request_timeout": 4}
    error = plugin.error("sandbox.create", params, timeout=4)
    assert error.code == -32005
    assert time.monotonic() - begin < 4
    slow_opensandbox.wait_for_delete(slow_opensandbox.wait_for_create(), 5)
