# SPDX-License-Identifier: Apache-2.0
"""A terminal on which nothing happens, through proxies that cut what is quiet, on both sides of the
bridge. What a gRPC client sees of it: tests/integration/long_command_test.cc."""

from __future__ import annotations

import os

import pytest
from conftest import Sbx, start_bridge
from program import OPENSANDBOX_LISTENS, Program
from relay import Relay
from terminal import Terminal

# Proxies cut after 60 s and more; the bridge says something every 15 s to its client, and every
# 20 s to the sandbox.
IDLE_SECONDS = 32.0
SILENCE_SECONDS = 41


@pytest.mark.parametrize("compat", ["current", "1.1.0"])
def test_a_silent_terminal_is_not_cut(compat: str) -> None:
    with Program(os.environ["LOCAL_OPENSANDBOX"], "--listen=127.0.0.1:0", f"--compat={compat}",
                 says=OPENSANDBOX_LISTENS) as upstream:
        back = Relay(upstream.place.removeprefix("http://"), IDLE_SECONDS)
        with start_bridge(f"--upstream=http://{back.address}", "--use_server_proxy") as bridge:
            front = Relay(bridge.place, IDLE_SECONDS)
            sandbox = Sbx(bridge.place).json("create", "--ttl=30m")["sandbox_id"]
            line = f"echo u''p; sleep {SILENCE_SECONDS}; echo st''ill; read x; echo got-$x; exit 3"
            terminal = Terminal(Sbx(front.address), "shell", sandbox, "--", "sh", "-c", line)
            try:
                terminal.until("up\r\n")
                terminal.until("still\r\n", patience=SILENCE_SECONDS * 2)
                terminal.type("hi\r")
                terminal.until("got-hi\r\n")
                assert terminal.wait() == 3
            finally:
                terminal.close()
            front.close()
        back.close()
    # What was kept open for a next request may be cut; what carries the terminal may not.
    assert front.idle_cuts == []
    carriers = [began.partition(b"\r\n")[0] for began in back.idle_cuts if b"Upgrade" in began]
    assert carriers == []
