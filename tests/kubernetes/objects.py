# SPDX-License-Identifier: Apache-2.0
"""Manifests as dicts: rendered by kustomize or by the chart, read by kubectl itself."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from node.node import Node
from node.programs import run

KUBERNETES = Path("deploy/kubernetes")
Object = dict[str, Any]


def parse(node: Node, text: str) -> list[Object]:
    """YAML as kubectl understands it, without asking whether it is right."""
    printed = node.kubectl("create", "--dry-run=client", "--validate=false", "--output=json",
                           "--filename=-", stdin=text)
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(printed):
        value, at = decoder.raw_decode(printed, at)
        found += value["items"] if value["kind"] == "List" else [value]
        while at < len(printed) and printed[at].isspace():
            at += 1
    return found


def kustomize(node: Node, folder: Path) -> str:
    # In Bazel's tree every file is a link to somewhere else.
    return node.kubectl("kustomize", "--load-restrictor=LoadRestrictionsNone", str(folder))


def with_component(node: Node, overlay: str, component: str, scratch: Path) -> str:
    """An overlay as it comes out with one more component."""
    def relative(path: Path) -> str:
        return os.path.relpath(path.resolve(), scratch.resolve())

    (scratch / "kustomization.yaml").write_text(json.dumps({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "namespace": "sandbox-bridge",
        "resources": [relative(KUBERNETES / "overlays" / overlay)],
        "components": [relative(KUBERNETES / "components" / component)]}))
    return kustomize(node, scratch)


def chart(node: Node, values: Path | None = None, namespace: str = "sandbox-bridge") -> str:
    """What Helm makes of the chart. Raises Failed with Helm's words."""
    given = ["--values", str(values)] if values else []
    return run(node.bin / "helm-template", "bridge", KUBERNETES / "chart", "--namespace", namespace,
               *given)


def find(objects: list[Object], kind: str, name: str = "sandbox-bridge") -> Object:
    (found,) = [o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name]
    return found


def container(deployment: Object) -> Object:
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(only)


def environment(deployment: Object) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container(deployment)["env"]}
