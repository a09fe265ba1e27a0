# SPDX-License-Identifier: Apache-2.0
"""Certificates, tokens and the upstream's key are replaced while the replicas run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import bridge_client as client
import grpc
import pytest
from deployment import Deployment, restarts
from node.node import ROOT, eventually
from node.pki import Authority


def code(call: Callable[[], object]) -> grpc.StatusCode:
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def answer(deployment: Deployment, access: client.Access, address: str) -> grpc.StatusCode:
    """Of one replica, over a connection of its own."""
    def list_sandboxes() -> None:
        with access.channel(f"{address}:50051") as channel:
            client.sandboxes_grpc.SandboxServiceStub(channel).ListSandboxes(
                client.sandboxes.ListSandboxesRequest(), timeout=5)
    return code(list_sandboxes)


def eventually_all(deployment: Deployment, access: client.Access, wanted: grpc.StatusCode) -> None:
    addresses = [pod["status"]["podIP"] for pod in deployment.pods()]
    eventually(lambda: all(answer(deployment, access, each) == wanted for each in addresses),
               f"all replicas answer {wanted}", 90, every=0.5)


@pytest.fixture
def running(replicas: Deployment) -> Iterator[Deployment]:
    """Asserts that no replica was replaced or started again."""
    before = {pod["metadata"]["uid"]: restarts(pod) for pod in replicas.pods()}
    yield replicas
    assert {pod["metadata"]["uid"]: restarts(pod) for pod in replicas.pods()} == before


def test_a_new_certificate_is_taken_and_streams_go_on(running: Deployment) -> None:
    old = running.access()
    channel = old.channel(running.service())
    sandbox = client.create_sandbox(channel)
    spec = client.execs.ExecSpec(shell="rm -f go; mkfifo go; echo ready; read x < go; echo $x",
                                 cwd="/tmp")
    stream = client.execs_grpc.ExecServiceStub(channel).Execute(
        client.execs.ExecuteRequest(sandbox_id=sandbox, spec=spec), timeout=120)
    events = iter(stream)
    while next(events).WhichOneof("event") != "output_batch":
        pass

    running.authority = Authority(ROOT / "second-pki", "second authority")
    running.set_certificate(running.authority)
    eventually_all(running, running.access(), grpc.StatusCode.OK)
    addresses = [pod["status"]["podIP"] for pod in running.pods()]
    assert [answer(running, old, each) for each in addresses] == [grpc.StatusCode.UNAVAILABLE] * 2

    # The stream of the first certificate's time is still there.
    with running.access().channel(running.service()) as other:
        client.execs_grpc.ExecServiceStub(other).Run(client.execs.RunRequest(
            sandbox_id=sandbox, spec=client.execs.ExecSpec(shell="echo on > go", cwd="/tmp")),
            timeout=30)
    rest = b"".join(each.data for event in events for each in event.output_batch.outputs)
    assert rest == b"on\n"
    channel.close()


def test_tokens_are_replaced(running: Deployment) -> None:
    old, new = running.token, "another-token-of-the-test"
    first = running.access()
    running.set_secret("callers", {"tokens": running.token_line(old) + running.token_line(new)})
    running.token = new
    eventually_all(running, running.access(), grpc.StatusCode.OK)
    eventually_all(running, first, grpc.StatusCode.OK)
    running.set_secret("callers", {"tokens": running.token_line(new)})
    eventually_all(running, first, grpc.StatusCode.UNAUTHENTICATED)
    eventually_all(running, running.access(), grpc.StatusCode.OK)


def test_the_upstreams_key_is_replaced(running: Deployment) -> None:
    running.set_secret("upstream", {"api-key": "a-key-that-was-withdrawn"})
    eventually_all(running, running.access(), grpc.StatusCode.UNAUTHENTICATED)
    running.set_secret("upstream", {"api-key": running.key})
    eventually_all(running, running.access(), grpc.StatusCode.OK)
