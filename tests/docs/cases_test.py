# SPDX-License-Identifier: Apache-2.0
"""The table of cases is true: each case is there once, and each test that it names exists.

Reads the tree itself, of which Bazel knows nothing; found through the link that Bazel made to this
file.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"

# How many cases each area has.
AREAS = {"LIF": 22, "EXE": 27, "STR": 12, "ERR": 13, "SEC": 7}

ROW = re.compile(r"^\| ([A-Z]{3}-\d\d) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")
# `Suite.Name`, `.Name` (of the suite before it) and `Suite.*`, all of it.
OF_GTEST = re.compile(r"([A-Za-z]\w*)?\.([A-Za-z]\w*|\*)")
# `test_name`, `test_name[parameter]`.
OF_PYTEST = re.compile(r"(test_\w+)(?:\[[^\]]+\])?")
FILE = re.compile(r"[\w./-]+\.(?:cc|py|h)|[\w/-]+/")


def rows() -> list[tuple[str, str, str]]:
    return ROW.findall((TESTS / "cases.md").read_text(encoding="utf-8"))


def found(files: str, declared: str) -> set:
    pattern = re.compile(declared, re.MULTILINE)
    return {name for file in TESTS.glob(files) for name in pattern.findall(file.read_text(encoding="utf-8"))}


def gtests() -> set[tuple[str, str]]:
    return found("**/*.cc", r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")


def pytests() -> set[str]:
    return found("**/*.py", r"^ *(?:async )?def (test_\w+)")


def unknown(column: str, of_gtest: set[tuple[str, str]], of_pytest: set[str]) -> list[str]:
    """Which of the names in a row's last column are not there."""
    suites = {suite for suite, _ in of_gtest}
    missing, suite = [], ""
    for name in QUOTED.findall(column):
        if FILE.fullmatch(name):
            exists = bool(list(TESTS.glob("**/" + name.rstrip("/")))) or (ROOT / name).exists()
        elif match := OF_GTEST.fullmatch(name):
            suite = match[1] or suite
            exists = suite in suites if match[2] == "*" else (suite, match[2]) in of_gtest
        elif match := OF_PYTEST.fullmatch(name):
            exists = match[1] in of_pytest
        else:
            exists = False
        if not exists:
            missing.append(name)
    return missing


def test_every_case_is_there_once() -> None:
    cases = [case for case, _, _ in rows()]
    assert len(cases) == len(set(cases))
    for area, count in AREAS.items():
        assert sum(case.startswith(area) for case in cases) == count, area


def test_every_case_names_a_test() -> None:
    for case, _, column in rows():
        assert OF_GTEST.search(column) or OF_PYTEST.search(column), case


def test_every_test_that_is_named_exists() -> None:
    of_gtest, of_pytest = gtests(), pytests()
    for case, _, column in rows():
        assert unknown(column, of_gtest, of_pytest) == [], case


@pytest.mark.parametrize(
    "column", ["`NoSuch.Test`", "`.Test`", "`test_no_such`", "`no_such_test.cc`", "`no such`"]
)
def test_a_test_that_is_not_there_is_noticed(column: str) -> None:
    assert unknown(column, gtests(), pytests()) == [column.strip("`")]


def test_how_tests_are_named() -> None:
    of_gtest, of_pytest = {("Suite", "One"), ("Suite", "Two")}, {"test_it"}
    column = "`Suite.One`, `.Two`, `Suite.*`; `test_it`, `test_it[502]` in `tests/docs/cases_test.py`"
    assert unknown(column, of_gtest, of_pytest) == []
