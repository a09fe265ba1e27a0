#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test cases after `bazel test`, from its build events and the test.xml files they name.

Prints what passed only when tried again, what was skipped and what failed, with reasons, and as the
last line "N passed, N failed, N skipped". A target that did not build, timed out or left no report
counts as one failed case. Exits 0 only if something passed, nothing failed, and Bazel agrees.

Runs on the system's Python; standard library only.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# bazel test: 0 all passed, 3 some failed, 4 no tests were found; everything else is a broken build.
BAZEL_TESTS_FAILED = 3


@dataclass
class Case:
    """One test case, or one target that could not report its cases."""

    target: str
    name: str
    outcome: str  # "passed", "failed", "skipped"
    reason: str = ""


@dataclass
class Attempt:
    """The newest run of one shard of a target."""

    number: int
    status: str
    xml: Path | None


@dataclass
class Target:
    attempts: dict[tuple[int, int], Attempt] = field(default_factory=dict)  # by (run, shard)
    not_built: str = ""


def read_events(lines: Iterable[str]) -> tuple[dict[str, Target], list[str]]:
    """Targets with test results by label, and failures that belong to no target."""
    targets: dict[str, Target] = {}
    loose: list[str] = []
    for line in lines:
        if line.strip():
            _take_event(json.loads(line), targets, loose)
    return targets, loose


def _take_event(event: dict[str, Any], targets: dict[str, Target], loose: list[str]) -> None:
    identity = event.get("id", {})
    aborted = event.get("aborted")
    if "testResult" in identity and "testResult" in event:
        key, result = identity["testResult"], event["testResult"]
        attempt = Attempt(key.get("attempt", 1), result.get("status", "NO_STATUS"), _xml_of(result))
        slots = targets.setdefault(key["label"], Target()).attempts
        slot = (key.get("run", 1), key.get("shard", 1))
        if slot not in slots or slots[slot].number <= attempt.number:
            slots[slot] = attempt
    elif "targetCompleted" in identity:
        label = identity["targetCompleted"]["label"]
        if aborted is not None:
            targets.setdefault(label, Target()).not_built = _abort_text(aborted)
        elif not event.get("completed", {}).get("success", False):
            targets.setdefault(label, Target()).not_built = "did not build"
    elif aborted is not None and ("pattern" in identity or "unconfiguredLabel" in identity
                                  or "configuredLabel" in identity):
        loose.append(_abort_text(aborted))


def _abort_text(aborted: dict[str, Any]) -> str:
    text = aborted.get("description") or aborted.get("reason", "aborted")
    return text.splitlines()[0]


def _xml_of(result: dict[str, Any]) -> Path | None:
    for output in result.get("testActionOutput", []):
        uri = output.get("uri", "")
        if output.get("name") == "test.xml" and uri.startswith("file://"):
            return Path(urllib.parse.unquote(uri[len("file://"):]))
    return None


def cases_of_target(label: str, target: Target) -> Iterator[Case]:
    if not target.attempts:
        yield Case(label, "", "failed", target.not_built or "did not run")
        return
    for attempt in target.attempts.values():
        yield from _cases_of_attempt(label, attempt)


def _cases_of_attempt(label: str, attempt: Attempt) -> Iterator[Case]:
    cases = list(_cases_of_xml(label, attempt.xml)) if attempt.xml else []
    passed = attempt.status in ("PASSED", "FLAKY")
    if passed and cases:
        yield from cases
    elif passed:
        yield Case(label, "", "failed", "passed without a report of its cases")
    else:
        yield from cases
        # A crash or a timeout after the last finished case must not vanish between the cases.
        if not any(case.outcome == "failed" for case in cases):
            yield Case(label, "", "failed", attempt.status.lower().replace("_", " "))


def _cases_of_xml(label: str, path: Path) -> Iterator[Case]:
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        yield Case(label, "", "failed", f"unreadable report {path}: {error}")
        return
    for element in root.iter("testcase"):
        suite, name = element.get("classname", ""), element.get("name", "")
        full = f"{suite}.{name}" if suite and suite != name else name
        yield Case(label, full, *_outcome_of(element))


def _outcome_of(element: ElementTree.Element) -> tuple[str, str]:
    for tag in ("failure", "error"):
        found = element.find(tag)
        if found is not None:
            return "failed", _first_line(found)
    skipped = element.find("skipped")
    if skipped is not None:
        return "skipped", _first_line(skipped)
    if element.get("status") == "notrun" or element.get("result") == "suppressed":
        return "skipped", "disabled in the source"
    return "passed", ""


def _first_line(element: ElementTree.Element) -> str:
    text = element.get("message") or element.text or ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # gtest begins a message with the place, "file.cc:12"; the words are on the next line.
    if len(lines) > 1 and " " not in lines[0]:
        return f"{lines[0]}: {lines[1]}"
    return lines[0] if lines else "no reason given"


def report(cases: list[Case], out: Any) -> None:
    for outcome, title in (("skipped", "Skipped"), ("failed", "Failed")):
        chosen = [case for case in cases if case.outcome == outcome]
        if chosen:
            print(f"\n{title}:", file=out)
        for case in chosen:
            name = f" {case.name}" if case.name else ""
            print(f"  {case.target}{name}: {case.reason}", file=out)
    counts = {o: sum(c.outcome == o for c in cases) for o in ("passed", "failed", "skipped")}
    print(f"\n{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped",
          file=out)


def summarize(events: Path, bazel_exit: int, out: Any) -> int:
    """Prints the report; returns the exit code for the whole run."""
    lines = events.read_text(encoding="utf-8").splitlines() if events.exists() else []
    targets, loose = read_events(lines)
    cases = [c for label in sorted(targets) for c in cases_of_target(label, targets[label])]
    cases += [Case("build", "", "failed", text) for text in loose]
    failed = any(case.outcome == "failed" for case in cases)
    if bazel_exit not in (0, BAZEL_TESTS_FAILED) and not failed:
        cases.append(Case("build", "", "failed", f"bazel ended with {bazel_exit}; see above"))
        failed = True
    retried = sorted(label for label, target in targets.items()
                     if any(attempt.number > 1 for attempt in target.attempts.values()))
    if retried:
        print("\nTried again:", *retried, sep="\n  ", file=out)
    report(cases, out)
    if failed:
        return bazel_exit or 1
    return 0 if any(case.outcome == "passed" for case in cases) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=Path, required=True, help="the build event JSON file")
    parser.add_argument("--bazel_exit", type=int, required=True, help="how `bazel test` ended")
    arguments = parser.parse_args()
    return summarize(arguments.events, arguments.bazel_exit, sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
