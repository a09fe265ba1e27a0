# SPDX-License-Identifier: Apache-2.0
"""Rows in front of the real opensandbox-server on a Docker engine, beside the official SDK on the same
sandboxes and direct HTTP to their daemons. Inside with_opensandbox.py's namespaces only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import with_opensandbox
from rows import Cases, Group, Row, Values
from world import DAEMON_PORT, Box, Place

KIB, MIB = 1 << 10, 1 << 20
# Our daemon with the routes and habits of the 1.1.0 one and nothing else.
STOCK = {"EXECD_EXTRAS": "false", "EXECD_COMPAT": "1.1.0"}
CROWD, EACH = 10, 30  # sandboxes, commands at once in each
ECHO = "--command=echo hi"


class RealWorld(Place):
    """The server with a sandbox of our daemon and one of a stock one, and a bridge before it."""

    def __init__(self, bins: Path, stack: contextlib.ExitStack, given: dict[str, str]) -> None:
        key = Path(given["OPENSANDBOX_API_KEY_FILE"]).read_text()
        super().__init__(bins, stack, given["OPENSANDBOX_URL"], key)
        self.image = given["OPENSANDBOX_IMAGE"]
        self.bridge = self.start_bridge(self.url)
        self.own = self._direct(self.make_sandbox(self.image))
        self.stock = self._direct(self.make_sandbox(self.image, STOCK))
        self._crowd: list[str] = []

    @staticmethod
    def _direct(box: Box) -> Box:
        """The daemon's own port: the server's form of the endpoint leads through the daemon's proxy."""
        box.daemon_url = box.daemon_url.removesuffix(f"/proxy/{DAEMON_PORT}")
        return box

    def crowd(self) -> list[str]:
        while len(self._crowd) < CROWD:
            self._crowd.append(self.make_sandbox(self.image).name)
        return self._crowd

    def through(self, what: str, *words: str, threads: int = 1) -> dict[str, float]:
        return self.client(what, f"--bridge={self.bridge.place}", *words, threads=threads)

    def around(self, what: str, box: Box, route: str, *words: str) -> dict[str, float]:
        return self.direct(what, box.daemon_url + route, box.headers, *words)


def _echo() -> Group:
    def bridge(w: RealWorld, box: Box, fidelity: str = "bytes") -> float:
        words = (f"--sandbox={box.name}", ECHO, "--execs=20", f"--fidelity={fidelity}")
        return w.through("exec", *words)["p50"]

    def direct(w: RealWorld, box: Box) -> float:
        return w.around("direct-exec", box, "/command", ECHO, "--execs=20")["p50"]

    cases: Cases = {
        "sdk": lambda w: w.sdk("exec", w.stock.name),
        "bytes": lambda w: bridge(w, w.stock),
        "lines": lambda w: bridge(w, w.stock, "lines"),
        "direct": lambda w: direct(w, w.stock),
        "own": lambda w: bridge(w, w.own),
        "own direct": lambda w: direct(w, w.own),
    }

    def added(name: str, direct: str) -> Callable[[Values], float]:
        return lambda v: (v[name] - v[direct]) * 1e3

    return Group(
        "real: echo hi",
        cases,
        [
            Row("SDK / Execute `echo hi`", lambda v: v["sdk"] / v["bytes"], 50, 100, at_most=False),
            Row("  the same, lines", lambda v: v["sdk"] / v["lines"], 50, 100, at_most=False),
            Row("more than direct HTTP, lines, ms", added("lines", "direct"), 3, 1.5),
            Row("  exact bytes, ms", added("bytes", "direct"), 3, 1.5),
            Row("  our daemon, exact bytes, ms", added("own", "own direct"), 3, 1.5),
            Row("  SDK, ms", lambda v: v["sdk"] * 1e3),
            Row("  bridge, exact bytes, ms", lambda v: v["bytes"] * 1e3),
            Row("  bridge, our daemon, ms", lambda v: v["own"] * 1e3),
        ],
        real=True,
    )


