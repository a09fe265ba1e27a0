# SPDX-License-Identifier: Apache-2.0
"""Rows about files: how fast they move, and what memory that costs."""

from __future__ import annotations

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

    def upload(w: World, name: str) -> float:
        if name == "bridge":
            return rate(w.through("upload", "--path=/dev/shm/up", f"--bytes={size}"))
        return rate(
            w.around(
                "direct-upload",
                w.daemon_url + "/files/upload",
                "--path=/dev/shm/up-direct",
                f"--bytes={size}",
            )
        )

    cases: Cases = {
        "down": lambda w: download(w, "bridge"),
        "down direct": lambda w: download(w, "direct", w.daemon_url),
        "up": lambda w: upload(w, "bridge"),
        "up direct": lambda w: upload(w, "direct"),
    }
    return Group(
        "files",
        cases,
        [
            Row("8 download / direct", lambda v: v["down"] / v["down direct"], 0.18, 0.30, at_most=False),
            Row("  MiB/s", lambda v: v["down"] / MIB),
            Row("11 upload / direct", lambda v: v["up"] / v["up direct"], 0.18, 0.35, at_most=False),
            Row("  MiB/s", lambda v: v["up"] / MIB),
        ],
    )


def file_memory() -> Group:
    """Most memory that a bridge ever had which did nothing but move files."""
    values: Values = {}

    def peak(w: World, *moves: Callable[[Measured], object]) -> float:
        bridge = w.start_bridge(w.upstream.place)
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
