# SPDX-License-Identifier: Apache-2.0
"""The node, OpenSandbox on it and the deployed bridge: once for all tests, in this order.

A node that does not come up fails every test, with the ends of the logs as its message.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import build_image
import files
import oci
import pytest
from deployment import Deployment
from node import settings
from node.node import ROOT, Node


def pytest_sessionstart() -> None:
    # Relative names in the environment are of the runfiles; commands run elsewhere, too.
    for name in ("BRIDGE_IMAGE", "CLIENT_IMAGE", "LOCAL_OPENSANDBOX"):
        os.environ[name] = str(Path(os.environ[name]).absolute())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    program = Path(os.environ["SANDBOX_BRIDGE_BINARY"]).read_bytes()
    if b"__asan_init" in program or b"__tsan_init" in program:
        for item in items:
            item.add_marker(pytest.mark.skip("a sanitizer wants more memory than the pods get"))


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    began = time.monotonic()
    programs = Path(os.environ["CLUSTER_PROGRAMS"])
    pause = pause_image(programs / "pause", tmp_path_factory.mktemp("pause"))
    images = [Path(os.environ[name]) for name in ("BRIDGE_IMAGE", "CLIENT_IMAGE")]
    node = Node(programs, [pause, *images])
    try:
        node.start()
        print(f"node ready after {time.monotonic() - began:.1f} s")
        yield node
    finally:
        node.stop()
        keep_logs()


def pause_image(program: Path, folder: Path) -> Path:
    image = oci.Image(name="localhost/pause:1", architecture=build_image.architecture(),
                      layers=[[files.File("pause", program.read_bytes(), 0o755)]], symlinks={},
                      config={"Entrypoint": ["/pause"], "User": "65532:65532"})
    archive, _ = oci.layout(image)
    (folder / "image").write_bytes(archive)
    return folder / "image"


def keep_logs() -> None:
    """Bazel keeps this folder; the node's own is in memory and goes with its namespaces."""
    kept = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
    if kept:
        shutil.copytree(ROOT / "logs", kept, dirs_exist_ok=True)
        if (ROOT / "pods").is_dir():
            shutil.copytree(ROOT / "pods", Path(kept) / "pods", dirs_exist_ok=True)


@pytest.fixture(scope="session")
def deployment(node: Node) -> Deployment:
    """The overlay `test`, with two replicas, in front of a local OpenSandbox of the node."""
    deployment = Deployment(node)
    key = ROOT / "opensandbox-key"
    key.write_text(deployment.key)
    node.programs.start("opensandbox", os.environ["LOCAL_OPENSANDBOX"], "--isolation=none",
                        f"--listen={settings.NODE_IP}:8080", f"--api_key_file={key}",
                        environment={"TMPDIR": str(ROOT)})
    log = ROOT / "logs/opensandbox.log"
    node.programs.await_ready("opensandbox", lambda: "http://" in log.read_text())
    deployment.install()
    return deployment


@pytest.fixture
def replicas(deployment: Deployment) -> Deployment:
    """The deployment, healed from what a test before it did: two pods, ready and in the service."""
    deployment.kubectl("scale", "deployment/sandbox-bridge", "--replicas=2")
    deployment.await_ready(2)
    return deployment
