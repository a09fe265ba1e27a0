# SPDX-License-Identifier: Apache-2.0
"""Two bridges in front of one OpenSandbox: what callers see when one of them goes.

On a real cluster: //tests/kubernetes. Here without one, so that a failure names its cause.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator

import bridge_client as client
import grpc
import pytest
from program import eventually
from programs import Bridge, OpenSandbox

LINES = 40
COMMAND = f"for i in $(seq {LINES}); do echo line $i; sleep 0.1; done; exit 7"
OUTPUT = "".join(f"line {i}\n" for i in range(1, LINES + 1)).encode()
# Round robin over replicas, leaving out those whose health says so.
HEEDS_HEALTH = json.dumps({"loadBalancingConfig": [{"round_robin": {}}],
                           "healthCheckConfig": {"serviceName": ""}})


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    with OpenSandbox() as opensandbox:
        yield opensandbox.place


class Replicas:
    """Two of them, as good as one another."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self.access = client.Access()
        self.bridges = [self.start(), self.start()]

    def start(self, listen: str = "127.0.0.1:0") -> Bridge:
        return Bridge(self._upstream, "--drain_delay=500ms", "--grace=500ms", listen=listen)

    def in_turn(self) -> Callable[[], grpc.Channel]:
        """The first one, and for ever after the other."""
        first, other = self.bridges
        targets = itertools.chain([first.place], itertools.repeat(other.place))
        lock = threading.Lock()

        def connect() -> grpc.Channel:
            with lock:
                return self.access.channel(next(targets))
        return connect


@pytest.fixture
def replicas(upstream: str) -> Iterator[Replicas]:
    replicas = Replicas(upstream)
    yield replicas
    for bridge in replicas.bridges:
        bridge.kill()


def create(replicas: Replicas) -> str:
    with replicas.access.channel(replicas.bridges[1].place) as channel:
        return client.create_sandbox(channel)


@pytest.mark.parametrize("how", ["kill -9", "SIGTERM"])
def test_an_exec_goes_on_at_its_byte_on_the_other_replica(replicas: Replicas, how: str) -> None:
    sandbox = create(replicas)
    execs = [client.Exec(replicas.in_turn(), sandbox, COMMAND).start() for _ in range(5)]
    for each in execs:
        assert each.started.wait(30)
    eventually(lambda: all(each.output.count(b"\n") >= 5 for each in execs), "output is there")
    if how == "SIGTERM":
        assert replicas.bridges[0].stop() == 0
    else:
        replicas.bridges[0].kill()
    for each in execs:
        each.wait()
        assert (each.output, each.exit_code) == (OUTPUT, 7)
        assert each.cuts and each.cuts[0].startswith("UNAVAILABLE")


def test_a_rolling_restart_loses_no_unary_call(replicas: Replicas) -> None:
    """Old channels that heed health, and channels that are new each time."""
    target = "ipv4:" + ",".join(bridge.place for bridge in replicas.bridges)

    def connect() -> grpc.Channel:
        return replicas.access.channel(target, **{
            "grpc.service_config": HEEDS_HEALTH,
            "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 200})
    channels = [connect() for _ in range(4)]
    turn = itertools.count()

    def call_on_an_old_channel() -> None:
        client.server_version(channels[next(turn) % len(channels)])

    with client.Load(call_on_an_old_channel, 4, pause=0.005) as load:
        for number, old in enumerate(list(replicas.bridges)):
            done = load.done
            eventually(lambda done=done: load.done > done + 50, "calls go through")
            assert old.stop() == 0
            replicas.bridges[number] = replicas.start(listen=old.place)
            # As a deployment that waits until the new one is ready, and callers have found it: so
            # many calls take over two seconds, a multiple of what a channel waits.
            with replicas.access.channel(old.place) as channel:
                client.server_version(channel)
            done = load.done
            eventually(lambda done=done: load.done > done + 2000, "calls go through")
    assert load.done > 500
    assert load.failures == []
    for channel in channels:
        channel.close()
