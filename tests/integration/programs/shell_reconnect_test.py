# SPDX-License-Identifier: Apache-2.0
"""`sbx shell` through connections that are cut and bridges that die, on an OpenSandbox that lives on.

The bridge has no state of its own, so that the next one knows the process; the sandbox's daemon keeps
what was printed meanwhile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest
from conftest import Sbx, start_bridge
from program import OPENSANDBOX_LISTENS, Program, eventually
from relay import Relay
from terminal import Terminal

PROMPT = r"\$ |# "


@pytest.fixture(scope="module", params=["current", "1.1.0"])
def upstream(request: pytest.FixtureRequest) -> Iterator[str]:
    """A local OpenSandbox that lives longer than a bridge, with a daemon of each version."""
    program = os.environ["LOCAL_OPENSANDBOX"]
    running = Program(program, "--listen=127.0.0.1:0", f"--compat={request.param}",
                      says=OPENSANDBOX_LISTENS)
    yield running.place
    assert running.stop() == 0, running.log


@pytest.fixture
def bridges(upstream: str) -> Iterator[list[Program]]:
    """Two replicas."""
    running = [start_bridge(f"--upstream={upstream}") for _ in range(2)]
    yield running
    for bridge in running:
        bridge.kill()


@pytest.fixture
def sbx(bridges: list[Program]) -> Sbx:
    """Through the second bridge, which stays."""
    return Sbx(bridges[1].place)


@pytest.fixture
def relay(bridges: list[Program]) -> Iterator[Relay]:
    """To the first bridge, until a test changes that."""
    relay = Relay(bridges[0].place)
    yield relay
    relay.close()


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    started: list[Terminal] = []
    yield started
    for terminal in started:
        terminal.close()


def inside(sbx: Sbx, sandbox: str, line: str) -> str:
    return sbx.text("exec", sandbox, "-c", line)


def shell(relay: Relay, terminals: list[Terminal], *args: str) -> Terminal:
    terminal = Terminal(Sbx(relay.address), "shell", *args)
    terminals.append(terminal)
    return terminal


def test_cut_again_and_again_not_a_byte_is_lost(
    sbx: Sbx, sandbox: str, relay: Relay, terminals: list[Terminal]
) -> None:
    count = "i=0; until [ -e /tmp/stop ]; do i=$((i+1)); echo line $i; sleep 0.01; done; exit 6"
    terminal = shell(relay, terminals, sandbox, "--", "sh", "-c", count)
    whole = ""
    for cut in range(8):
        whole += terminal.through(rf"line {20 + 20 * cut}\r\n")
        relay.cut()
    whole += terminal.through(r"line 200\r\n")
    inside(sbx, sandbox, "touch /tmp/stop")
    assert terminal.wait() == 6
    assert terminal.restored()
    whole += terminal.screen
    lines = whole.split("\r\n")
    assert lines.pop() == ""
    assert len(lines) >= 200
    assert lines == [f"line {n}" for n in range(1, len(lines) + 1)]
    assert sbx.json("ps", sandbox)["processes"] == []


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_another_bridge_goes_on(
    sbx: Sbx,
    sandbox: str,
    bridges: list[Program],
    relay: Relay,
    terminals: list[Terminal],
    end: str,
) -> None:
    terminal = shell(relay, terminals, sandbox)
    terminal.until(PROMPT)
    inside(sbx, sandbox, "mkfifo /tmp/go")
    terminal.type("KEPT=yes-it-is; (read x </tmp/go; echo while-''away) &\r")
    terminal.until(PROMPT)
    relay.target = bridges[1].place
    if end == "kill":
        bridges[0].kill()
    else:
        assert bridges[0].stop() == 0
    inside(sbx, sandbox, "echo >/tmp/go")
    terminal.until("while-away\r\n")
    terminal.type("echo $KEPT\r")
    terminal.until("yes-it-is\r\n")
    # The size and a key are told by two ways, in any order.
    terminal.type("trap 'stty size' WINCH; echo set-''now\r")
    terminal.until("set-now\r\n")
    terminal.resize(17, 71)
    terminal.until(r"17 71\r\n")
    terminal.type("exit 4\r")
    assert terminal.wait() == 4
    assert terminal.restored()


def test_restarted_at_its_address(
    sandbox: str,
    bridges: list[Program],
    upstream: str,
    relay: Relay,
    terminals: list[Terminal],
) -> None:
    """What is typed while nobody is there arrives when somebody is. The next bridge is up before the
    first one dies: how long it takes to start is not to be measured against sbx's patience."""
    terminal = shell(relay, terminals, sandbox)
    terminal.until(PROMPT)
    bridges.append(start_bridge(f"--upstream={upstream}"))
    relay.target = None
    bridges[0].kill()
    eventually(lambda: relay.refused > 0, "sbx has noticed and tries to come back")
    terminal.type("echo typed-''meanwhile\r")
    relay.target = bridges[-1].place
    terminal.until("typed-meanwhile\r\n")
    terminal.type("exit 3\r")
    assert terminal.wait() == 3


def test_a_connection_that_is_dead_without_a_word(
    sandbox: str, relay: Relay, terminals: list[Terminal]
) -> None:
    """As after a suspend, or behind a NAT that has forgotten it."""
    terminal = shell(relay, terminals, sandbox)
    terminal.until(PROMPT)
    relay.freeze()
    terminal.type("exit 8\r")
    terminal.until("7 typed bytes may not have arrived")
    terminal.type("exit 8\r")
    assert terminal.wait() == 8


def test_gone_for_good(
    sandbox: str, bridges: list[Program], relay: Relay, terminals: list[Terminal]
) -> None:
    terminal = shell(relay, terminals, sandbox)
    terminal.until(PROMPT)
    terminal.type("KEPT=yes-it-is\r")
    terminal.until(PROMPT)
    relay.target = None
    relay.cut()
    assert terminal.wait() == 125
    assert terminal.restored()
    assert "BRIDGE_UNREACHABLE" in terminal.screen
    found = re.search(r"--attach (\S+)", terminal.screen)
    assert found is not None, terminal.screen
    relay.target = bridges[1].place
    again = shell(relay, terminals, "--attach", found.group(1), sandbox)
    again.type("echo $KEPT\r")
    again.until("yes-it-is\r\n")
    again.type("exit 2\r")
    assert again.wait() == 2
