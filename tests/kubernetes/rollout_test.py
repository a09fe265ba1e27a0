# SPDX-License-Identifier: Apache-2.0
"""Replicas come and go under callers who do not notice."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator

import bridge_client as client
import grpc
import pytest
from deployment import NAME, NAMESPACE, Deployment, is_ready
from node.node import eventually

# Prints lines until it is told to stop, and how many there were.
COMMAND = ("i=0; until [ -e /tmp/stop-$SANDBOX ]; do i=$((i+1)); echo line $i; sleep 0.1; done; "
           "echo $i; exit 7")


def start(connect: Callable[[], grpc.Channel], sandbox: str) -> client.Exec:
    running = client.Exec(connect, sandbox, COMMAND.replace("$SANDBOX", sandbox)).start()
    assert running.started.wait(30)
    return running


def stop(deployment: Deployment, sandbox: str) -> None:
    """Ends all of the commands of a sandbox."""
    request = client.execs.RunRequest(
        sandbox_id=sandbox, spec=client.execs.ExecSpec(shell=f"touch /tmp/stop-{sandbox}"))

    def touched() -> bool:
        # The service may lead to a replica that was killed just now. Once or twice is the same here.
        with deployment.access().channel(deployment.service()) as channel:
            try:
                client.execs_grpc.ExecServiceStub(channel).Run(request, timeout=30)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                return False
        return True
    eventually(touched, "a replica answers")


def check(ended: client.Exec) -> None:
    """Every byte came, once, over connections of which at least one was cut."""
    ended.wait()
    *lines, count = ended.output.decode().split("\n")[:-1]
    assert lines == [f"line {number}" for number in range(1, int(count) + 1)]
    assert ended.exit_code == 7
    assert ended.cuts
    assert all(cut.startswith("UNAVAILABLE") for cut in ended.cuts)


@pytest.fixture
def sandbox(replicas: Deployment) -> Iterator[str]:
    channel = replicas.access().channel(replicas.service())
    sandbox = client.create_sandbox(channel)
    yield sandbox
    request = client.sandboxes.DeleteSandboxRequest(sandbox_id=sandbox)
    # The replica of the channel may be gone; the next one knows as much.
    replicas.await_ready(2)
    with replicas.access().channel(replicas.service()) as fresh:
        # The node may go on sending new connections to the one that is gone, for a moment.
        client.sandboxes_grpc.SandboxServiceStub(fresh).DeleteSandbox(
            request, timeout=30, wait_for_ready=True
        )
    channel.close()


def new_channels(deployment: Deployment) -> Callable[[], grpc.Channel]:
    access, service = deployment.access(), deployment.service()
    return lambda: access.channel(service)


def test_a_rolling_update_loses_no_unary_call_and_no_byte(replicas: Deployment,
                                                          sandbox: str) -> None:
    connect = new_channels(replicas)
    before = {pod["metadata"]["name"] for pod in replicas.pods()}
    execs = [start(connect, sandbox) for _ in range(8)]
    long_lived = [connect() for _ in range(4)]
    turn = itertools.count()
    lock = threading.Lock()

    def call_on_a_long_lived_channel() -> None:
        with lock:
            channel = long_lived[next(turn) % len(long_lived)]
        client.server_version(channel)

    def call_on_a_new_channel() -> None:
        with connect() as channel:
            client.server_version(channel)

    with client.Load(call_on_a_long_lived_channel, 4) as load, \
            client.Load(call_on_a_new_channel, 1, 0.05) as newcomers:
        replicas.kubectl("rollout", "restart", f"deployment/{NAME}")
        replicas.await_rollout()
        replicas.await_ready(2)
        eventually(lambda: all(each.cuts for each in execs), "every stream has been cut")
    stop(replicas, sandbox)
    for each in execs:
        check(each)
    assert not before & {pod["metadata"]["name"] for pod in replicas.pods()}
    assert load.done > 100 and newcomers.done > 20
    assert (load.failures, newcomers.failures) == ([], [])
    for channel in long_lived:
        channel.close()


def test_kill_9_in_the_middle_of_an_exec_loses_no_byte(replicas: Deployment, sandbox: str) -> None:
    victim, other = replicas.pods()
    access = replicas.access()
    targets = itertools.chain([victim], itertools.repeat(other))
    lock = threading.Lock()

    def connect() -> grpc.Channel:
        with lock:
            return access.channel(f"{next(targets)['status']['podIP']}:50051")
    running = start(connect, sandbox)
    eventually(lambda: running.output.count(b"\n") >= 5, "some output is there")
    os.kill(replicas.process(victim), signal.SIGKILL)
    eventually(lambda: bool(running.cuts), "the stream has been cut")
    before = len(running.output)
    eventually(lambda: len(running.output) > before, "it goes on")
    stop(replicas, sandbox)
    check(running)


def test_a_bad_version_is_held_and_undone(replicas: Deployment) -> None:
    good = {pod["metadata"]["name"] for pod in replicas.pods()}
    connect = new_channels(replicas)
    # Not part of the version, so nothing is rolled out by it.
    set_deadline(replicas, 10)
    # A version that does not start: there is no such scheme.
    replicas.kubectl("set", "env", f"deployment/{NAME}", "SANDBOX_BRIDGE_UPSTREAM=ftp://nowhere")
    try:
        told = replicas.node.try_kubectl(
            "--namespace", NAMESPACE, "rollout", "status", f"deployment/{NAME}", "--timeout=60s")
        assert told.returncode != 0
        assert "exceeded its progress deadline" in told.stderr
        # What served before serves on.
        ready = {pod["metadata"]["name"] for pod in replicas.pods() if is_ready(pod)}
        assert ready == good
        with connect() as channel:
            for _ in range(10):
                client.server_version(channel)
        # And whoever looks is told why.
        (bad,) = [pod for pod in replicas.pods() if pod["metadata"]["name"] not in good]
        eventually(lambda: "sandbox_bridge: upstream: " in replicas.kubectl(
            "logs", bad["metadata"]["name"]), "the log says what is wrong")
    finally:
        set_deadline(replicas, 120)
        replicas.kubectl("rollout", "undo", f"deployment/{NAME}")
        replicas.await_rollout()
    replicas.await_ready(2)
    assert {pod["metadata"]["name"] for pod in replicas.pods()} == good


def set_deadline(deployment: Deployment, seconds: int) -> None:
    deployment.kubectl("patch", f"deployment/{NAME}", "--type=merge", "--patch",
                       json.dumps({"spec": {"progressDeadlineSeconds": seconds}}))


def test_only_one_replica_may_be_evicted(replicas: Deployment) -> None:
    first, second = replicas.pods()
    assert evict(replicas, first) == ""
    # The next one is ready at once or not: as long as one is missing, no other may go.
    refused = evict(replicas, second)
    assert "disruption budget" in refused
    replicas.await_ready(2)
    assert second["metadata"]["name"] in {pod["metadata"]["name"] for pod in replicas.pods()}


def evict(deployment: Deployment, pod: dict[str, object]) -> str:
    """"" or why it was refused."""
    name = pod["metadata"]["name"]  # type: ignore[index]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction",
                "metadata": {"name": name, "namespace": NAMESPACE}}
    tried = deployment.node.try_kubectl(
        "create", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction", "--filename=-",
        stdin=json.dumps(eviction))
    return "" if tried.returncode == 0 else tried.stderr


def test_channels_of_long_life_find_a_new_replica(replicas: Deployment) -> None:
    """The age of connections is limited, so that replicas that come later get their share."""
    channels = [new_channels(replicas)() for _ in range(6)]
    turn = itertools.count()
    lock = threading.Lock()

    def call() -> None:
        with lock:
            channel = channels[next(turn) % len(channels)]
        client.server_version(channel)

    with client.Load(call, 3) as load:
        old = {pod["metadata"]["name"] for pod in replicas.pods()}
        replicas.kubectl("scale", f"deployment/{NAME}", "--replicas=3")
        replicas.await_ready(3)
        (new,) = [pod for pod in replicas.pods() if pod["metadata"]["name"] not in old]
        eventually(lambda: replicas.calls(new) >= 20, "the new replica is called")
        # And one that goes takes nothing along.
        replicas.kubectl("scale", f"deployment/{NAME}", "--replicas=2")
        replicas.await_ready(2)
    assert load.failures == []
    for channel in channels:
        channel.close()
