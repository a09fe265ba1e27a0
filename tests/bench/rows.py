# SPDX-License-Identifier: Apache-2.0
"""What is measured. A group runs its cases in turn, in reverse order every other time, so that what
the machine does meanwhile falls on all of them; its rows are ratios within one such round."""

from __future__ import annotations

import contextlib
import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from program import BRIDGE_LISTENS, Program
from world import Measured, Place, World

# Each gets the place that its group wants.
Cases = dict[str, Callable[[Any], float]]
Values = dict[str, float]


@dataclass(frozen=True)
class Row:
    """`value` makes the figure from one round's values. `at_most` false: the more the better.
    `gate` and `aim` are None for a figure that is only shown."""

    name: str
    value: Callable[[Values], float]
    gate: float | None = None
    aim: float | None = None
    at_most: bool = True


@dataclass(frozen=True)
class Group:
    name: str
    cases: Cases
    rows: list[Row]
    once: bool = False  # too long to repeat
    needs: tuple[str, ...] = field(default=())  # programs
    real: bool = False  # wants a RealWorld, not a World


_LINE = "a line of output as a build prints it, of an ordinary length, x"
_EVENTS = 10_000
_MANY = f"seq -f '{_LINE} %g' {{count}}"
# A line with the time each millisecond; the clock is the same in the sandbox.
_CLOCK = (
    "python3 -uc '\nimport time\nt=time.monotonic()\n"
    "for i in range(1500):\n t+=0.001\n time.sleep(max(0,t-time.monotonic()))\n"
    " print(time.monotonic_ns())\n'"
)


def _unary() -> Group:
    def url(w: World) -> str:
        return f"{w.static_url}/v1/sandboxes/{w.sandbox}"

    cases: Cases = {
        "direct": lambda w: w.around("direct-unary", url(w), "--calls=2000")["p50"],
        "echo": lambda w: w.through("echo", "--calls=2000", bridge=w.static_bridge)["p50"],
        "bridge": lambda w: w.through("unary", "--calls=2000", bridge=w.static_bridge)["p50"],
        "direct 64": lambda w: rate(w.around("direct-at-once", url(w), "--calls=20000")),
        "bridge 64": lambda w: rate(w.through("unary-at-once", "--calls=20000", bridge=w.static_bridge)),
    }
    return Group(
        "one call",
        cases,
        [
            Row("1 unary p50 / direct libcurl", lambda v: v["bridge"] / v["direct"], 6.5, 4),
            Row("2 unary p50 / gRPC echo", lambda v: v["bridge"] / v["echo"], 2.5, 1.7),
            Row("  unary p50, µs", lambda v: v["bridge"] * 1e6),
            Row(
                "4 unary calls/s of 64 at once / direct",
                lambda v: v["bridge 64"] / v["direct 64"],
                0.25,
                0.45,
                at_most=False,
            ),
        ],
        needs=("nginx",),
    )


# Calls of an errand and of a session: Node compiles its fetch while it runs.
_FEW, _MANY_CALLS = 50, 2000


def _node() -> Group:
    script = (
        "const [u,n]=[process.argv[1],+process.argv[2]];(async()=>{const t=[];for(let i=0;i<n;i++){"
        "const s=process.hrtime.bigint();const r=await fetch(u);await r.text();"
        "if(!r.ok)process.exit(1);t.push(Number(process.hrtime.bigint()-s)/1e9)}"
        "t.sort((a,b)=>a-b);console.log(t[n>>1])})()"
    )

    def url(w: World) -> str:
        return f"{w.static_url}/v1/sandboxes/{w.sandbox}"

    def fetch(calls: int) -> Callable[[World], float]:
        def run(w: World) -> float:
            command = ["node", "-e", script, url(w), str(calls)]
            return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

        return run

    def through(what: str, calls: int) -> Callable[[World], float]:
        return lambda w: w.through(what, f"--calls={calls}", bridge=w.static_bridge)["p50"]

    cases: Cases = {
        "fetch": fetch(_FEW),
        "bridge": through("unary", _FEW),
        "echo": through("echo", _FEW),
        "direct": lambda w: w.around("direct-unary", url(w), f"--calls={_FEW}")["p50"],
        "warm fetch": fetch(_MANY_CALLS),
        "warm bridge": through("unary", _MANY_CALLS),
    }
    rows = [
        Row("3 unary p50 of 50 / Node fetch direct", lambda v: v["bridge"] / v["fetch"], 0.6, 0.3),
        # What any gRPC service in front of HTTP costs: no bridge can be below it.
        Row("  gRPC echo + direct libcurl / Node", lambda v: (v["echo"] + v["direct"]) / v["fetch"]),
        Row("  unary p50 of 2,000 / Node fetch direct", lambda v: v["warm bridge"] / v["warm fetch"]),
    ]
    return Group("Node", cases, rows, needs=("nginx", "node"))


