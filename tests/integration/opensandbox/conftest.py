# SPDX-License-Identifier: Apache-2.0
"""What the tests on a real OpenSandbox share: one server, one bridge in front of it, its clients.

in_opensandbox.sh has started Docker and the server and tells the place in the environment; where
that could not be done every test here is skipped with its reason.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from astrabox_sandbox_bridge.client import BridgeClient, BridgeError, Options, v1
from opensandbox import Sandbox as SdkSandbox
from opensandbox.config import ConnectionConfig
from real_bridge import RealBridge
from servers import START_SECONDS, OpenSandboxServer, ServerSettings

T = TypeVar("T")


@dataclass(frozen=True)
class OpenSandbox:
    """The server that the tests talk to."""

    url: str
    api_key: str
    image: str
    static_image: str
    busybox_image: str
    directory: Path

    @property
    def address(self) -> str:
        return self.url.removeprefix("http://")

    def server_log(self) -> str:
        return (self.directory / "server.log").read_text(encoding="utf-8", errors="replace")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The page is made of what the others saw."""
    items.sort(key=lambda item: item.path.name == "compatibility_test.py")


@pytest.fixture(scope="session")
def opensandbox() -> OpenSandbox:
    reason = os.environ.get("OPENSANDBOX_UNAVAILABLE")
    if reason:
        pytest.skip(f"no real OpenSandbox here: {reason}")
    return OpenSandbox(
        os.environ["OPENSANDBOX_URL"],
        Path(os.environ["OPENSANDBOX_API_KEY_FILE"]).read_text(encoding="utf-8"),
        os.environ["OPENSANDBOX_IMAGE"],
        os.environ["OPENSANDBOX_STATIC_IMAGE"],
        os.environ["OPENSANDBOX_BUSYBOX_IMAGE"],
        Path(os.environ["OPENSANDBOX_DIRECTORY"]),
    )


@pytest.fixture(scope="session")
def image(opensandbox: OpenSandbox) -> str:
    return opensandbox.image


