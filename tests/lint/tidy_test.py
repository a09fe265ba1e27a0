# SPDX-License-Identifier: Apache-2.0
"""The clang-tidy runner, with the real compiler and a stand-in for clang-tidy."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import tidy

CHECKER = """#!/bin/sh
# Says its version, else complains of every source that holds the word BAD.
if [ "$1" = --version ]; then echo "checker 1"; exit 0; fi
for last; do :; done
echo "$last" >> "$(dirname "$0")/looked_at"
if grep -q BAD "$last"; then echo "$last:1: BAD"; exit 1; fi
"""


class World:
    """A workspace with one header, two sources and a checker."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.checker = root / "checker"
        self.checker.write_text(CHECKER, encoding="utf-8")
        self.checker.chmod(self.checker.stat().st_mode | stat.S_IXUSR)
        self.config = root / ".clang-tidy"
        self.config.write_text("Checks: x\n", encoding="utf-8")
        (root / "h.h").write_text("#include <cstddef>\n", encoding="utf-8")
        (root / "a.cc").write_text('#include "h.h"\n', encoding="utf-8")
        (root / "b.cc").write_text("int b;\n", encoding="utf-8")
        self.database = root / "compile_commands.json"
        self.entries = [{"directory": str(root), "file": str(root / name),
                         "arguments": ["/usr/bin/clang-19", "-c", name]}
                        for name in ("a.cc", "b.cc")]
        self.database.write_text(json.dumps(self.entries), encoding="utf-8")

    def run(self) -> list[str]:
        checker = tidy.Tidy(str(self.checker), self.config, self.database, self.root / "cache")
        return [checker.check(entry) for entry in self.entries]

    def looked_at(self) -> list[str]:
        log = self.root / "looked_at"
        names = log.read_text(encoding="utf-8").split() if log.exists() else []
        log.unlink(missing_ok=True)
        return [Path(name).name for name in names]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_looks_once_at_what_is_clean(world: World) -> None:
    assert world.run() == ["", ""]
    assert world.looked_at() == ["a.cc", "b.cc"]
    assert world.run() == ["", ""]
    assert world.looked_at() == []


def test_looks_again_when_a_header_changes(world: World) -> None:
    world.run()
    world.looked_at()
    (world.root / "h.h").write_text("int h;\n", encoding="utf-8")
    world.run()
    assert world.looked_at() == ["a.cc"]


def test_looks_again_when_flags_or_checks_change(world: World) -> None:
    world.run()
    world.looked_at()
    world.entries[1]["arguments"].insert(1, "-DX")
    world.run()
    assert world.looked_at() == ["b.cc"]
    world.config.write_text("Checks: y\n", encoding="utf-8")
    world.run()
    assert world.looked_at() == ["a.cc", "b.cc"]


def test_findings_are_reported_every_time(world: World) -> None:
    (world.root / "b.cc").write_text("// BAD\n", encoding="utf-8")
    for _ in range(2):
        found = world.run()
        assert found[0] == ""
        assert found[1].endswith("b.cc:1: BAD\n")


def test_a_source_that_does_not_compile_is_a_finding(world: World) -> None:
    (world.root / "a.cc").write_text('#include "none.h"\n', encoding="utf-8")
    assert "cannot be compiled" in world.run()[0]


def test_make_rules_with_continued_lines() -> None:
    assert tidy.parse_make_rule("a.o: a.cc \\\n  b/h.h \\\n  c.h\n") == ["a.cc", "b/h.h", "c.h"]


def test_chooses_the_named_files(world: World) -> None:
    assert tidy.chosen(world.entries, []) == world.entries
    assert tidy.chosen(world.entries, [str(world.root / "b.cc"), "/none.cc"]) == world.entries[1:]
