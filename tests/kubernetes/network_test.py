# SPDX-License-Identifier: Apache-2.0
"""The network policy lets frontends in and nobody else, and the bridge out to OpenSandbox alone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from deployment import Deployment
from node import settings
from node.node import Node, eventually

FRONTENDS = "frontends"
LABEL = {"sandbox-bridge-client": "true"}


def pod(name: str, labels: dict[str, str], image: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "one", "image": image, "imagePullPolicy": "Never",
                 **spec.pop("container", {})}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": FRONTENDS, "labels": labels},
            "spec": {"restartPolicy": "Never", "automountServiceAccountToken": False,
                     "terminationGracePeriodSeconds": 0, "containers": [container], **spec}}


@pytest.fixture(scope="module")
def frontends(node: Node, deployment: Deployment) -> Iterator[Node]:
    """Two idle pods in a namespace of their own: one is a frontend, one is anybody."""
    node.kubectl("create", "namespace", FRONTENDS)
    eventually(lambda: node.try_kubectl("get", "serviceaccount", "default",
                                        f"--namespace={FRONTENDS}").returncode == 0, "an account")
    node.apply("\n---\n".join(json.dumps(each) for each in (
        pod("frontend", LABEL, "localhost/pause:1"), pod("anybody", {}, "localhost/pause:1"))))
    node.kubectl("wait", "--for=condition=Ready", "pod/frontend", "pod/anybody",
                 f"--namespace={FRONTENDS}", "--timeout=60s")
    yield node
    node.kubectl("delete", "namespace", FRONTENDS, "--timeout=60s")


def process_of(node: Node, namespace: str, name: str) -> int:
    found = node.get("pod", name, f"--namespace={namespace}")
    container = found["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    for line in node.ctr("tasks", "list").splitlines()[1:]:
        task, process, _ = line.split()
        if task == container:
            return int(process)
    raise AssertionError(f"{name} has no task")


def reaches(process: int, host: str, port: int) -> bool:
    """Whether a connection from the network of the process comes to be."""
    connect = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"
    return subprocess.run(
        ["nsenter", f"--target={process}", "--net", "python3", "-c", connect, host, str(port)],
        capture_output=True, check=False).returncode == 0


def test_a_frontend_gets_in_and_others_do_not(replicas: Deployment, frontends: Node) -> None:
    frontend = process_of(frontends, FRONTENDS, "frontend")
    anybody = process_of(frontends, FRONTENDS, "anybody")
    host, port = replicas.service().split(":")
    addresses = [each["status"]["podIP"] for each in replicas.pods()]
    eventually(lambda: reaches(frontend, host, int(port)), "a frontend reaches the service")
    for address in addresses:
        assert reaches(frontend, address, 50051)
        # Metrics and health are none of its business.
        assert not reaches(frontend, address, 9090)
        assert not reaches(frontend, address, 50052)
        assert not reaches(anybody, address, 50051)
    assert not reaches(anybody, host, int(port))
    # It is the policy that keeps it out, not the lack of a way.
    assert reaches(anybody, settings.NODE_IP, 8080)


def test_the_bridge_gets_out_to_opensandbox_alone(replicas: Deployment, frontends: Node) -> None:
    bridge = replicas.process(replicas.pods()[0])
    other = replicas.pods()[1]["status"]["podIP"]
    assert reaches(bridge, settings.NODE_IP, 8080)
    # Another replica listens there, and would let a frontend in.
    assert not reaches(bridge, other, 50051)


def test_the_command_line_in_a_pod_reaches_its_sandbox(replicas: Deployment,
                                                       frontends: Node) -> None:
    """The whole way: the label, the service, TLS, the token, OpenSandbox, a command."""
    host, _ = replicas.service().split(":")
    node = frontends
    node.apply(json.dumps({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "access", "namespace": FRONTENDS},
        "stringData": {"ca.crt": replicas.authority.certificate.read_text(),
                       "token": replicas.token}}))
    environment = {"SANDBOX_BRIDGE_ADDRESS": f"{replicas.server_name}:50051",
                   "SANDBOX_BRIDGE_CA_FILE": "/access/ca.crt",
                   "SANDBOX_BRIDGE_TOKEN_FILE": "/access/token"}
    container = {"args": ["run", "--", "echo", "from a pod"],
                 "env": [{"name": k, "value": v} for k, v in environment.items()],
                 "volumeMounts": [{"name": "access", "mountPath": "/access"}]}
    for name, labels in (("allowed", LABEL), ("refused", {})):
        node.apply(json.dumps(pod(
            name, labels, client_image(node), container=container,
            volumes=[{"name": "access", "secret": {"secretName": "access"}}],
            # There is no DNS here.
            hostAliases=[{"ip": host, "hostnames": [replicas.server_name]}])))
    node.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/allowed",
                 f"--namespace={FRONTENDS}", "--timeout=60s")
    assert "from a pod\n" in node.kubectl("logs", "allowed", f"--namespace={FRONTENDS}")
    node.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/refused",
                 f"--namespace={FRONTENDS}", "--timeout=90s")


def client_image(node: Node) -> str:
    (name,) = [line.split()[0] for line in node.ctr("images", "list").splitlines()
               if line.startswith("localhost/sbx:")]
    return name
