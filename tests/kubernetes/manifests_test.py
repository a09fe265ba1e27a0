# SPDX-License-Identifier: Apache-2.0
"""Everything in deploy/kubernetes is taken by a real API server, and what is broken is refused."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import objects
import pytest
from node.node import Node, eventually
from node.programs import Failed

STRICT = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename=-")
CRDS = Path("tests/kubernetes/manifests/crds.yaml")
FOLDERS = ["overlays/minimal", "overlays/production", "overlays/test",
           "examples/opensandbox-in-cluster"]


@pytest.fixture(scope="module")
def cluster(node: Node) -> Node:
    """With the operator's kinds and the namespaces of the overlays, which no dry run makes."""
    node.apply(CRDS.read_text())
    for overlay in ("production", "test"):
        text = Path(f"deploy/kubernetes/overlays/{overlay}/namespace.yaml").read_text()
        node.apply(text)
    eventually(lambda: node.try_kubectl("get", "prometheusrules,servicemonitors").returncode == 0,
               "the operator's kinds are served")
    return node


@pytest.fixture(scope="module")
def production(cluster: Node) -> list[objects.Object]:
    return objects.parse(cluster, objects.kustomize(
        cluster, objects.KUBERNETES / "overlays/production"))


def accept(node: Node, text: str) -> None:
    tried = node.try_kubectl(*STRICT, stdin=text)
    assert tried.returncode == 0, tried.stderr
    assert "Warning" not in tried.stderr


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_api_server_takes_it(cluster: Node, folder: str) -> None:
    accept(cluster, objects.kustomize(cluster, objects.KUBERNETES / folder))


def test_the_api_server_takes_what_the_chart_makes(cluster: Node, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps({
        "upstream": "https://opensandbox.example.com", "replicas": 4, "tokens": False,
        "image": {"repository": "registry.example.com/bridge", "tag": "1.2.3",
                  "pullPolicy": "Always", "pullSecrets": ["registry"]},
        "flags": {"max_streams": 4096, "channelz": None, "log_calls": "all"},
        "resources": {"limits": {"memory": "1Gi"}}, "nodeSelector": {"pool": "bridges"},
        "tolerations": [{"key": "pool", "operator": "Exists"}],
        "autoscaling": {"enabled": False}, "monitoring": {"enabled": True},
        "network": {"egress": [{"ports": [{"port": 443}]}]}}))
    text = objects.chart(cluster, values)
    accept(cluster, text)
    made = objects.parse(cluster, text)
    deployment = objects.find(made, "Deployment")
    bridge = objects.container(deployment)
    assert deployment["spec"]["replicas"] == 4
    assert bridge["image"] == "registry.example.com/bridge:1.2.3"
    assert bridge["imagePullPolicy"] == "Always"
    assert bridge["resources"] == {"requests": {"cpu": "250m", "memory": "256Mi"},
                                   "limits": {"memory": "1Gi"}}
    environment = objects.environment(deployment)
    assert environment["SANDBOX_BRIDGE_UPSTREAM"] == "https://opensandbox.example.com"
    assert environment["SANDBOX_BRIDGE_MAX_STREAMS"] == "4096"
    assert environment["SANDBOX_BRIDGE_INSECURE_PUBLIC"] == "true"
    assert "SANDBOX_BRIDGE_AUTH_TOKENS_FILE" not in environment
    assert "SANDBOX_BRIDGE_CHANNELZ" not in environment
    assert objects.find(made, "NetworkPolicy")["spec"]["egress"] == [{"ports": [{"port": 443}]}]
    assert not [o for o in made if o["kind"] == "HorizontalPodAutoscaler"]


# ---- one source


