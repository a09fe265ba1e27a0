# SPDX-License-Identifier: Apache-2.0
"""The autoscaler adds replicas under load, by the CPU that metrics-server reports."""

from __future__ import annotations

import json
from pathlib import Path

import bridge_client as client
import objects
from deployment import NAME, NAMESPACE, Deployment
from node.node import eventually

FILE = Path("deploy/kubernetes/components/autoscaling/horizontal-pod-autoscaler.yaml")


def test_load_brings_replicas(replicas: Deployment) -> None:
    node = replicas.node
    node.start_metrics()
    (scaler,) = objects.parse(node, FILE.read_text())
    scaler["metadata"]["namespace"] = NAMESPACE
    scaler["spec"].update(minReplicas=2, maxReplicas=4)
    eventually(lambda: node.try_kubectl("top", "pods", f"--namespace={NAMESPACE}").returncode == 0,
               "metrics-server reports", 90, every=1)
    channels = [replicas.access().channel(replicas.service()) for _ in range(4)]
    turn = iter(range(1 << 60))

    def call() -> None:
        client.server_version(channels[next(turn) % len(channels)])

    node.apply(json.dumps(scaler))
    try:
        with client.Load(call, 4, pause=0) as load:
            eventually(lambda: len(replicas.ready_addresses()) > 2, "there are more replicas", 120,
                       every=1)
        assert load.failures == []
        found = node.get("hpa", NAME, f"--namespace={NAMESPACE}")
        conditions = {c["type"]: c["status"] for c in found["status"]["conditions"]}
        assert conditions["ScalingActive"] == "True"
    finally:
        replicas.kubectl("delete", "hpa", NAME)
        for channel in channels:
            channel.close()