class Loop:
    """One event loop for all tests: channels and SDK objects belong to theirs."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner

    def __call__(self, work: Coroutine[Any, Any, T], seconds: float = 120.0) -> T:
        return self._runner.run(asyncio.wait_for(work, seconds))


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    with asyncio.Runner() as runner:
        yield Loop(runner)


@pytest.fixture(scope="session")
def bridge(opensandbox: OpenSandbox) -> Iterator[RealBridge]:
    key = os.environ["OPENSANDBOX_API_KEY_FILE"]
    with RealBridge(opensandbox.url, f"--api_key_file={key}") as running:
        yield running


@pytest.fixture(scope="session")
def client(bridge: RealBridge, loop: Loop) -> Iterator[BridgeClient]:
    async def open_client() -> BridgeClient:
        return BridgeClient(Options(bridge.place))

    opened = loop(open_client())
    yield opened
    loop(opened.close())


@pytest.fixture(scope="session")
def proxied(opensandbox: OpenSandbox, loop: Loop) -> Iterator[BridgeClient]:
    """A second bridge, which reaches sandboxes through the server only."""
    flags = [f"--api_key_file={os.environ['OPENSANDBOX_API_KEY_FILE']}", "--use_server_proxy"]

    async def open_client(address: str) -> BridgeClient:
        return BridgeClient(Options(address))

    with RealBridge(opensandbox.url, *flags) as running:
        opened = loop(open_client(running.place))
        yield opened
        loop(opened.close())


@pytest.fixture(scope="session")
def sdk_config(opensandbox: OpenSandbox) -> ConnectionConfig:
    return ConnectionConfig(domain=opensandbox.address, api_key=opensandbox.api_key,
                            request_timeout=timedelta(seconds=60), disable_metrics=True)


@pytest.fixture(scope="session")
def sandbox_id(opensandbox: OpenSandbox, client: BridgeClient, loop: Loop) -> Iterator[str]:
    """A sandbox that tests share which leave it as it was."""
    made = loop(client.sandboxes.create(v1.SandboxSpec(image=opensandbox.image)))
    yield made.sandbox.sandbox_id
    loop(client.sandboxes.delete(made.sandbox.sandbox_id))


@pytest.fixture(scope="session")
def sdk_sandbox(sandbox_id: str, sdk_config: ConnectionConfig, loop: Loop) -> Iterator[SdkSandbox]:
    """The same one in the hands of the official SDK."""
    connected = loop(SdkSandbox.connect(sandbox_id, connection_config=sdk_config))
    yield connected
    loop(connected.close())


class Results:
    """What was seen in this run, for docs/compatibility.md."""

    def __init__(self) -> None:
        # {scenario: {way: "" or the reason of a difference}}
        self.scenarios: dict[str, dict[str, str]] = {}
        # {feature: (level, note)}, in the order in which they were seen
        self.features: dict[str, tuple[str, str]] = {}
        # {daemon: {feature: (level, note)}}, as GetCapabilities answers
        self.capabilities: dict[str, dict[str, tuple[str, str]]] = {}
        self.versions: dict[str, str] = {}

    def add(self, scenario: str, way: str, reason: str) -> None:
        self.scenarios.setdefault(scenario, {})[way] = reason

    def works(self, feature: str, level: str = "FULL", note: str = "") -> None:
        """A feature of the upstream, seen through the bridge."""
        self.features[feature] = (level, note)


@pytest.fixture(scope="session")
def results() -> Results:
    return Results()


class Sandboxes:
    """Sandboxes of one test, deleted when it ends."""

    def __init__(self, client: BridgeClient, loop: Loop, image: str) -> None:
        self._client = client
        self._loop = loop
        self.image = image
        self._made: list[str] = []

    def make(self, request_id: str = "", **spec: Any) -> str:
        if not {"image", "snapshot_id", "template_id"} & spec.keys():
            spec["image"] = self.image
        made = self._loop(self._client.sandboxes.create(
            v1.SandboxSpec(**spec), request_id=request_id))
        self._made.append(made.sandbox.sandbox_id)
        return made.sandbox.sandbox_id

    def make_stock(self, more: Mapping[str, str] | None = None) -> str:
        """One whose daemon has the routes and habits of the 1.1.0 one and nothing else."""
        env = {"EXECD_EXTRAS": "false", "EXECD_COMPAT": "1.1.0", **(more or {})}
        return self.make(env=[v1.EnvVar(name=name, value=value) for name, value in env.items()])

    def delete_all(self) -> None:
        async def work() -> None:
            await asyncio.gather(*(self._client.sandboxes.delete(one) for one in self._made))

        self._loop(work())


@pytest.fixture
def sandboxes(client: BridgeClient, loop: Loop, opensandbox: OpenSandbox) -> Iterator[Sandboxes]:
    made = Sandboxes(client, loop, opensandbox.image)
    yield made
    made.delete_all()


def docker(*words: str) -> str:
    """A command to the engine behind the server's back; what it printed."""
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout


def in_container(sandbox_id: str, shell: str) -> str:
    """Runs a line in a sandbox without its daemon."""
    return docker("exec", f"sandbox-{sandbox_id}", "sh", "-c", shell)


def reason_of(loop: Loop, work: Coroutine[Any, Any, object]) -> str:
    """Why the bridge refuses it."""
    with pytest.raises(BridgeError) as refused:
        loop(work)
    return refused.value.reason


def start_server(directory: Path, settings: ServerSettings | None) -> OpenSandboxServer:
    """Another server on the same engine; `settings` are what its configuration has beside."""
    return OpenSandboxServer(
        Path(os.environ["OPENSANDBOX_SERVER"]), directory, docker_host=os.environ["DOCKER_HOST"],
        port=8081, execd_image="execd:test", settings=settings)


class SecondServer:
    """One that can be stopped and started again."""

    def __init__(self, directory: Path, settings: ServerSettings | None) -> None:
        self._directory, self._settings = directory, settings
        self.start()

    def start(self) -> None:
        self._server = start_server(self._directory, self._settings)

    def stop(self) -> None:
        self._server.stop()

    def bridge(self) -> RealBridge:
        key = self._directory / "key"
        key.write_text(self._server.api_key, encoding="utf-8")
        return RealBridge(self._server.url, f"--api_key_file={key}")


@pytest.fixture
def second_server(
    opensandbox: OpenSandbox, tmp_path: Path, loop: Loop, request: pytest.FixtureRequest
) -> Iterator[SecondServer]:
    # The loop runs meanwhile: streams of other tests may be open.
    settings = getattr(request, "param", None)
    server = loop(asyncio.to_thread(SecondServer, tmp_path, settings), START_SECONDS)
    yield server
    server.stop()