def rate(sample: dict[str, float]) -> float:
    return sample["items"] / sample["seconds"]


def _execs() -> Group:
    many, some = _MANY.format(count=_EVENTS), _MANY.format(count=2000)

    def direct(w: World, command: str, events: int, threads: int = 1) -> float:
        return _all(
            w.around("direct-exec", w.daemon_url + "/command", f"--command={command}", threads=threads),
            events * threads,
        )

    def bridge(w: World, command: str, fidelity: str, events: int, threads: int = 1) -> float:
        return _all(
            w.through("exec", f"--command={command}", f"--fidelity={fidelity}", threads=threads),
            events * threads,
        )

    cases: Cases = {
        "direct": lambda w: direct(w, many, _EVENTS),
        "lines": lambda w: bridge(w, many, "lines", _EVENTS),
        "bytes": lambda w: bridge(w, many, "bytes", _EVENTS),
        "direct 16": lambda w: direct(w, some, 2000, 16),
        "lines 16": lambda w: bridge(w, some, "lines", 2000, 16),
        "bytes 16": lambda w: bridge(w, some, "bytes", 2000, 16),
    }
    return Group(
        "events",
        cases,
        [
            Row("5 10,000 lines of output / direct", lambda v: v["lines"] / v["direct"], 1.4, 1.0),
            Row("  the same, exact bytes", lambda v: v["bytes"] / v["direct"], 1.4, 1.0),
            Row("6 16 × 2,000 lines / direct", lambda v: v["lines 16"] / v["direct 16"], 0.95, 0.6),
            Row("  the same, exact bytes", lambda v: v["bytes 16"] / v["direct 16"], 0.95, 0.6),
        ],
    )


def _all(sample: dict[str, float], events: int) -> float:
    if sample["items"] != events:
        raise RuntimeError(f"{sample['items']} of {events} lines arrived")
    return sample["seconds"]


def _latency() -> Group:
    def case(fidelity: str) -> Callable[[World], float]:
        return lambda w: w.through("exec", f"--command={_CLOCK}", "--stamped", f"--fidelity={fidelity}")[
            "p50"
        ]

    cases: Cases = {
        "direct": lambda w: w.around(
            "direct-exec", w.daemon_url + "/command", f"--command={_CLOCK}", "--stamped"
        )["p50"],
        "lines": case("lines"),
        "bytes": case("bytes"),
    }
    return Group(
        "latency",
        cases,
        [
            Row("7 event latency p50 at 1 kHz / direct", lambda v: v["lines"] / v["direct"], 4, 2.5),
            Row("  added, µs", lambda v: (v["lines"] - v["direct"]) * 1e6, 200),
            Row("  the same, exact bytes: / direct", lambda v: v["bytes"] / v["direct"], 4, 2.5),
        ],
    )


def _sdk() -> Group:
    command = "--command=echo hi"
    cases: Cases = {
        "sdk": lambda w: w.sdk("exec", w.sandbox),
        "bridge": lambda w: w.through("exec", command, "--execs=20")["p50"],
        "lines": lambda w: w.through("exec", command, "--execs=20", "--fidelity=lines")["p50"],
        "direct": lambda w: w.around("direct-exec", w.daemon_url + "/command", command, "--execs=20")["p50"],
    }
    return Group(
        "echo hi",
        cases,
        [
            Row("  Execute `echo hi` / official SDK", lambda v: v["bridge"] / v["sdk"], 1.0),
            Row("  more than direct HTTP, ms", lambda v: (v["bridge"] - v["direct"]) * 1e3, 3),
            Row("  the same, lines, ms", lambda v: (v["lines"] - v["direct"]) * 1e3, 3),
            Row("  SDK, ms", lambda v: v["sdk"] * 1e3),
            Row("  bridge, ms", lambda v: v["bridge"] * 1e3),
        ],
    )