def normal(made: list[objects.Object]) -> dict[tuple[str, str], objects.Object]:
    """By kind and name. Of environment variables that do not refer to one another the order says
    nothing. A chart makes no namespace."""
    out = {}
    for each in copy.deepcopy(made):
        if each["kind"] == "Namespace":
            continue
        if each["kind"] == "Deployment":
            each["spec"]["template"]["spec"]["containers"][0]["env"].sort(key=lambda e: e["name"])
        out[each["kind"], each["metadata"]["name"]] = each
    return out


@pytest.mark.parametrize(("overlay", "values"), [("production", None),
                                                 ("minimal", "values-minimal.yaml")])
def test_the_chart_makes_what_kustomize_makes(cluster: Node, overlay: str,
                                              values: str | None) -> None:
    chart = objects.chart(cluster, objects.KUBERNETES / "chart" / values if values else None)
    overlay_text = objects.kustomize(cluster, objects.KUBERNETES / "overlays" / overlay)
    assert normal(objects.parse(cluster, chart)) == normal(objects.parse(cluster, overlay_text))


def test_monitoring_is_the_same_from_both(cluster: Node, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text('{"monitoring": {"enabled": true}}')
    text = objects.with_component(cluster, "production", "monitoring", tmp_path)
    accept(cluster, text)
    by_kustomize = normal(objects.parse(cluster, text))
    by_chart = normal(objects.parse(cluster, objects.chart(cluster, tmp_path / "values.yaml")))
    assert by_chart == by_kustomize
    dashboard = by_chart["ConfigMap", "sandbox-bridge-dashboard"]["data"]["sandbox-bridge.json"]
    assert json.loads(dashboard)["uid"] == "sandbox-bridge"


@pytest.mark.parametrize(("values", "says"), [
    ({"replicas": -1}, "replicas"),
    ({"replica": 3}, "replica"),
    ({"upstream": "opensandbox:8080"}, "upstream"),
    ({"image": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
    ({"flags": {"max-streams": 1}}, "max-streams"),
    ({"tls": "no"}, "tls"),
])
def test_the_chart_refuses_wrong_values(node: Node, tmp_path: Path, values: dict[str, Any],
                                        says: str) -> None:
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    with pytest.raises(Failed, match=re.escape(says)):
        objects.chart(node, tmp_path / "values.yaml")


# ---- what the numbers have to do with one another


def seconds(text: str) -> float:
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    return sum(float(n) * units[u] for n, u in re.findall(r"(\d+)(ms|s|m|h)", text))


def mib(text: str) -> int:
    assert text.endswith("Mi")
    return int(text[:-2])


@pytest.mark.parametrize("overlay", ["production", "minimal", "test"])
def test_the_pod_may_take_as_long_as_the_drain(cluster: Node, overlay: str) -> None:
    made = objects.parse(cluster, objects.kustomize(
        cluster, objects.KUBERNETES / "overlays" / overlay))
    deployment = objects.find(made, "Deployment")
    pod, environment = deployment["spec"]["template"]["spec"], objects.environment(deployment)
    pre_stop = objects.container(deployment)["lifecycle"]["preStop"]["sleep"]["seconds"]
    # docs/adr/0012: drain delay + grace + 2 s + as long as the grace for what is in the background.
    drain = (seconds(environment["SANDBOX_BRIDGE_DRAIN_DELAY"])
             + 2 * seconds(environment["SANDBOX_BRIDGE_GRACE"]) + 3)
    assert pod["terminationGracePeriodSeconds"] > pre_stop + drain
    # Endpoints are told by the readiness probe, too, before calls are refused.
    period = objects.container(deployment)["readinessProbe"]["periodSeconds"]
    assert pre_stop + seconds(environment["SANDBOX_BRIDGE_DRAIN_DELAY"]) >= 2 * period


@pytest.mark.parametrize("overlay", ["production", "minimal", "test"])
def test_what_it_may_buffer_fits_into_its_memory(cluster: Node, overlay: str) -> None:
    made = objects.parse(cluster, objects.kustomize(
        cluster, objects.KUBERNETES / "overlays" / overlay))
    deployment = objects.find(made, "Deployment")
    environment = objects.environment(deployment)
    buffers = (int(environment["SANDBOX_BRIDGE_MAX_CALL_BYTES"])
               + int(environment["SANDBOX_BRIDGE_GRPC_MEMORY_BYTES"])) >> 20
    streams = int(environment["SANDBOX_BRIDGE_MAX_STREAMS"]) * 40 >> 10
    limit = objects.container(deployment)["resources"]["limits"]["memory"]
    assert 40 + streams + buffers <= mib(limit)


def test_every_variable_is_a_flag(cluster: Node, production: list[objects.Object]) -> None:
    """A misspelt one would be ignored."""
    shown = subprocess.run([os.environ["SANDBOX_BRIDGE_BINARY"], "--help"], check=False,
                           capture_output=True, text=True)
    flags = set(re.findall(r"--([a-z_]+) \(", shown.stdout + shown.stderr))
    assert "upstream" in flags
    for name in objects.environment(objects.find(production, "Deployment")):
        assert name.removeprefix("SANDBOX_BRIDGE_").lower() in flags, name


def test_the_image_is_the_one_that_is_built(production: list[objects.Object]) -> None:
    header = Path("bridge/base/version.h").read_text()
    version = re.findall(r'kVersion\[\] = "(.*)"', header)[0]
    image = objects.container(objects.find(production, "Deployment"))["image"]
    assert image == f"localhost/sandbox-bridge:{version}"
    chart = Path("deploy/kubernetes/chart/Chart.yaml").read_text()
    assert re.findall(r"(?m)^(?:appV|v)ersion: (.*)$", chart) == [version, version]


def test_no_secret_is_in_it(production: list[objects.Object]) -> None:
    assert not [o for o in production if o["kind"] == "Secret"]


# ---- the guard is guarded: what is wrong is refused


def deployment_of(production: list[objects.Object]) -> objects.Object:
    return copy.deepcopy(objects.find(production, "Deployment"))


def pod_spec(deployment: objects.Object) -> Any:
    return deployment["spec"]["template"]["spec"]


def bridge_of(deployment: objects.Object) -> Any:
    return pod_spec(deployment)["containers"][0]


BROKEN_DEPLOYMENTS: dict[str, tuple[Callable[[objects.Object], object], str]] = {
    "a misspelt field": (
        lambda d: bridge_of(d).update(imagePullPolice="Never"), "imagePullPolice"),
    "a selector that matches nothing of it": (
        lambda d: d["spec"]["selector"]["matchLabels"].update({"a": "b"}), "selector"),
    "requests above limits": (
        lambda d: bridge_of(d)["resources"]["requests"].update(memory="9Gi"), "must be less than"),
    "a port that is none": (
        lambda d: bridge_of(d)["ports"][0].update(containerPort=70000), "containerPort"),
    "two handlers of one probe": (
        lambda d: bridge_of(d)["livenessProbe"].update(grpc={"port": 1}), "more than 1 handler"),
    "a gRPC probe of a named port": (
        lambda d: bridge_of(d)["startupProbe"]["grpc"].update(port="health"), "port"),
    "a mount of no volume": (
        lambda d: bridge_of(d)["volumeMounts"][0].update(name="nothing"), "Not found"),
    "a roll-out that can do nothing": (
        lambda d: d["spec"]["strategy"]["rollingUpdate"].update(maxSurge=0), "maxUnavailable"),
    "a variable that is a number": (
        lambda d: bridge_of(d)["env"][0].update(value=1), "value"),
    "two volumes of one name": (
        lambda d: pod_spec(d)["volumes"][1].update(name="upstream"), "duplicate entries"),
    "no image": (lambda d: bridge_of(d).pop("image"), "image"),
    "a sleep of no time at all": (
        lambda d: bridge_of(d)["lifecycle"]["preStop"]["sleep"].update(seconds=-1), "must be non-negative"),
    "a mode that is decimal": (
        lambda d: pod_spec(d)["volumes"][0]["secret"].update(defaultMode=4400), "defaultMode"),
}


@pytest.mark.parametrize("what", BROKEN_DEPLOYMENTS)
def test_a_broken_deployment_is_refused(cluster: Node, production: list[objects.Object],
                                        what: str) -> None:
    deployment = deployment_of(production)
    breaks, says = BROKEN_DEPLOYMENTS[what]
    breaks(deployment)
    refused(cluster, deployment, says)


BROKEN: dict[str, tuple[str, Callable[[objects.Object], object], str]] = {
    "an autoscaler from many to few": (
        "HorizontalPodAutoscaler", lambda o: o["spec"].update(minReplicas=30), "minReplicas"),
    "an autoscaler of a removed version": (
        "HorizontalPodAutoscaler", lambda o: o.update(apiVersion="autoscaling/v2beta2"),
        "no matches"),
    "a budget of both kinds": (
        "PodDisruptionBudget", lambda o: o["spec"].update(minAvailable=1), "cannot be both set"),
    "a policy with a block and a selector": (
        "NetworkPolicy", lambda o: o["spec"]["ingress"][0]["from"][0].update(
            ipBlock={"cidr": "10.0.0.0/8"}), "ipBlock"),
    "a policy of no block": (
        "NetworkPolicy", lambda o: o["spec"]["egress"][0].update(
            to=[{"ipBlock": {"cidr": "10.0.0.0/99"}}]), "cidr"),
    "a service account of a bad name": (
        "ServiceAccount", lambda o: o["metadata"].update(name="Sandbox_Bridge"), "Sandbox_Bridge"),
    "a service to a port of no name": (
        "Service", lambda o: o["spec"]["ports"][0].update(targetPort="not a name!"), "targetPort"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_object_is_refused(cluster: Node, production: list[objects.Object],
                                    what: str) -> None:
    kind, breaks, says = BROKEN[what]
    broken = copy.deepcopy(objects.find(production, kind))
    breaks(broken)
    refused(cluster, broken, says)


def refused(node: Node, broken: objects.Object, says: str) -> None:
    tried = node.try_kubectl(*STRICT, stdin=json.dumps(broken))
    assert tried.returncode != 0, tried.stdout
    assert says in tried.stderr


PRIVILEGES: dict[str, Callable[[Any], object]] = {
    "root": lambda spec: spec["securityContext"].update(runAsNonRoot=False, runAsUser=0),
    "capabilities": lambda spec: spec["containers"][0]["securityContext"].update(
        capabilities={"add": ["NET_ADMIN"]}),
    "more by setuid": lambda spec: spec["containers"][0]["securityContext"].update(
        allowPrivilegeEscalation=True),
    "every system call": lambda spec: spec["securityContext"].pop("seccompProfile"),
    "the network of the node": lambda spec: spec.update(hostNetwork=True),
    "files of the node": lambda spec: spec["volumes"].append(
        {"name": "host", "hostPath": {"path": "/etc"}}),
}


@pytest.mark.parametrize("what", PRIVILEGES)
def test_the_namespace_refuses_a_pod_with_privileges(
        cluster: Node, production: list[objects.Object], what: str) -> None:
    """Of the deployment such a thing is a warning only, since pods are what is enforced."""
    spec = pod_spec(deployment_of(production))
    # The example's account is not there after a dry run.
    spec["serviceAccountName"] = "default"
    pod: objects.Object = {"apiVersion": "v1", "kind": "Pod", "spec": spec,
                           "metadata": {"name": "one", "namespace": "sandbox-bridge"}}
    eventually(lambda: cluster.try_kubectl(
        "get", "serviceaccount", "default", "--namespace=sandbox-bridge").returncode == 0,
        "the namespace has its account")
    accept(cluster, json.dumps(pod))
    PRIVILEGES[what](spec)
    refused(cluster, pod, "violates PodSecurity")
