# SPDX-License-Identifier: Apache-2.0
"""The programs that the benches run, each on a free port of this machine, ended with the block."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from program import BRIDGE_LISTENS, OPENSANDBOX_LISTENS, Program, process_status

KEY = "bench"
DAEMON_PORT = 44772


class Measured(Program):
    """A program that tells what it costs."""

    def status(self, field: str) -> int:
        """A number of /proc/PID/status: VmRSS and VmHWM in KiB, Threads."""
        return process_status(self.pid, field)


def _environment(key: str) -> dict[str, str]:
    # It makes every start of node three times slower, which would flatter everything else.
    env = {name: value for name, value in os.environ.items() if name != "NODE_EXTRA_CA_CERTS"}
    return env | {"SANDBOX_BRIDGE_API_KEY": key}


class Box:
    """A sandbox and where its daemon is."""

    def __init__(self, name: str, endpoint: dict[str, Any]) -> None:
        self.name = name
        self.daemon_url = "http://" + endpoint["endpoint"]
        self.headers = [f"{key}: {value}" for key, value in (endpoint.get("headers") or {}).items()]


class Place:
    """An OpenSandbox, with what is needed to start bridges before it and to measure with."""

    def __init__(self, bins: Path, stack: contextlib.ExitStack, url: str, key: str) -> None:
        self.bins = bins
        self.url = url
        self.key = key
        self.client_program = bins / "tests/bench/bench_client"
        self._stack = stack

    def start(self, command: list[str | Path], says: str) -> Measured:
        program = Measured(*command, says=says, environment=_environment(self.key))
        self._stack.callback(program.stop)
        return program

    def bridge_command(self, upstream: str) -> list[str | Path]:
        return [
            self.bins / "bridge/sandbox_bridge",
            f"--upstream={upstream}",
            "--listen=127.0.0.1:0",
        ]

    def start_bridge(self, upstream: str) -> Measured:
        return self.start(self.bridge_command(upstream), BRIDGE_LISTENS)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """One request to the OpenSandbox."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"))
        with contextlib.closing(connection):
            headers = {"OPEN-SANDBOX-API-KEY": self.key, "Content-Type": "application/json"}
            connection.request(method, path, body and json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: status {answer.status}")
            return json.loads(text) if text else None

    def make_sandbox(self, image: str, env: dict[str, str] | None = None) -> Box:
        made = self.ask(
            "POST",
            "/v1/sandboxes",
            {
                "image": {"uri": image},
                "entrypoint": ["sleep", "infinity"],
                "timeout": 7200,
                "env": env or {},
                "resourceLimits": {"cpu": "2", "memory": "8Gi"},
            },
        )
        name = made["id"]
        self._stack.callback(lambda: self.ask("DELETE", f"/v1/sandboxes/{name}"))
        for _ in range(600):
            if self.ask("GET", f"/v1/sandboxes/{name}")["status"]["state"] == "Running":
                break
            time.sleep(0.05)
        box = Box(name, self.ask("GET", f"/v1/sandboxes/{name}/endpoints/{DAEMON_PORT}"))
        for _ in range(600):
            # It raises unless the answer is 2xx.
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{box.daemon_url}/ping"):
                return box
            time.sleep(0.05)
        raise RuntimeError("the sandbox's daemon did not answer")

    # What the rows measure with.

    def client(self, *words: str | Path, threads: int = 1) -> dict[str, Any]:
        """One run of bench_client; raises when any call of it failed."""
        run = subprocess.run(
            [self.client_program, *map(str, words), f"--threads={threads}"],
            stdout=subprocess.PIPE,
            env=_environment(self.key),
            check=False,
        )
        sample: dict[str, Any] = json.loads(run.stdout)
        if sample["failures"] or not sample["items"]:
            raise RuntimeError(f"{words[0]}: {sample['failures']} failed: {sample['first_failure']}")
        return sample

    def sdk(self, *words: str) -> float:
        """Seconds that the official SDK takes for one of what sdk_client.py can do."""
        run = subprocess.run(
            [sys.executable, Path(__file__).with_name("sdk_client.py"), self.url, *words],
            stdout=subprocess.PIPE,
            env=_environment(self.key),
            check=True,
        )
        return float(run.stdout)

    def direct(self, what: str, url: str, headers: list[str], *words: str, **more: Any) -> Any:
        return self.client(what, f"--url={url}", f"--headers={','.join(headers)}", *words, **more)


class World(Place):
    """A local OpenSandbox with a sandbox, a bridge before it, and nginx with one static answer with a
    bridge of its own before it: an upstream that costs nothing makes the bridge's own cost plain."""

    def __init__(self, bins: Path, stack: contextlib.ExitStack) -> None:
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        key_file = self.folder / "key"
        key_file.write_text(KEY)
        upstream = Measured(
            bins / "bridge/local/local_opensandbox",
            "--listen=127.0.0.1:0",
            f"--api_key_file={key_file}",
            says=OPENSANDBOX_LISTENS,
            environment=_environment(KEY),
        )
        stack.callback(upstream.stop)
        super().__init__(bins, stack, upstream.place, KEY)
        self.bridge = self.start_bridge(self.url)
        box = self.make_sandbox("base")
        self.sandbox, self.daemon_url, self.daemon_headers = box.name, box.daemon_url, box.headers
        self._sandboxes = [self.sandbox]
        self.static_url, self.hop_url = self._start_nginx()
        self.static_bridge = self.start_bridge(self.static_url)

    def sandboxes(self, count: int) -> list[str]:
        """So many of them: a daemon runs at most 512 commands."""
        while len(self._sandboxes) < count:
            self._sandboxes.append(self.make_sandbox("base").name)
        return self._sandboxes[:count]

    def _start_nginx(self) -> tuple[str, str]:
        """A place with one static answer, and one that passes everything on to the sandbox's daemon."""
        answer = self.folder / "root/v1/sandboxes" / self.sandbox
        answer.parent.mkdir(parents=True)
        answer.write_text(json.dumps(self.ask("GET", f"/v1/sandboxes/{self.sandbox}")))
        port, hop = _free_port(), _free_port()
        daemon, _, path = self.daemon_url.removeprefix("http://").partition("/")
        config = self.folder / "nginx.conf"
        config.write_text(
            f"""daemon off; master_process off; worker_processes 1; pid {self.folder}/nginx.pid;
error_log stderr notice;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000; default_type application/json;
  client_body_temp_path {self.folder}/t; proxy_temp_path {self.folder}/t;
  fastcgi_temp_path {self.folder}/t; uwsgi_temp_path {self.folder}/t; scgi_temp_path {self.folder}/t;
  server {{ listen 127.0.0.1:{port}; root {self.folder}/root; }}
  upstream daemon {{ server {daemon}; keepalive 16; }}
  server {{
    listen 127.0.0.1:{hop}; client_max_body_size 0; client_body_buffer_size 512k;
    location / {{
      proxy_pass http://daemon; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_request_buffering off;
    }}
  }}
}}
"""
        )
        (self.folder / "t").mkdir()
        self.start(["/usr/sbin/nginx", "-c", config, "-p", self.folder], r"(start worker|using the)")
        return f"http://127.0.0.1:{port}", f"http://127.0.0.1:{hop}/{path}".rstrip("/")

    def through(self, what: str, *words: str, bridge: Measured | None = None, **more: Any) -> Any:
        address = (bridge or self.bridge).place
        return self.client(what, f"--bridge={address}", f"--sandbox={self.sandbox}", *words, **more)

    def around(self, what: str, url: str, *words: str, **more: Any) -> Any:
        headers = [f"OPEN-SANDBOX-API-KEY: {KEY}", *self.daemon_headers]
        return self.direct(what, url, headers, *words, **more)


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def world(bins: Path) -> Iterator[World]:
    with contextlib.ExitStack() as stack:
        yield World(bins, stack)
