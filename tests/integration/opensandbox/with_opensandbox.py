# SPDX-License-Identifier: Apache-2.0
"""Runs a command beside a real OpenSandbox: Docker engine, opensandbox-server, our execd.

    python3 with_opensandbox.py COMMAND...

Everything lives in namespaces of its own (mounts, processes, network) and on a tmpfs, so that
nothing of it can outlive this program, whatever ends it, and nothing on the machine is in its way:
not a Docker engine, not a port. The command runs inside. It gets

    OPENSANDBOX_URL            http://127.0.0.1:8080
    OPENSANDBOX_API_KEY_FILE   the server's key
    OPENSANDBOX_IMAGE          an image with a shell, coreutils, procps and Python; python:3.12-slim
                               and debian:12 have the same files
    OPENSANDBOX_STATIC_IMAGE   an image of one static program (/execd): no shell, no libc, no /tmp
    OPENSANDBOX_BUSYBOX_IMAGE  an image of busybox and libc: no bash, no coreutils, no Python
    OPENSANDBOX_DIRECTORY      server.log, dockerd.log, volumes/ (a host path that may be mounted)
    DOCKER_HOST                the engine

or, where that cannot be had, OPENSANDBOX_UNAVAILABLE: the reason, for the command to skip with. The
environment names the programs: EXECD_BINARY, BOOTSTRAP_BINARY, OPENSANDBOX_SERVER.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import images
from program import is_sanitized
from servers import PATH_OF_IMAGES, Docker, OpenSandboxServer, Unusable

SANDBOX_IMAGE = "sandbox:test"
# What tests ask for that do not know where they run.
OTHER_NAMES = ("python:3.12-slim", "debian:12")
STATIC_IMAGE = "static:test"
BUSYBOX_IMAGE = "busybox:test"
EXECD_IMAGE = "execd:test"
PORT = 8080

_DAEMON_PORT = 44772
_RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"

_INSIDE = "OPENSANDBOX_NAMESPACES"
_NAMESPACES = ["unshare", "--mount", "--propagation=private", "--pid", "--net", "--fork",
               "--kill-child", "--mount-proc"]


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    reason = enter([sys.executable, str(Path(__file__).resolve()), *command])
    return _without(command, reason) if reason else _inside(command)


def enter(again: list[str]) -> str:
    """Goes on as the program `again`, in namespaces of its own. Returns "" where it is in them
    already, else why it cannot be."""
    if os.environ.get(_INSIDE):
        return ""
    tried = subprocess.run([*_NAMESPACES, "mount", "-t", "tmpfs", "tmpfs", "/run"],
                           capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return f"no namespaces for a Docker engine: {tried.stderr.strip()}"
    # A shell is process 1 of the new namespace: it takes orphans in and passes the code on. No outgoing
    # connection may have the daemon's port, which a sandbox in the host's network listens on.
    shell = ["sh", "-c", f'ip link set lo up && echo {_DAEMON_PORT} >{_RESERVED} && "$@"; exit $?', "sh"]
    os.execvpe(_NAMESPACES[0], [*_NAMESPACES, *shell, *again], {**os.environ, _INSIDE: "1"})
    raise AssertionError("not reached")


def _inside(command: list[str]) -> int:
    with contextlib.ExitStack() as stack:
        try:
            added = stack.enter_context(opensandbox())
        except Unusable as reason:
            return _without(command, str(reason))
        return subprocess.run(command, env={**os.environ, **added}, check=False).returncode


def _without(command: list[str], reason: str) -> int:
    environment = {**os.environ, "OPENSANDBOX_UNAVAILABLE": reason}
    return subprocess.run(command, env=environment, check=False).returncode


@contextlib.contextmanager
def opensandbox() -> Iterator[dict[str, str]]:
    """What the command's environment gets. To be called inside of the namespaces, once."""
    if is_sanitized(_named("EXECD_BINARY")):
        raise Unusable("the daemon is built with a sanitizer and wants libraries that no image has")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"], check=True)
    directory = Path("/run/opensandbox")
    directory.mkdir()
    key_file = directory / "key"
    with Docker(directory) as docker, ThreadPoolExecutor() as meanwhile:
        images_made = meanwhile.submit(_make_images, docker)
        with OpenSandboxServer(_named("OPENSANDBOX_SERVER"), directory, docker_host=docker.host,
                               port=PORT, execd_image=EXECD_IMAGE) as server:
            key_file.write_text(server.api_key, encoding="utf-8")
            images_made.result()
            yield {
                "OPENSANDBOX_URL": server.url,
                "OPENSANDBOX_API_KEY_FILE": str(key_file),
                "OPENSANDBOX_IMAGE": SANDBOX_IMAGE,
                "OPENSANDBOX_STATIC_IMAGE": STATIC_IMAGE,
                "OPENSANDBOX_BUSYBOX_IMAGE": BUSYBOX_IMAGE,
                "OPENSANDBOX_DIRECTORY": str(directory),
                "DOCKER_HOST": docker.host,
            }


def _make_images(docker: Docker) -> None:
    path = f"ENV PATH={PATH_OF_IMAGES}"
    execd, bootstrap = _named("EXECD_BINARY"), _named("BOOTSTRAP_BINARY")
    docker.make_image(SANDBOX_IMAGE, images.write_sandbox_image, path, 'CMD ["bash"]')
    container = docker.text("create", SANDBOX_IMAGE)
    for other in OTHER_NAMES:  # images of their own: the server names an image by its first tag
        docker.text("commit", "--author", f"of {other}", container, other)
    docker.text("rm", container)
    docker.make_image(EXECD_IMAGE, functools.partial(images.write_execd_image, execd=execd,
                                                     bootstrap=bootstrap), 'ENTRYPOINT ["/execd"]')
    docker.make_image(BUSYBOX_IMAGE, images.write_busybox_image, path, 'CMD ["sh"]')
    docker.make_image(STATIC_IMAGE, functools.partial(images.write_static_image,
                                                      program=execd), path)


def _named(variable: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        raise Unusable(f"{variable} names no program")
    return Path(value).resolve()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
