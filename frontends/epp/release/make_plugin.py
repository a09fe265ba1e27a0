#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lays out the directory that hosts of EPP/1 install, and packs it into an archive.

    make_plugin.py --directory DIR --archive OUT.tar.gz --top NAME FILE=PLACE...

PLACE is a name below DIR, a folder with `/` at its end, or has a `*` for the name of FILE's own
folder.
Everything is copied: a host refuses links. The archive's bytes depend on the files alone.
"""

import argparse
import gzip
import shutil
import tarfile
from pathlib import Path, PurePosixPath


def destination(source: str, place: str) -> str:
    if place.endswith("/"):
        return place + PurePosixPath(source).name
    return place.replace("*", PurePosixPath(source).parent.name)


def lay_out(directory: Path, files: list[str]) -> None:
    for pair in files:
        source, place = pair.rsplit("=", 1)
        target = directory / destination(source, place)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            raise SystemExit(f"{target}: comes from two files")
        shutil.copyfile(source, target)
        target.chmod(mode(target.relative_to(directory)))


def mode(path: Path) -> int:
    return 0o755 if path.parts[0] == "bin" else 0o644


def pack(directory: Path, top: str, archive: Path) -> None:
    with (
        archive.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path in sorted(p for p in directory.rglob("*") if p.is_file()):
            inside = path.relative_to(directory)
            entry = tarfile.TarInfo(f"{top}/{inside.as_posix()}")
            entry.size = path.stat().st_size
            entry.mode = mode(inside)
            with path.open("rb") as file:
                tar.addfile(entry, file)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--top", required=True)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    lay_out(args.directory, args.files)
    pack(args.directory, args.top, args.archive)


if __name__ == "__main__":
    main()
