# SPDX-License-Identifier: Apache-2.0
"""The host's own contract suite, with the package as users install it and both ways to a bridge."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from conftest import API_KEY, settings
from sdk_host import Sdk, plugin_directory

CASES = 18  # of agent-sandbox-client 0.4.0a6


def run_suite(tmp_path: Path, env: dict[str, str], *options: str) -> None:
    sdk = Sdk(tmp_path / "home")
    installed = sdk.providers("install", str(plugin_directory()), "--yes", env=env)
    assert installed.code == 0, installed
    report = tmp_path / "report.xml"
    result = sdk.providers(
        "test",
        *options,
        "opensandbox",
        "--",
        "-p",
        "no:cacheprovider",
        "-o",
        "asyncio_default_fixture_loop_scope=function",
        f"--junitxml={report}",
        env=env,
        timeout=280,
    )
    (suite,) = ET.parse(report).getroot().iter("testsuite")
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    expected = {"tests": CASES, "failures": 0, "errors": 0, "skipped": 0}
    assert counts == expected, result.stdout[-4000:] + result.stderr[-2000:]
    assert result.code == 0


def test_the_contract_suite_passes(tmp_path: Path, config: dict[str, Any]) -> None:
    run_suite(tmp_path, settings(config))


def test_options_instead_of_the_environment(tmp_path: Path, opensandbox: str) -> None:
    """The host then puts `base_url` among the options of every create: known, and not for us."""
    run_suite(tmp_path, {"OPEN_SANDBOX_API_KEY": API_KEY}, "-o", f"base_url={opensandbox}")
