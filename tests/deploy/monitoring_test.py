# SPDX-License-Identifier: Apache-2.0
"""Alerts and dashboard ask for metrics that the bridge has, with labels and reasons that exist."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest
from programs import Bridge, sbx

MONITORING = Path("deploy/kubernetes/components/monitoring")
# Of PromQL.
WORDS = {"absent", "by", "count", "histogram_quantile", "increase", "max", "rate", "sum"}


@pytest.fixture(scope="module")
def metrics() -> dict[str, set[str]]:
    """Name of a metric -> its labels, of a bridge that has answered and refused a call."""
    with Bridge("http://127.0.0.1:1", "--admin_listen=127.0.0.1:0") as bridge:
        assert sbx(bridge.place, "ls").returncode != 0
        admin = bridge.find(r'msg="admin server on ([^" ]+)"')
        with urllib.request.urlopen(f"http://{admin}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
    out: dict[str, set[str]] = {}
    for line in lines:
        match = re.match(r"([a-z_]+)(?:\{(.*)\})? ", line)
        if match and not line.startswith("#"):
            labels = set(re.findall(r'(\w+)="', match.group(2) or ""))
            out.setdefault(match.group(1), set()).update(labels)
    return out


def expressions() -> list[str]:
    rules = (MONITORING / "prometheus-rule.yaml").read_text()
    found = re.findall(r"expr: (?:\|\n((?: {8}.*\n)+)|(.*)\n)", rules)
    assert len(found) == rules.count("alert:")
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    targets = [t["expr"] for panel in dashboard["panels"] for t in panel["targets"]]
    assert len(targets) >= len(dashboard["panels"]) > 5
    return [block or line for block, line in found] + targets


@pytest.mark.parametrize("expression", expressions())
def test_what_is_asked_for_exists(metrics: dict[str, set[str]], expression: str) -> None:
    bare = re.sub(r'"[^"]*"', '""', expression)
    names = set(re.findall(r"\b((?:sandbox_bridge|process)_[a-z_]+)", bare))
    assert names
    for name in names:
        assert name in metrics
    known = {"job", "instance"} | set().union(*(metrics[name] for name in names))
    for selector in re.findall(r"\{([^}]*)\}", bare):
        assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector)) <= known
    for labels in re.findall(r"\bby \(([^)]*)\)", bare):
        assert {label.strip() for label in labels.split(",")} <= known
    words = set(re.findall(r"\b([a-z_]+)\b(?=\s*\()", bare)) - {"sandbox_bridge"}
    assert words <= WORDS
    assert bare.count("(") == bare.count(")")


def test_every_reason_is_of_the_catalogue() -> None:
    catalogue = set(re.findall(r"^\| `([A-Z_]+)` \|", Path("docs/errors.md").read_text(), re.M))
    assert len(catalogue) > 30
    for expression in expressions():
        for reasons in re.findall(r'reason=~?"([A-Z_|]+)"', expression):
            assert set(reasons.split("|")) <= catalogue


def test_every_alert_has_its_words_in_the_manual() -> None:
    manual = Path("docs/operations.md").read_text()
    alerts = re.findall(r"alert: (\w+)", (MONITORING / "prometheus-rule.yaml").read_text())
    assert alerts
    for alert in alerts:
        assert f"`{alert}`" in manual
    # What to do when one rises: for every reason there is.
    for reason in re.findall(r"^\| `([A-Z_]+)` \|", Path("docs/errors.md").read_text(), re.M):
        assert f"`{reason}`" in manual, reason
