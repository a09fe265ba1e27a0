# SPDX-License-Identifier: Apache-2.0
"""What the tests of the plugin's process share: the local OpenSandbox, a bridge in front of it, and
the plugin with its own bridge ("own") or as a client of that one ("remote")."""

from __future__ import annotations

import http.server
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))

from epp_host import Plugin
from program import BRIDGE_LISTENS, OPENSANDBOX_LISTENS, Program
from sdk_host import Sdk, plugin_directory

# Of the server that runs already (tests/integration/opensandbox), else of the local one.
RUNNING = os.environ.get("OPENSANDBOX_URL")
API_KEY = (
    Path(os.environ["OPENSANDBOX_API_KEY_FILE"]).read_text() if RUNNING else "epp-test-key-0123456789"
)
# Where nothing listens.
NOWHERE = {"base_url": "http://127.0.0.1:1"}


def program(name: str) -> str:
    return str(Path(os.environ[name]).absolute())


@pytest.fixture(scope="session")
def opensandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of an OpenSandbox that wants API_KEY."""
    if unavailable := os.environ.get("OPENSANDBOX_UNAVAILABLE"):
        pytest.skip(f"no real OpenSandbox here: {unavailable}")
    if RUNNING:
        yield RUNNING
        return
    argv = [program("LOCAL_OPENSANDBOX"), "--listen=127.0.0.1:0"]
    environment = {**os.environ, "LOCAL_OPENSANDBOX_API_KEY": API_KEY}
    with Program(*argv, says=OPENSANDBOX_LISTENS, environment=environment) as server:
        yield server.place


@pytest.fixture(scope="session")
def bridge(opensandbox: str) -> Iterator[str]:
    """Address of a bridge in front of it."""
    argv = [program("SANDBOX_BRIDGE"), "--listen=127.0.0.1:0", f"--upstream={opensandbox}"]
    environment = {**os.environ, "SANDBOX_BRIDGE_API_KEY": API_KEY}
    with Program(*argv, says=BRIDGE_LISTENS, environment=environment) as server:
        yield server.place


@pytest.fixture(scope="session", params=["own", "remote"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def config(mode: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """What `initialize` gets, so that both modes reach the same OpenSandbox."""
    if mode == "own":
        return {"base_url": request.getfixturevalue("opensandbox"), "api_key": API_KEY}
    return {"bridge_address": request.getfixturevalue("bridge")}


def settings(config: dict[str, Any]) -> dict[str, str]:
    """The same as variables of the host's environment."""
    return {f"ABX_OPENSANDBOX_{name.upper()}": str(value) for name, value in config.items()}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Sdk:
    """The real host with the package installed, in a home of its own."""
    sdk = Sdk(tmp_path_factory.mktemp("home"))
    assert sdk.providers("install", str(plugin_directory()), "--yes").code == 0
    return sdk


Spawn = Callable[..., Plugin]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Starts plugins and sees to their end. With a config it initializes, too."""
    plugins: list[Plugin] = []

    def start(config: dict[str, Any] | None = None, **kwargs: Any) -> Plugin:
        data = tmp_path / f"data{len(plugins)}"
        data.mkdir()
        plugin = Plugin(program("PROVIDER"), str(data), **kwargs)
        plugins.append(plugin)
        if config is not None:
            plugin.initialize(config)
        return plugin

    yield start
    for plugin in plugins:
        if plugin.process.poll() is None:
            plugin.close()
        plugin.check()


@pytest.fixture
def plugin(spawn: Spawn, config: dict[str, Any]) -> Plugin:
    return spawn(config)


@pytest.fixture(scope="module")
def shared_sandbox(
    config: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Id of a sandbox for tests that leave it as it was."""
    data = tmp_path_factory.mktemp("shared")
    plugin = Plugin(program("PROVIDER"), str(data))
    plugin.initialize(config)
    sandbox_id = plugin.create()["sandbox_id"]
    yield sandbox_id
    plugin.call("sandbox.kill", {"sandbox_id": sandbox_id})
    plugin.close()


class SlowOpenSandbox:
    """An OpenSandbox whose sandboxes never become ready, and that remembers what was deleted."""

    def __init__(self) -> None:
        self.delete_delay = 0.0
        self._changed = threading.Condition()
        self._created: list[str] = []
        self._alive: set[str] = set()
        self._deleted: list[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def reply(self, status: int, body: dict[str, Any] | None) -> None:
                data = b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def record(self, sandbox_id: str) -> dict[str, Any]:
                return {
                    "id": sandbox_id,
                    "image": {"uri": "python:3.12-slim"},
                    "status": {"state": "Pending", "reason": "CREATING", "message": ""},
                    "metadata": {},
                    "entrypoint": ["tail", "-f", "/dev/null"],
                    "createdAt": "2026-01-01T00:00:00Z",
                    "expiresAt": "2036-01-01T00:00:00Z",
                }

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                with outer._changed:
                    sandbox_id = f"slow-{len(outer._created)}"
                    outer._created.append(sandbox_id)
                    outer._alive.add(sandbox_id)
                    outer._changed.notify_all()
                self.reply(202, self.record(sandbox_id))

            def do_GET(self) -> None:
                parts = self.path.split("?")[0].strip("/").split("/")
                with outer._changed:
                    alive = parts[-1] in outer._alive
                if parts[-1] == "sandboxes":
                    self.reply(
                        200,
                        {
                            "items": [],
                            "pagination": {
                                "page": 1,
                                "pageSize": 20,
                                "totalItems": 0,
                                "totalPages": 0,
                                "hasNextPage": False,
                            },
                        },
                    )
                elif alive:
                    self.reply(200, self.record(parts[-1]))
                else:
                    self.reply(404, {"code": "DOCKER::SANDBOX_NOT_FOUND", "message": "gone"})

            def do_DELETE(self) -> None:
                sandbox_id = self.path.split("?")[0].rstrip("/").split("/")[-1]
                if outer.delete_delay:
                    threading.Event().wait(outer.delete_delay)
                with outer._changed:
                    outer._alive.discard(sandbox_id)
                    outer._deleted.append(sandbox_id)
                    outer._changed.notify_all()
                self.reply(204, None)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def wait_for_create(self) -> str:
        with self._changed:
            assert self._changed.wait_for(lambda: self._created, 10)
            return self._created[-1]

    def wait_for_delete(self, sandbox_id: str, timeout: float) -> None:
        with self._changed:
            assert self._changed.wait_for(
                lambda: sandbox_id in self._deleted, timeout
            ), "not deleted"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def slow_opensandbox() -> Iterator[SlowOpenSandbox]:
    server = SlowOpenSandbox()
    yield server
    server.stop()
