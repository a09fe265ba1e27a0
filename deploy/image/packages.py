# SPDX-License-Identifier: Apache-2.0
"""Debian's packages that files of an image come from, asked of the machine's package database."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from files import File


@dataclass(frozen=True, order=True)
class Package:
    """A binary package and the source package that it was built from."""

    name: str
    version: str
    source: str
    source_version: str
    architecture: str


def _query(*arguments: str) -> list[str]:
    """Lines of the answer; what the database does not know is missing from it."""
    done = subprocess.run(["dpkg-query", *arguments], capture_output=True, check=False, text=True,
                          env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    return done.stdout.splitlines()


def named(names: Iterable[str]) -> list[Package]:
    """Installed packages by their names, sorted. Raises ValueError when one is not installed."""
    wanted = sorted(set(names))
    if not wanted:
        return []
    fields = ["Package", "Version", "source:Package", "source:Version", "Architecture", "Status"]
    lines = _query("--show", "--showformat", "\t".join(f"${{{f}}}" for f in fields) + "\n", *wanted)
    rows = [line.split("\t") for line in lines]
    found = sorted(Package(*row[:5]) for row in rows if row[5].endswith(" installed"))
    missing = set(wanted) - {p.name for p in found}
    if missing:
        raise ValueError(f"these packages are not installed: {', '.join(sorted(missing))}")
    return found


def owners(paths: Iterable[Path]) -> dict[Path, Package]:
    """The package of each file. Raises ValueError for a file of none."""
    wanted = sorted(set(paths))
    # Debian's database knows some libraries by their name in /lib, where /lib is /usr/lib.
    spellings = {text: path for path in wanted
                 for text in (str(path), str(path).removeprefix("/usr"), "/usr" + str(path))}
    names: dict[Path, str] = {}
    for line in _query("--search", *sorted(spellings)):
        package, _, text = line.rpartition(": ")
        if text in spellings:
            names[spellings[text]] = package.split(",")[0].split(":")[0]
    for path in wanted:
        if path not in names:
            raise ValueError(f"no package owns {path}")
    by_name = {p.name: p for p in named(names.values())}
    return {path: by_name[name] for path, name in names.items()}


def terms(packages: list[Package]) -> list[File]:
    """The copyright files: who passes a library on passes its terms on."""
    out = []
    for each in sorted(packages):
        path = Path("/usr/share/doc") / each.name / "copyright"
        out.append(File(str(path).lstrip("/"), path.read_bytes(), source=path))
    return out
