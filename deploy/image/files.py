# SPDX-License-Identifier: Apache-2.0
"""The files of an image: what they hold, where they lie, and what a program needs beside itself.

Nothing is read through the machine's configuration that differs between two machines with the same
packages: certificates come from the package, not from what an administrator added to it.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

CERTIFICATES = Path("/usr/share/ca-certificates/mozilla")


@dataclass(frozen=True)
class File:
    """A regular file of an image; `path` has no leading slash."""

    path: str
    data: bytes
    mode: int = 0o644
    # Where it was read from, when a package owns it.
    source: Path | None = None


def _run(*command: str | Path) -> str:
    """Its stdout. The C locale, and no library path but the system's."""
    done = subprocess.run([str(word) for word in command], capture_output=True, check=True,
                          text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"})
    return done.stdout


def stripped(program: Path) -> bytes:
    """The program without symbols and debug information, which hold paths of the build."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "program"
        _run("strip", "--strip-all", "-o", out, program)
        return out.read_bytes()


def is_static(program: Path) -> bool:
    return " INTERP " not in _run("readelf", "--program-headers", "--wide", program)


def linked_libraries(program: Path) -> list[Path]:
    """What the dynamic loader loads for a program, the loader itself included, sorted."""
    if is_static(program):
        return []
    found: set[Path] = set()
    for line in _run("ldd", program).splitlines():
        if "not found" in line:
            raise ValueError(f"{program} needs a library that is not here: {line.strip()}")
        match = re.search(r"(?:=> )?(/\S+) \(0x", line)
        if match:
            found.add(Path(match.group(1)))
    if not found:
        raise ValueError(f"ldd names no library of {program}")
    return sorted(found)


def shared_object(library: Path) -> File:
    """A library under the name that the loader looks for, in /usr/lib even where it was in /lib."""
    path = str(library).lstrip("/")
    if not path.startswith("usr/"):
        path = "usr/" + path
    real = library.resolve()
    return File(path, real.read_bytes(), 0o755, source=real)


def certificates() -> File:
    """The certificates of Debian's package, as the one file that OpenSSL looks for."""
    parts = [path.read_bytes().strip() + b"\n" for path in sorted(CERTIFICATES.glob("*.crt"))]
    if not parts:
        raise ValueError(f"no certificates in {CERTIFICATES}: install ca-certificates")
    return File("etc/ssl/certs/ca-certificates.crt", b"".join(parts),
                source=next(CERTIFICATES.glob("*.crt")))


def accounts(uid: int) -> list[File]:
    """What names the one user, and says that host names come from the hosts file and from DNS."""
    return [
        File("etc/passwd", f"bridge:x:{uid}:{uid}::/nonexistent:/nonexistent\n".encode()),
        File("etc/group", f"bridge:x:{uid}:\n".encode()),
        File("etc/nsswitch.conf", b"hosts: files dns\n"),
    ]
