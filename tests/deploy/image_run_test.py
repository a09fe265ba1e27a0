# SPDX-License-Identifier: Apache-2.0
"""The bridge's image does everything that the bridge does, as a hardened container would run it.

The root is the image's and read-only, the user is 65532 without any capability, the environment is
empty, there is no /tmp and no /proc (DEP-07).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from layout import read_layout
from program import BRIDGE_LISTENS, PATIENCE_SECONDS, eventually, is_sanitized
from programs import OpenSandbox, sbx


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return read_layout(Path(os.environ["BRIDGE_IMAGE"])).unpack(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    """URL of a local OpenSandbox."""
    with OpenSandbox() as opensandbox:
        yield opensandbox.place


class Contained:
    """The image's entry point in a container of bubblewrap's."""

    def __init__(self, root: Path, log: Path, *flags: str) -> None:
        self.log = log
        proc: list[str] = []
        if is_sanitized(root / "usr/bin/sandbox_bridge"):  # what looks for leaks looks there
            (root / "proc").mkdir(exist_ok=True)
            proc = ["--proc", "/proc"]
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                ["bwrap", "--ro-bind", str(root), "/", *proc, "--unshare-user", "--unshare-pid",
                 "--unshare-ipc", "--uid", "65532", "--gid", "65532", "--cap-drop", "ALL",
                 "--clearenv", "--die-with-parent", "--info-fd", "3", "--",
                 "/usr/bin/sandbox_bridge", *flags],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=[], close_fds=False,
                preexec_fn=lambda: os.dup2(1, 3))

    def address(self) -> str:
        eventually(lambda: re.search(BRIDGE_LISTENS, self.log.read_text()) is not None
                   or self.process.poll() is not None, "it listens")
        found = re.search(BRIDGE_LISTENS, self.log.read_text())
        assert found is not None, self.log.read_text()
        return found.group(1)

    def signal(self, number: int) -> None:
        """To the bridge itself; bubblewrap passes its exit code on."""
        found = re.search(r'"child-pid": (\d+)', self.log.read_text())
        assert found is not None
        # The child is bubblewrap's own PID 1; the bridge is the one that it started.
        children = Path(f"/proc/{found.group(1)}/task/{found.group(1)}/children").read_text()
        os.kill(int(children.split()[0]), number)


def test_it_serves_from_a_read_only_root(root: Path, upstream: str, tmp_path: Path) -> None:
    bridge = Contained(root, tmp_path / "log", "--listen=127.0.0.1:0", f"--upstream={upstream}",
                       "--admin_listen=127.0.0.1:0")
    try:
        address = bridge.address()
        made = sbx(address, "create", "--ttl=10m")
        assert made.returncode == 0, made.stderr.decode()
        sandbox = made.stdout.decode().strip()
        ran = sbx(address, "exec", sandbox, "-c", r"printf 'a\r\n\377b'; echo err >&2; exit 3")
        assert (ran.returncode, ran.stdout, ran.stderr) == (3, b"a\r\n\xffb", b"err\n")
        echoed = sbx(address, "exec", sandbox, "--", "cat", stdin=b"\0binary\n")
        assert echoed.stdout == b"\0binary\n"
        assert sbx(address, "rm", sandbox).returncode == 0
        bridge.signal(signal.SIGTERM)
        assert bridge.process.wait(PATIENCE_SECONDS) == 0, bridge.log.read_text()
    finally:
        bridge.process.kill()
        bridge.process.wait()


@pytest.mark.parametrize(("flags", "says"), [
    ([], "upstream: is not set"),
    (["--upstream=http://h", "--tls_cert_file=/no", "--tls_key_file=/no"], "cannot read '/no'"),
    (["--upstream=http://h", "--listen=0.0.0.0:0"], "--insecure_public"),
    # Nothing can be written there, so it has no room for sandboxes of its own.
    (["--upstream=local", "--listen=127.0.0.1:0"], "sandbox_bridge: "),
])
def test_a_start_that_fails_says_why(root: Path, tmp_path: Path, flags: list[str],
                                     says: str) -> None:
    """DEP-05, in the container: exit code 1 and one line."""
    bridge = Contained(root, tmp_path / "log", *flags)
    assert bridge.process.wait(PATIENCE_SECONDS) == 1
    lines = [line for line in bridge.log.read_text().splitlines() if "sandbox_bridge:" in line]
    assert len(lines) == 1 and says in lines[0], bridge.log.read_text()
