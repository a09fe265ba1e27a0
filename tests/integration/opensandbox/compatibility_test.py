# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md says what this run has seen. Runs after all others (see conftest.py)."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import pytest
from compatibility import render
from conftest import OpenSandbox, Results
from differential_test import WAYS
from scenarios import SCENARIOS


def test_the_page_is_what_was_seen(opensandbox: OpenSandbox, results: Results) -> None:
    complete = (set(results.scenarios) == {scenario.name for scenario in SCENARIOS}
                and all(set(row) == set(WAYS) for row in results.scenarios.values())
                and results.features and len(results.capabilities) == 2)
    if not complete:
        pytest.skip("only a run of all tests, with no failure, makes the page")
    scenarios = {scenario.name: results.scenarios[scenario.name] for scenario in SCENARIOS}
    versions = {
        "`opensandbox-server`, on Docker": results.versions["opensandbox-server"],
        "`opensandbox`, the official Python SDK": version("opensandbox"),
        "execd": "ours, and ours as a stock 1.1.0",
    }
    page = render(versions, results.features, dict(sorted(results.capabilities.items())),
                  scenarios, WAYS)
    outputs = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
    if outputs:
        (Path(outputs) / "compatibility.md").write_text(page, encoding="utf-8")
    assert Path("docs/compatibility.md").read_text(encoding="utf-8") == page
