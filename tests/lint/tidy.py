#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the sources of compile_commands.json, each once per content.

A source whose own text, included headers, flags and checks have not changed since it was found
clean is not looked at again. Which headers it includes is asked of the compiler (-MM), so system
headers are left out and nothing has to be built but generated code. Findings are printed as
clang-tidy words them; the exit code is 1 when there are any.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


def included_files(entry: Entry) -> list[Path]:
    """The source and the headers of ours that it includes, absolute."""
    command = [*entry["arguments"], "-MM", "-MF", "-"]
    rule = subprocess.run(command, cwd=entry["directory"], check=True, capture_output=True,
                          text=True).stdout
    return [Path(entry["directory"], name) for name in parse_make_rule(rule)]


def parse_make_rule(rule: str) -> list[str]:
    """The prerequisites of `target: a b \\\n c`."""
    _, _, prerequisites = rule.replace("\\\n", " ").partition(":")
    return prerequisites.split()


def fingerprint(entry: Entry, files: Iterable[Path], common: bytes) -> str:
    digest = hashlib.sha256(common)
    digest.update(json.dumps(entry["arguments"]).encode())
    for file in sorted(files):
        digest.update(str(file).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Tidy:
    """Checks sources; remembers the clean ones in `cache`, one empty file each."""

    def __init__(self, program: str, config: Path, database: Path, cache: Path) -> None:
        self._program = program
        self._config = config
        self._database = database
        self._cache = cache
        version = subprocess.run([program, "--version"], check=True, capture_output=True).stdout
        self._common = version + config.read_bytes()
        cache.mkdir(parents=True, exist_ok=True)

    def check(self, entry: Entry) -> str:
        """Findings in words; empty when clean."""
        try:
            stamp = self._cache / fingerprint(entry, included_files(entry), self._common)
        except subprocess.CalledProcessError as error:
            return f"{entry['file']}: cannot be compiled\n{error.stderr}"
        if stamp.exists():
            return ""
        result = subprocess.run(
            [self._program, "-p", str(self._database.parent), f"--config-file={self._config}",
             "--quiet", entry["file"]],
            cwd=entry["directory"], capture_output=True, text=True, check=False)
        if result.returncode == 0 and not result.stdout.strip():
            stamp.touch()
            return ""
        return result.stdout or result.stderr


def chosen(database: list[Entry], files: list[str]) -> list[Entry]:
    """The entries of the named files; all when none is named."""
    wanted = {str(Path(file).resolve()) for file in files}
    return [entry for entry in database if not files or entry["file"] in wanted]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="clang-tidy-19")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("files", nargs="*", help="sources; default: all of the database")
    arguments = parser.parse_args()
    database = json.loads(arguments.database.read_text(encoding="utf-8"))
    entries = chosen(database, arguments.files)
    tidy = Tidy(arguments.program, arguments.config.resolve(), arguments.database.resolve(),
                arguments.cache)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for findings in pool.map(tidy.check, entries):
            if findings:
                bad += 1
                print(findings.strip(), flush=True)
    print(f"clang-tidy: {len(entries)} files, {bad} with findings", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
