# SPDX-License-Identifier: Apache-2.0
"""ruff and mypy --strict over the package, its stand-in, its fakes and its tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "frontends" / "astrabox"
TESTS = ROOT / "tests" / "astrabox"
FAKES = ROOT / "tests" / "fakes"
RUNNER = ROOT / "tests" / "runner"


def run(*command: str | Path, **environ: str) -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", *(str(part) for part in command)],
        cwd=PROJECT,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_ruff_finds_nothing() -> None:
    paths = (PROJECT / "src", PROJECT / "hatch_build.py", TESTS)
    run("ruff", "check", "--no-cache", "--output-format", "concise", *paths)
    run("ruff", "format", "--no-cache", "--check", "--diff", *paths)


def test_mypy_finds_nothing(tmp_path: Path) -> None:
    run(
        *("mypy", "--config-file", PROJECT / "pyproject.toml", "--cache-dir", tmp_path / "cache"),
        *(PROJECT / "src/astrabox_sandbox_bridge", TESTS / "stand_in/astrabox"),
        *(TESTS / "fake_bridge", TESTS / "conftest.py", *sorted(TESTS.glob("*_test.py"))),
        MYPYPATH=":".join(map(str, (PROJECT / "src", TESTS / "stand_in", TESTS, FAKES, RUNNER))),
    )