def _files(title: str, size: int, times: int) -> Group:
    """One file of zeros, written and read. On tmpfs, as all of the engine's files here."""
    place = "/tmp/bench-"

    def write(w: RealWorld, box: Box) -> float:
        words = (f"--sandbox={box.name}", f"--path={place}", f"--bytes={size}")
        return w.through("upload", *words, f"--execs={times}")["p50"]

    def read(w: RealWorld, box: Box) -> float:
        w.through("upload", f"--sandbox={box.name}", f"--path={place}", f"--bytes={size}")
        words = (f"--sandbox={box.name}", f"--path={place}0")
        return w.through("download", *words, f"--execs={times}")["p50"]

    def write_directly(w: RealWorld) -> float:
        words = (f"--path={place}direct", f"--bytes={size}", f"--execs={times}")
        return w.around("direct-upload", w.own, "/files/upload", *words)["p50"]

    def read_directly(w: RealWorld) -> float:
        write_directly(w)
        route = f"/files/download?path={place}direct"
        return w.around("direct-download", w.own, route, f"--execs={times}")["p50"]

    cases: Cases = {
        "write": lambda w: write(w, w.own),
        "read": lambda w: read(w, w.own),
        "write stock": lambda w: write(w, w.stock),
        "read stock": lambda w: read(w, w.stock),
        "write direct": write_directly,
        "read direct": read_directly,
        "write sdk": lambda w: w.sdk("write", w.own.name, str(size)),
        "read sdk": lambda w: w.sdk("read", w.own.name, str(size)),
    }
    return Group(
        f"real: file of {title}",
        cases,
        [
            row
            for name in ("write", "read")
            for row in (
                Row(f"{name} {title}, our daemon / SDK", _ratio(name, f"{name} sdk"), 1.5, 1.0),
                Row("  / direct HTTP", _ratio(name, f"{name} direct")),
                Row("  ms", _ms(name)),
                Row("  stock daemon, ms", _ms(f"{name} stock")),
                Row("  SDK, ms", _ms(f"{name} sdk")),
            )
        ],
        real=True,
    )


def _ratio(one: str, other: str) -> Callable[[Values], float]:
    return lambda v: v[one] / v[other]


def _ms(name: str) -> Callable[[Values], float]:
    return lambda v: v[name] * 1e3


def _create() -> Group:
    cases: Cases = {
        "bridge": lambda w: w.through("create", f"--image={w.image}", "--execs=2")["p50"],
        "sdk": lambda w: w.sdk("create", w.image),
    }
    return Group(
        "real: create until usable",
        cases,
        [Row("bridge / SDK", _ratio("bridge", "sdk"), 1.1, 1.0), Row("  ms", _ms("bridge"))],
        real=True,
    )


def _crowd() -> Group:
    def bridge(w: RealWorld) -> float:
        sandboxes = f"--sandbox={','.join(w.crowd())}"
        return w.through("exec", sandboxes, ECHO, threads=CROWD * EACH)["seconds"]

    cases: Cases = {
        "bridge": bridge,
        "sdk": lambda w: w.sdk("crowd", str(EACH), *w.crowd()),
    }
    title = f"real: {CROWD * EACH} commands at once in {CROWD} sandboxes"
    rows = [Row("bridge / SDK", _ratio("bridge", "sdk"), 1.0, 0.5), Row("  ms", _ms("bridge"))]
    return Group(title, cases, rows, real=True)


def groups() -> list[Group]:
    files = [_files("1 KiB", KIB, 20), _files("64 MiB", 64 * MIB, 2)]
    return [_echo(), *files, _create(), _crowd()]


@contextlib.contextmanager
def real_world(bins: Path) -> Iterator[RealWorld]:
    """Raises servers.Unusable where there can be none."""
    with contextlib.ExitStack() as stack:
        given = stack.enter_context(with_opensandbox.opensandbox())
        yield RealWorld(bins, stack, given)
