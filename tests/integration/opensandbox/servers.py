# SPDX-License-Identifier: Apache-2.0
"""A Docker engine and an opensandbox-server of the tests' own, as processes.

Both keep everything below the directory they are given and are ended by process id. An engine that
this machine cannot run is `Unusable`, with the last words of its log: a reason to skip. Everything
else that goes wrong is a failure. Python alone is needed.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

# Of a start on a machine that is busy with other things.
START_SECONDS = 180.0
STOP_SECONDS = 30.0
# Where there is such an image, sandboxes can have network policies.
EGRESS_IMAGE = "egress:test"
PATH_OF_IMAGES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


# Sections of the server's configuration file; None leaves one out.
ServerSettings = Mapping[str, Mapping[str, object] | None]


class Unusable(Exception):
    """What is needed cannot run on this machine; the text says why."""


class Daemon:
    """A program that runs until it is stopped."""

    failure: type[Exception] = RuntimeError

    def __init__(self, command: list[str], log: Path,
                 environment: Mapping[str, str] | None = None) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                             stderr=output, env=environment)

    def wait_for(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if self._process.poll() is not None:
                raise self.failure(f"{what} ended at once: {self.last_words()}")
            if time.monotonic() > deadline:
                self.stop()
                raise self.failure(f"{what} did not answer within {START_SECONDS:g} s: "
                                   f"{self.last_words()}")
            time.sleep(0.05)

    def last_words(self) -> str:
        """The end of the log, on one line."""
        text = self.log.read_text(encoding="utf-8", errors="replace").strip()
        return " | ".join(text.splitlines()[-3:])

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()


class Docker(Daemon):
    """dockerd with a root and a socket below `directory`, which must be short (a socket's path
    has 107 bytes). Containers and control groups are removed when it is stopped."""

    failure = Unusable

    def __init__(self, directory: Path) -> None:
        for program in ("dockerd", "docker", "iptables"):
            if shutil.which(program) is None:
                raise Unusable(f"no {program} on this machine; third_party/install installs it")
        self.host = f"unix://{directory}/docker.sock"
        self._environment = {**os.environ, "DOCKER_HOST": self.host,
                             "DOCKER_CONFIG": str(directory / "client")}
        self._cgroup = f"/sandbox-bridge-test-{os.getpid()}-{time.monotonic_ns()}"
        super().__init__(
            ["dockerd", f"--data-root={directory}/data", f"--exec-root={directory}/exec",
             f"--host={self.host}", f"--pidfile={directory}/docker.pid",
             f"--cgroup-parent={self._cgroup}", "--log-level=warn"],
            directory / "dockerd.log")
        self.wait_for(lambda: self._run("version", check=False).returncode == 0, "dockerd")

    def _run(self, *arguments: str, stdin: BinaryIO | None = None,
             check: bool = True) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["docker", *arguments], check=check, env=self._environment,
                              stdin=stdin or subprocess.DEVNULL, capture_output=True)

    def text(self, *arguments: str) -> str:
        """What a docker command prints."""
        return self._run(*arguments).stdout.decode().strip()

    def make_image(self, name: str, write: Callable[[BinaryIO], None], *changes: str) -> None:
        """An image of one layer from what `write` writes as a tar stream."""
        options = [word for change in changes for word in ("--change", change)]
        importing = subprocess.Popen(["docker", "import", *options, "-", name],
                                     env=self._environment, stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert importing.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # docker says why
            write(importing.stdin)
        _, complaint = importing.communicate()
        if importing.returncode != 0:
            raise RuntimeError(f"docker import of {name}: {complaint.decode(errors='replace')}")

    def stop(self) -> None:
        containers = self._run("ps", "--all", "--quiet", check=False).stdout.decode().split()
        if containers:
            self._run("rm", "--force", "--volumes", *containers, check=False)
        super().stop()
        for hierarchy in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*")):
            group = hierarchy / self._cgroup.lstrip("/")
            if group.is_dir():
                group.rmdir()


class OpenSandboxServer(Daemon):
    """opensandbox-server on the Docker engine that DOCKER_HOST names.

    `settings` are sections of its configuration file that override those below, e.g.
    {"docker": {"network_mode": "host"}}.
    """

    def __init__(self, program: Path, directory: Path, *, docker_host: str, port: int,
                 execd_image: str, settings: ServerSettings | None = None,
                 api_key: str = "key-of-the-tests") -> None:
        if not program.exists():
            raise Unusable("no opensandbox-server; third_party/install --opensandbox installs it")
        directory.mkdir(parents=True, exist_ok=True)
        self._port = port
        self.url = f"http://127.0.0.1:{port}"
        self.api_key = api_key
        self.volumes = directory / "volumes"
        self.volumes.mkdir(exist_ok=True)
        sections = _configuration(directory, port, execd_image, api_key, self.volumes)
        for section, values in (settings or {}).items():
            if values is None:
                del sections[section]
            else:
                sections[section] = {**sections.get(section, {}), **values}
        (directory / "server.toml").write_text(_toml(sections), encoding="utf-8")
        super().__init__(
            [str(program), "--config", str(directory / "server.toml")], directory / "server.log",
            {"DOCKER_HOST": docker_host, "PATH": os.environ["PATH"], "HOME": str(directory)})
        self.wait_for(self._healthy, "opensandbox-server")

    def _healthy(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _configuration(directory: Path, port: int, execd_image: str, api_key: str,
                   volumes: Path) -> dict[str, dict[str, object]]:
    """The smallest complete one for Docker's bridge network, all on loopback."""
    return {
        "server": {"host": "127.0.0.1", "port": port, "max_sandbox_timeout_seconds": 86400,
                   "api_key": api_key},
        "proxy": {"resolve_internal": True},
        "log": {"level": "INFO"},
        "runtime": {"type": "docker", "execd_image": execd_image},
        "storage": {"allowed_host_paths": [str(volumes)]},
        "store": {"type": "sqlite", "path": str(directory / "store.db")},
        "docker": {"network_mode": "bridge", "port_range_min": 40000, "port_range_max": 60000,
                   "publish_host": "127.0.0.1",
                   "drop_capabilities": ["AUDIT_WRITE", "MKNOD", "NET_ADMIN", "NET_RAW",
                                         "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_TIME",
                                         "SYS_TTY_CONFIG"],
                   "no_new_privileges": True, "apparmor_profile": "", "seccomp_profile": "",
                   "pids_limit": 4096},
        "ingress": {"mode": "direct"},
        "egress": {"image": EGRESS_IMAGE, "mode": "dns"},
    }


def _toml(sections: Mapping[str, Mapping[str, object]]) -> str:
    """TOML of plain values, which are written as in JSON."""
    lines = []
    for section, values in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"
