# SPDX-License-Identifier: Apache-2.0
"""The plugin in front of an OpenSandbox that misbehaves as the test says."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Spawn, program
from epp_host import EppError, Plugin
from program import BRIDGE_LISTENS, OPENSANDBOX_LISTENS, Program

Faulty = Callable[[str], Plugin]


@pytest.fixture
def faulty(spawn: Spawn, mode: str, tmp_path: Path) -> Iterator[Faulty]:
    """Plugins of OpenSandboxes with a fault plan, with their own bridge or a remote one."""
    servers = contextlib.ExitStack()

    def start(plan: str) -> Plugin:
        file = tmp_path / "plan"
        file.write_text(plan)
        argv = [program("LOCAL_OPENSANDBOX"), "--listen=127.0.0.1:0", f"--fault_plan_file={file}"]
        place = servers.enter_context(Program(*argv, says=OPENSANDBOX_LISTENS)).place
        if mode == "own":
            return spawn({"base_url": place})
        argv = [program("SANDBOX_BRIDGE"), "--listen=127.0.0.1:0", f"--upstream={place}"]
        bridge = servers.enter_context(Program(*argv, says=BRIDGE_LISTENS))
        return spawn({"bridge_address": bridge.place})

    with servers:
        yield start


RENEWAL = 'half: LIFECYCLE method: "POST" route: "/v1/sandboxes/{id}/renew-expiration" times: 1'


def test_a_server_that_only_lengthens(faulty: Faulty) -> None:
    """Refused in the server's words, and the record says what holds."""
    body = '{"code":"DOCKER::INVALID_EXPIRATION","message":"only later than now stored"}'
    plugin = faulty(f"rule {{ {RENEWAL} action {{ answer {{ status: 400 body: '{body}' }} }} }}")
    box = {"sandbox_id": plugin.create(timeout=3600)["sandbox_id"]}
    before = plugin.call("sandbox.get", box)["expires_at"]
    error = plugin.error("sandbox.set_timeout", {**box, "timeout": 120})
    assert error.code in (-32000, -32006)
    assert "only later than now stored" in error.message
    assert plugin.call("sandbox.get", box)["expires_at"] == before
    # The next one does it.
    stored = plugin.call("sandbox.set_timeout", {**box, "timeout": 120})["expires_at"]
    assert stored == plugin.call("sandbox.get", box)["expires_at"] < before
    plugin.call("sandbox.kill", box)


def test_a_server_that_says_yes_and_does_nothing(faulty: Faulty) -> None:
    """The answer has what is stored, not what was asked for or said."""
    answer = """answer { status: 200 header { name: "Content-Type" value: "application/json" }
                         body: '{"expiresAt":"2030-01-01T00:00:00Z"}' }"""
    plugin = faulty(f"rule {{ {RENEWAL} action {{ {answer} }} }}")
    record = plugin.create(timeout=3600)
    box = {"sandbox_id": record["sandbox_id"]}
    stored = plugin.call("sandbox.set_timeout", {**box, "timeout": 120})["expires_at"]
    assert stored == plugin.call("sandbox.get", box)["expires_at"] == record["expires_at"]
    plugin.call("sandbox.kill", box)


@pytest.mark.parametrize("status", [404, 500])
def test_a_cancel_that_comes_after_the_exit(faulty: Faulty, status: int) -> None:
    """Nothing is left to interrupt, and a daemon would say so with an error."""
    failure = '{"code":"RUNTIME_ERROR","message":"no command of this id"}'
    refusal = f"answer {{ status: {status} body: '{failure}' }}"
    plugin = faulty(
        f'rule {{ half: EXECD method: "DELETE" action {{ {refusal} }} }}'
        f'rule {{ half: EXECD method: "POST" route: "/v1/exec/{{id}}/signal"'
        f" action {{ {refusal} }} }}"
    )
    sandbox_id = plugin.create()["sandbox_id"]
    for _ in range(5):
        number = plugin.start("exec.start", plugin.exec_params(sandbox_id, "echo", ["done"]))
        process_id = plugin.result(number)["process_id"]
        outcome = plugin.finish(process_id)
        plugin.cancel(number)
        plugin.cancel(number)
        assert (outcome.stdout, outcome.code) == ("done\n", 0)
    assert plugin.shell(sandbox_id, "echo usable; exit 3").code == 3
    # A second exit of any of them would be a fault of the conversation.
    plugin.check()
    exits = [m for m in plugin.messages if m.get("method") == "exec.exit"]
    assert len(exits) == 6
    plugin.call("sandbox.kill", {"sandbox_id": sandbox_id})


def test_nothing_waits_for_a_slow_create(faulty: Faulty) -> None:
    """A create that takes ten seconds and ten commands that take longer hold nobody up."""
    plugin = faulty(
        'rule { half: LIFECYCLE method: "POST" route: "/v1/sandboxes" first: 5 times: 1'
        " action { delay_seconds: 10 } }"
    )
    sandbox_id, *others = [plugin.create()["sandbox_id"] for _ in range(4)]
    box = {"sandbox_id": sandbox_id}
    commands = [
        plugin.start("exec.start", plugin.exec_params(sandbox_id, "sleep", ["60"])) for _ in range(10)
    ]
    for number in commands:
        plugin.result(number)
    create = plugin.start("sandbox.create", {"template": "base", "timeout": 300})
    calls: dict[str, list[dict[str, Any]]] = {
        "sandbox.list": [{"limit": 10}] * 3,
        "sandbox.get": [box] * 3,
        "files.read": [{**box, "path": "/etc/passwd"}] * 3,
        "sandbox.kill": [{"sandbox_id": other} for other in others],
    }
    for method, each in calls.items():
        took = []
        for params in each:
            begin = time.monotonic()
            plugin.call(method, params)
            took.append(time.monotonic() - begin)
        # The best of three: the machine has other work.
        assert min(took) < 0.5, (method, took)
    assert all(m.get("id") != create for m in plugin.messages), "it was to be slow"
    for number in commands:
        plugin.cancel(number)
    plugin.call("sandbox.kill", {"sandbox_id": plugin.result(create, 60)["sandbox_id"]})
    plugin.call("sandbox.kill", box)


def test_a_daemon_behind_502_for_ever_is_given_up(faulty: Faulty) -> None:
    plugin = faulty("rule { half: EXECD first: 20 action { answer { status: 502 } } }")
    sandbox_id = plugin.create()["sandbox_id"]
    failed = 0
    deadline = time.monotonic() + 60
    while failed < 3:
        assert time.monotonic() < deadline
        begin = time.monotonic()
        try:
            plugin.read(sandbox_id, "/etc/passwd")
        except EppError as error:
            failed += 1
            assert (error.code, error.sdk_code) == (-32000, "E5001"), error
        assert time.monotonic() - begin < 15
    begin = time.monotonic()
    error = plugin.error("exec.run", plugin.exec_params(sandbox_id, "true"))
    assert (error.code, error.sdk_code) == (-32000, "E5001"), error
    assert time.monotonic() - begin < 15
    plugin.call("sandbox.kill", {"sandbox_id": sandbox_id})
