# SPDX-License-Identifier: Apache-2.0
"""The bridge as deployed by the overlay `test`, and what the tests ask of it."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

from bridge_client import Access
from node.node import ROOT, Node
from node.pki import Authority
from node.programs import eventually
from objects import KUBERNETES, kustomize

NAMESPACE = "sandbox-bridge-test"
NAME = "sandbox-bridge"


class Deployment:
    """The namespace of the overlay with its secrets and objects."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.key = secrets.token_hex(16)
        self.token = secrets.token_hex(16)
        self.authority = Authority(ROOT / "callers-pki", "first authority")
        self.objects = kustomize(node, KUBERNETES / "overlays/test")

    def install(self) -> None:
        """Applies everything; returns when the roll-out is over."""
        namespace, _, _ = self.objects.partition("\n---\n")
        self.node.apply(namespace)
        self.set_secret("upstream", {"api-key": self.key})
        self.set_secret("callers", {"tokens": self.token_line(self.token)})
        self.set_certificate(self.authority)
        self.node.apply(self.objects)
        self.await_rollout()

    @staticmethod
    def token_line(token: str, tenant: str = "*") -> str:
        return f"{tenant}:{hashlib.sha256(token.encode()).hexdigest()}\n"

    def set_secret(self, name: str, content: dict[str, str]) -> None:
        self.node.apply(json.dumps({
            "apiVersion": "v1", "kind": "Secret", "stringData": content,
            "metadata": {"name": f"{NAME}-{name}", "namespace": NAMESPACE}}))

    def set_certificate(self, authority: Authority) -> None:
        certificate, key = authority.issue("bridge", "/CN=bridge", f"DNS:{self.server_name}")
        self.set_secret("tls", {"tls.crt": certificate.read_text(), "tls.key": key.read_text()})

    @property
    def server_name(self) -> str:
        return f"{NAME}.{NAMESPACE}.svc"

    def access(self) -> Access:
        return Access(self.authority.certificate.read_bytes(), self.token, self.server_name)

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return self.node.kubectl("--namespace", NAMESPACE, *arguments, stdin=stdin)

    def await_rollout(self, seconds: int = 90) -> None:
        self.kubectl("rollout", "status", f"deployment/{NAME}", f"--timeout={seconds}s")

    def service(self) -> str:
        """HOST:PORT of the service."""
        found = self.node.get("service", NAME, f"--namespace={NAMESPACE}")
        return f"{found['spec']['clusterIP']}:50051"

    def pods(self) -> list[dict[str, Any]]:
        """Those that are not on their way out, by age."""
        found = self.node.get("pods", f"--namespace={NAMESPACE}",
                              f"--selector=app.kubernetes.io/name={NAME}")["items"]
        here = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return sorted(here, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def ready_addresses(self, service: str = NAME) -> set[str]:
        """Of the pods that the service sends calls to."""
        slices = self.node.get("endpointslices", f"--namespace={NAMESPACE}",
                               f"--selector=kubernetes.io/service-name={service}")["items"]
        return {address for each in slices for endpoint in each.get("endpoints") or []
                if endpoint["conditions"].get("ready") for address in endpoint["addresses"]}

    def await_ready(self, count: int, seconds: float = 60.0) -> None:
        """Until so many pods are there, all of them ready and in the service."""
        def settled() -> bool:
            pods = self.pods()
            return (len(pods) == count and all(is_ready(pod) for pod in pods)
                    and self.ready_addresses() == {pod["status"]["podIP"] for pod in pods})
        eventually(settled, f"{count} pods are ready", seconds)

    def calls(self, pod: dict[str, Any]) -> int:
        """How many GetServerInfo calls a replica has answered, by its metrics."""
        name = pod["metadata"]["name"]
        text = self.node.kubectl("get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}:9090"
                                                 "/proxy/metrics")
        return int(sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                       if line.startswith("sandbox_bridge_calls_total{")
                       and "GetServerInfo" in line))

    def process(self, pod: dict[str, Any]) -> int:
        """Id of the bridge's process in a pod."""
        (status,) = pod["status"]["containerStatuses"]
        container = str(status["containerID"]).removeprefix("containerd://")
        for line in self.node.ctr("tasks", "list").splitlines()[1:]:
            name, process, _ = line.split()
            if name == container:
                return int(process)
        raise AssertionError(f"{pod['metadata']['name']} has no task")


def is_ready(pod: dict[str, Any]) -> bool:
    return any(condition["type"] == "Ready" and condition["status"] == "True"
               for condition in pod["status"].get("conditions", []))


def restarts(pod: dict[str, Any]) -> int:
    return sum(int(each["restartCount"]) for each in pod["status"].get("containerStatuses", []))
