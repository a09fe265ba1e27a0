# SPDX-License-Identifier: Apache-2.0
"""Rows about files: how fast they move, and what memory that costs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

from rows import Cases, Group, Row, Values, rate
from world import Measured, World

MIB = 1 << 20


def files() -> Group:
    """One file of 256 MiB in the sandbox's /dev/shm each way: memory, so that no disk is measured."""
    size = 256 * MIB
    made = False

    def prepare(w: World) -> None:
        nonlocal made
        if not made:
            w.through("exec", f"--command=head -c {size} /dev/zero > /dev/shm/file; echo")
            made = True

    def download(w: World, name: str, url: str = "") -> float:
        prepare(w)
        if name == "bridge":
            return rate(w.through("download", "--path=/dev/shm/file"))
        return rate(w.around("direct-download", url + "/files/download?path=/dev/shm/file"))

    def upload(w: World, name: str, url: str = "") -> float:
        if name == "bridge":
            return rate(w.through("upload", "--path=/dev/shm/up", f"--bytes={size}"))
        return rate(
            w.around(
                "direct-upload",
                url + "/files/upload",
                f"--path=/dev/shm/up-{name}",
                f"--bytes={size}",
            )
        )

    cases: Cases = {
        "down": lambda w: download(w, "bridge"),
        "down direct": lambda w: download(w, "direct", w.daemon_url),
        "up": lambda w: upload(w, "bridge"),
        "down nginx": lambda w: download(w, "nginx", w.hop_url),
        "up direct": lambda w: upload(w, "direct", w.daemon_url),
        "up nginx": lambda w: upload(w, "nginx", w.hop_url),
    }
    return Group(
        "files",
        cases,
        [
            Row("8 download / direct", lambda v: v["down"] / v["down direct"], 0.18, 0.30, at_most=False),
            Row(
                "9 download / through nginx",
                lambda v: v["down"] / v["down nginx"],
                0.40,
                0.65,
                at_most=False,
            ),
            Row("  MiB/s", lambda v: v["down"] / MIB),
            Row("11 upload / direct", lambda v: v["up"] / v["up direct"], 0.18, 0.35, at_most=False),
            Row(
                "12 upload / through nginx",
                lambda v: v["up"] / v["up nginx"],
                0.35,
                0.6,
                at_most=False,
            ),
            Row("  MiB/s", lambda v: v["up"] / MIB),
        ],
        needs=("nginx",),
    )


def node_download() -> Group:
    """64 MiB, Node's fetch around the bridge and our client through it."""
    size = 64 * MIB
    script = (
        "const [u,h]=process.argv.slice(1);(async()=>{const s=process.hrtime.bigint();"
        "const r=await fetch(u,{headers:JSON.parse(h)});let n=0;"
        "for await(const c of r.body)n+=c.length;if(!r.ok)process.exit(1);"
        "console.log(n/(Number(process.hrtime.bigint()-s)/1e9))})()"
    )

    def prepare(w: World) -> None:
        w.through("exec", f"--command=[ -s /dev/shm/64M ] || head -c {size} /dev/zero >/dev/shm/64M; echo")

    def fetch(w: World) -> float:
        prepare(w)
        url = f"{w.daemon_url}/files/download?path=/dev/shm/64M"
        headers = dict(line.split(": ", 1) for line in w.daemon_headers)
        run = subprocess.run(
            ["node", "-e", script, url, json.dumps(headers)], stdout=subprocess.PIPE, check=True
        )
        return float(run.stdout)

    def bridge(w: World) -> float:
        prepare(w)
        return rate(w.through("download", "--path=/dev/shm/64M"))

    row = Row("10 download / Node fetch direct", lambda v: v["bridge"] / v["fetch"], 1.1, 1.5, at_most=False)
    return Group("files beside Node", {"fetch": fetch, "bridge": bridge}, [row], needs=("node",))


def file_memory() -> Group:
    """Most memory that a bridge ever had which did nothing but move files."""
    values: Values = {}

    def peak(w: World, *moves: Callable[[Measured], object]) -> float:
        bridge = w.start_bridge(w.url)
        try:
            for move in moves:
                move(bridge)
            return bridge.status("VmHWM") / 1024
        finally:
            bridge.stop()

    def measure(w: World) -> float:
        # Sparse files and /dev/null: the bytes are zeros, and nothing of them is kept.
        w.through("exec", "--command=truncate -s 4G /tmp/4G; truncate -s 512M /tmp/512M; echo")
        down = "--path=/tmp/4G"
        up = (f"--bytes={4096 * MIB}", "--path=/dev/shm/4G-")
        values["one"] = peak(
            w,
            lambda b: w.through("download", down, bridge=b),
            lambda b: w.through("upload", *up, bridge=b),
        )
        w.through("exec", "--command=rm -f /dev/shm/4G-*; echo")
        values["eight"] = max(
            peak(w, lambda b: w.through("download", "--path=/tmp/512M", threads=8, bridge=b)),
            peak(
                w,
                lambda b: w.through(
                    "upload", f"--bytes={512 * MIB}", "--path=/dev/shm/512M-", threads=8, bridge=b
                ),
            ),
        )
        w.through("exec", "--command=rm -f /dev/shm/512M-*; echo")
        return 1.0

    return Group(
        "memory of files",
        {"files": measure},
        [
            Row("13 peak MiB, 4 GiB each way", lambda _: values["one"], 48, 32),
            Row("14 peak MiB, 8 × 512 MiB", lambda _: values["eight"], 96, 64),
        ],
        once=True,
    )


def groups() -> list[Group]:
    return [files(), node_download(), file_memory()]
