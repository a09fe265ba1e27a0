# SPDX-License-Identifier: Apache-2.0
"""Container images without a registry: tar streams for `docker import`.

The sandbox image is made of the Debian packages of the machine that runs the test (their files and
those of what they depend on), so it needs no network and takes seconds. The execd image is the two
static programs that `opensandbox-server` copies into every sandbox.
"""

from __future__ import annotations

import io
import os
import re
import stat
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

# What a sandbox of the tests can run; everything else comes by dependency.
SANDBOX_PACKAGES = (
    "base-files", "bash", "coreutils", "dash", "debianutils", "findutils", "grep", "gzip",
    "hostname", "libc-bin", "procps", "python3", "sed", "tar", "util-linux",
)
# Big, and of no use in a sandbox.
_LEFT_OUT = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/",
             "/usr/share/lintian/", "/usr/share/i18n/", "/usr/lib/x86_64-linux-gnu/gconv/")
_DIRECTORIES = {"tmp": 0o1777, "var/tmp": 0o1777, "root": 0o700, "home": 0o755, "proc": 0o555,
                "sys": 0o555, "dev": 0o755, "run": 0o755, "workspace": 0o777}
# The accounts of every Debian, and one more.
_BASE_PASSWD = Path("/usr/share/base-passwd")


def _etc() -> dict[str, str]:
    passwd = (_BASE_PASSWD / "passwd.master").read_text(encoding="utf-8")
    group = (_BASE_PASSWD / "group.master").read_text(encoding="utf-8")
    return {
        "passwd": passwd + "app:x:1000:1000::/home:/bin/bash\n",
        "group": group + "app:x:1000:\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }


def package_closure(wanted: Iterable[str]) -> list[str]:
    """The packages and all that they depend on, as installed here."""
    listing = subprocess.run(
        ["dpkg-query", "--show", "--showformat",
         "${binary:Package}\t${Depends}, ${Pre-Depends}\t${Provides}\t${db:Status-Abbrev}\n"],
        capture_output=True, text=True, check=True).stdout
    depends: dict[str, str] = {}
    provider: dict[str, str] = {}
    for line in listing.splitlines():
        package, needs, provides, status = line.split("\t")
        if not status.startswith("ii"):
            continue
        name = package.partition(":")[0]
        depends[name] = needs
        for provided in provides.split(","):
            provider.setdefault(_package_name(provided), name)

    found: set[str] = set()
    left = list(wanted)
    while left:
        name = left.pop()
        name = name if name in depends else provider.get(name, "")
        if not name or name in found:
            continue
        found.add(name)
        for alternatives in depends[name].split(","):
            names = [_package_name(one) for one in alternatives.split("|")]
            left += [one for one in names if one in depends or one in provider][:1]
    return sorted(found)


def _package_name(relation: str) -> str:
    """`libc6` of ` libc6:any (>= 2.36)`."""
    return re.split(r"[ (:]", relation.strip())[0]


def package_files(packages: Iterable[str]) -> list[str]:
    """Absolute paths, no link among their directories, each once."""
    listing = subprocess.run(["dpkg-query", "--listfiles", *packages], capture_output=True,
                             text=True, check=True).stdout
    real_directory: dict[str, str] = {}
    files = set()
    for path in listing.splitlines():
        if not os.path.lexists(path) or (path + "/").startswith(("/./", *_LEFT_OUT)):
            continue
        directory, name = os.path.split(path)
        if directory not in real_directory:
            real_directory[directory] = os.path.realpath(directory).rstrip("/")
        files.add(f"{real_directory[directory]}/{name}")
    return sorted(files)


def write_sandbox_image(out: BinaryIO) -> None:
    """A Debian root with a shell, coreutils, procps and Python."""
    with tarfile.open(fileobj=out, mode="w|") as tar:
        _add_root(tar, package_closure(SANDBOX_PACKAGES))


def write_busybox_image(out: BinaryIO) -> None:
    """A root whose only shell and tools are busybox's, as those of Alpine are."""
    with tarfile.open(fileobj=out, mode="w|") as tar:
        _add_root(tar, ("busybox", "libc6"))
        applets = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True)
        for applet in sorted({*applets.stdout.split()} - {"busybox"}):
            _add(tar, f"bin/{applet}", tarfile.SYMTYPE, 0o777, link="busybox")


def _add_root(tar: tarfile.TarFile, packages: Iterable[str]) -> None:
    for name, mode in _DIRECTORIES.items():
        _add(tar, name, tarfile.DIRTYPE, mode)
    for name, text in _etc().items():
        _add(tar, f"etc/{name}", tarfile.REGTYPE, 0o644, text.encode())
    for name in ("bin", "sbin", "lib", "lib64"):
        if Path("/" + name).is_symlink():
            tar.add("/" + name, name)
    listed = package_files(packages)
    # And links that the packages' scripts make, not the packages.
    paths = {*listed, *_alternatives(listed), "/etc/ld.so.cache"}
    for path in sorted(paths - {"/" + name for name in tar.getnames()}):
        kind = os.lstat(path).st_mode
        if stat.S_ISREG(kind) or stat.S_ISLNK(kind) or stat.S_ISDIR(kind):
            tar.add(path, path.lstrip("/"), recursive=False)


def _alternatives(listed: Iterable[str]) -> list[str]:
    """/etc/alternatives/awk and /usr/bin/awk, when what they lead to is among the files."""
    present = set(listed)
    links = []
    for link in sorted(Path("/etc/alternatives").glob("*")):
        outer = Path("/usr/bin") / link.name
        if link.is_symlink() and str(link.readlink()) in present and outer.is_symlink():
            links += [str(link), str(outer)]
    return links


def write_execd_image(out: BinaryIO, execd: Path, bootstrap: Path) -> None:
    """What `runtime.execd_image` of opensandbox-server has to hold."""
    with tarfile.open(fileobj=out, mode="w|") as tar:
        _add(tar, "execd", tarfile.REGTYPE, 0o755, execd.read_bytes())
        _add(tar, "bootstrap.sh", tarfile.REGTYPE, 0o755, bootstrap.read_bytes())


def write_static_image(out: BinaryIO, program: Path) -> None:
    """An image of one static program: no shell, no library, no /tmp."""
    with tarfile.open(fileobj=out, mode="w|") as tar:
        _add(tar, program.name, tarfile.REGTYPE, 0o755, program.read_bytes())


def _add(tar: tarfile.TarFile, name: str, kind: bytes, mode: int, data: bytes = b"",
         link: str = "") -> None:
    entry = tarfile.TarInfo(name)
    entry.linkname = link
    entry.type = kind
    entry.mode = mode
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))
