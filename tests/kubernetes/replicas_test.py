# SPDX-License-Identifier: Apache-2.0
"""Pods as they run: hardened, interchangeable, probed, and without any right in the cluster."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import bridge_client as client
import pytest
from deployment import NAMESPACE, Deployment, is_ready, restarts
from node.node import Node, eventually


def status_of(process: int) -> dict[str, str]:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_it_runs_without_privileges(replicas: Deployment) -> None:
    for pod in replicas.pods():
        status = status_of(replicas.process(pod))
        assert status["Uid"].split() == ["65532"] * 4
        assert status["Gid"].split() == ["65532"] * 4
        for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"):
            assert int(status[f"Cap{kind}"], 16) == 0
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"
        # The first process of its container (DEP-04, DEP-07).
        assert status["NSpid"].split()[-1] == "1"
        root = Path(f"/proc/{replicas.process(pod)}/root")
        assert not (root / "var/run/secrets/kubernetes.io").exists()
        assert not (root / "bin/sh").exists()
        mounts = Path(f"/proc/{replicas.process(pod)}/mounts").read_text().splitlines()
        (rootfs,) = [line.split()[3] for line in mounts if line.split()[1] == "/"]
        assert "ro" in rootfs.split(",")


@pytest.mark.parametrize(("verb", "resource"), [
    ("get", "secrets"), ("list", "pods"), ("create", "pods"), ("get", "configmaps"),
    ("create", "pods/exec"), ("watch", "endpointslices"), ("patch", "deployments"), ("*", "*"),
])
def test_its_account_may_do_nothing(replicas: Deployment, node: Node, verb: str,
                                    resource: str) -> None:
    account = f"system:serviceaccount:{NAMESPACE}:sandbox-bridge"
    asked = node.try_kubectl("auth", "can-i", verb, resource, f"--as={account}",
                             f"--namespace={NAMESPACE}")
    assert asked.stdout.strip() == "no", asked.stderr
    # The question itself is a sound one.
    assert node.kubectl("auth", "can-i", verb, resource).strip() == "yes"


def test_both_services_have_every_replica(replicas: Deployment) -> None:
    addresses = {pod["status"]["podIP"] for pod in replicas.pods()}
    assert len(addresses) == 2
    eventually(lambda: replicas.ready_addresses("sandbox-bridge-headless") == addresses,
               "the headless service has both")
    headless = replicas.node.get("service", "sandbox-bridge-headless", f"--namespace={NAMESPACE}")
    assert headless["spec"]["clusterIP"] == "None"


def test_any_replica_serves_any_sandbox(replicas: Deployment) -> None:
    access = replicas.access()
    one, other = (access.channel(f"{pod['status']['podIP']}:50051") for pod in replicas.pods())
    sandbox = client.create_sandbox(one)
    spec = client.execs.ExecSpec(shell="echo made by the other")
    for channel in (other, one):
        ran = client.execs_grpc.ExecServiceStub(channel).Run(
            client.execs.RunRequest(sandbox_id=sandbox, spec=spec), timeout=30)
        assert ran.stdout == b"made by the other\n"
    for channel in (other, one):
        listed = client.sandboxes_grpc.SandboxServiceStub(channel).ListSandboxes(
            client.sandboxes.ListSandboxesRequest(), timeout=30)
        assert sandbox in [each.sandbox_id for each in listed.sandboxes]
    deleted = client.sandboxes.DeleteSandboxRequest(sandbox_id=sandbox)
    client.sandboxes_grpc.SandboxServiceStub(other).DeleteSandbox(deleted, timeout=30)


def test_one_channel_over_the_headless_addresses_uses_all(replicas: Deployment) -> None:
    """What a client does with the name of the headless service: docs/operations.md, "Balancing"."""
    addresses = [f"{pod['status']['podIP']}:50051" for pod in replicas.pods()]
    before = [replicas.calls(pod) for pod in replicas.pods()]
    with replicas.access().channel("ipv4:" + ",".join(addresses), **{
            "grpc.service_config": '{"loadBalancingConfig": [{"round_robin": {}}]}'}) as channel:
        client.server_version(channel)
        # Both connections are up before it counts.
        eventually(lambda: client.server_version(channel) != "" and all(
            replicas.calls(pod) > n for pod, n in zip(replicas.pods(), before, strict=True)),
            "both replicas have answered")
        before = [replicas.calls(pod) for pod in replicas.pods()]
        for _ in range(100):
            client.server_version(channel)
    gained = [replicas.calls(pod) - n for pod, n in zip(replicas.pods(), before, strict=True)]
    # Not to the call: a connection that has its age is replaced in between.
    assert sum(gained) == 100
    assert min(gained) >= 40


# ---- probes


def test_a_replica_that_does_not_answer_gets_no_calls_until_it_does(replicas: Deployment) -> None:
    frozen, other = replicas.pods()
    process = replicas.process(frozen)
    os.kill(process, signal.SIGSTOP)
    try:
        eventually(lambda: replicas.ready_addresses() == {other["status"]["podIP"]},
                   "the frozen replica is out of the service")
        with replicas.access().channel(replicas.service()) as channel:
            for _ in range(10):
                client.server_version(channel)
    finally:
        os.kill(process, signal.SIGCONT)
    eventually(lambda: len(replicas.ready_addresses()) == 2, "it is back in the service")


def test_a_replica_that_hangs_is_started_again(replicas: Deployment) -> None:
    hung = replicas.pods()[0]
    name, before = hung["metadata"]["name"], restarts(hung)
    os.kill(replicas.process(hung), signal.SIGSTOP)

    def again() -> bool:
        (pod,) = [p for p in replicas.pods() if p["metadata"]["name"] == name]
        return restarts(pod) > before and is_ready(pod)
    eventually(again, "the kubelet has started it again", 90)