@contextlib.contextmanager
def _idle_streams(w: World, bridge: Measured, what: str, streams: int, fidelity: str) -> Iterator[None]:
    client = subprocess.Popen(
        [
            w.client_program,
            what,
            f"--bridge={bridge.place}",
            f"--sandbox={','.join(w.sandboxes(-(-streams // 400)))}",
            f"--calls={streams}",
            f"--fidelity={fidelity}",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert client.stdin and client.stdout
    opened = json.loads(client.stdout.readline()).get("open")
    try:
        if opened != streams:
            raise RuntimeError(f"{opened} of {streams} streams opened")
        yield
    finally:
        client.stdin.close()
        end = json.loads(client.stdout.readline())
        client.wait()
    if end["failures"]:
        raise RuntimeError(end["first_failure"])


def idle(streams: int, fidelity: str, what: str = "idle") -> Group:
    """All figures come from one bridge that has done nothing before."""
    values: Values = {}

    def measure(w: World) -> float:
        bridge = w.start_bridge(w.url)
        try:
            before = w.through("unary", "--calls=1000", bridge=bridge)["p50"]
            resident = bridge.status("VmRSS")
            with _idle_streams(w, bridge, what, streams, fidelity):
                values["memory"] = (bridge.status("VmRSS") - resident) / streams
                values["threads"] = bridge.status("Threads")
                values["slower"] = w.through("unary", "--calls=1000", bridge=bridge)["p50"] / before
        finally:
            bridge.stop()
        return 1.0

    return Group(
        f"{streams} idle streams, {fidelity or 'terminals'}",
        {"idle": measure},
        [
            Row("15 KiB for each idle stream", lambda _: values["memory"], 48, 24),
            Row("16 unary p50 with them / before", lambda _: values["slower"], 1.5, 1.15),
            Row("17 threads", lambda _: values["threads"], 24),
        ],
        once=True,
    )


def _terminal() -> Group:
    cases: Cases = {
        "echo": lambda w: w.through("echo", "--calls=1000")["p50"],
        "terminal": lambda w: w.through("terminal-echo", "--calls=500")["p50"],
    }
    return Group(
        "terminal",
        cases,
        [
            Row("  a key's echo p50 / gRPC echo", lambda v: v["terminal"] / v["echo"]),
            Row("  a key's echo p50, µs", lambda v: v["terminal"] * 1e6),
        ],
    )


def _gaps() -> Group:
    cases: Cases = {
        "slow": lambda w: w.through("unary", "--calls=240", "--gaps", bridge=w.static_bridge)["slow"]
    }
    row = Row("18 of 240 calls of an idle server, above 10 ms", lambda v: v["slow"], 0, 0)
    return Group("gaps", cases, [row], once=True, needs=("nginx",))


def _start() -> Group:
    import grpc

    def bridge(w: World) -> float:
        program = Program(*w.bridge_command("http://127.0.0.1:1"), says=BRIDGE_LISTENS)
        try:
            with grpc.insecure_channel(program.place) as channel:
                channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10)
            return time.monotonic() - program.started
        finally:
            program.stop()

    def node(_: World) -> float:
        begin = time.monotonic()
        subprocess.run(["node", "-e", "0"], env={"PATH": "/usr/local/bin:/usr/bin"}, check=True)
        return time.monotonic() - begin

    cases: Cases = {"bridge": bridge, "node": node}
    row = Row("21 cold start to first RPC / `node -e 0`", lambda v: v["bridge"] / v["node"], 1.2, 0.5)
    return Group("start", cases, [row], needs=("node",))


def groups() -> list[Group]:
    return [
        _unary(),
        _node(),
        _execs(),
        _latency(),
        _sdk(),
        idle(2000, "lines"),
        idle(2000, "bytes"),
        idle(1000, "", "idle-processes"),
        _terminal(),
        _gaps(),
        _start(),
    ]


def missing(group: Group) -> list[str]:
    return [name for name in group.needs if not (shutil.which(name) or Path(f"/usr/sbin/{name}").exists())]


def run(w: Place, group: Group, repeats: int) -> list[Values]:
    """The values of each round; the first round only warms up."""
    rounds = []
    for number in range(1 if group.once else repeats + 1):
        order = list(group.cases)
        if number % 2:
            order.reverse()
        values = {name: group.cases[name](w) for name in order}
        if number or group.once:
            rounds.append(values)
    return rounds


def figures(group: Group, rounds: list[Values]) -> list[tuple[Row, float, float, float]]:
    """Each row with its median, least and greatest value."""
    found = []
    for row in group.rows:
        values = [row.value(one) for one in rounds]
        found.append((row, statistics.median(values), min(values), max(values)))
    return found
