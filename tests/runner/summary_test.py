# SPDX-License-Identifier: Apache-2.0
"""The count at the end of ./test. Event lines are what Bazel 4.2.3 writes, cut to what is read."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import summary

GTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" disabled="1" errors="0" time="0.01" name="AllTests">
  <testsuite name="Clock" tests="4" failures="1" disabled="1" skipped="1" errors="0">
    <testcase name="Runs" status="run" result="completed" classname="Clock" />
    <testcase name="Needs" status="run" result="skipped" classname="Clock">
      <skipped message="clock_test.cc:7&#x0A;needs root"><![CDATA[clock_test.cc:7
needs root]]></skipped>
    </testcase>
    <testcase name="Breaks" status="run" result="completed" classname="Clock">
      <failure message="clock_test.cc:9&#x0A;Expected equality" type=""></failure>
    </testcase>
    <testcase name="DISABLED_Old" status="notrun" result="suppressed" classname="Clock" />
  </testsuite>
</testsuites>
"""

PYTEST = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="0" skipped="1" tests="3">
  <testcase classname="tests.a_test" name="test_fine" time="0.001" />
  <testcase classname="tests.a_test" name="test_later" time="0.000">
    <skipped type="pytest.skip" message="astrabox is not installed">/x.py:3: astrabox</skipped>
  </testcase>
  <testcase classname="tests.a_test" name="test_setup" time="0.000">
    <error message="failed on setup with &quot;OSError&quot;">trace</error>
  </testcase>
</testsuite></testsuites>
"""


def result(label: str, xml: Path | None, status: str = "PASSED", **key: int) -> str:
    outputs = [{"name": "test.log", "uri": "file:///nowhere/test.log"}]
    if xml is not None:
        outputs.append({"name": "test.xml", "uri": xml.as_uri()})
    identity = {"label": label, "run": 1, "shard": 1, "attempt": 1, **key}
    return json.dumps({"id": {"testResult": identity},
                       "testResult": {"status": status, "testActionOutput": outputs}})


def completed(label: str, success: bool) -> str:
    payload: dict[str, object] = {"success": True} if success else {}
    return json.dumps({"id": {"targetCompleted": {"label": label}}, "completed": payload})


def run(tmp_path: Path, lines: list[str], bazel_exit: int = 0) -> tuple[int, str]:
    events = tmp_path / "events.json"
    events.write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = io.StringIO()
    code = summary.summarize(events, bazel_exit, out)
    return code, out.getvalue()


@pytest.fixture
def gtest_xml(tmp_path: Path) -> Path:
    path = tmp_path / "gtest report.xml"  # the URI has %20
    path.write_text(GTEST, encoding="utf-8")
    return path


def last_line(text: str) -> str:
    return text.rstrip("\n").splitlines()[-1]


def test_counts_cases_of_gtest_and_lists_reasons(tmp_path: Path, gtest_xml: Path) -> None:
    code, text = run(tmp_path, [result("//a:a_test", gtest_xml, "FAILED")], bazel_exit=3)
    assert code == 3
    assert last_line(text) == "1 passed, 1 failed, 2 skipped"
    assert "  //a:a_test Clock.Needs: clock_test.cc:7: needs root" in text
    assert "  //a:a_test Clock.DISABLED_Old: disabled in the source" in text
    assert "  //a:a_test Clock.Breaks: clock_test.cc:9: Expected equality" in text


def test_counts_cases_of_pytest_errors_as_failed(tmp_path: Path) -> None:
    xml = tmp_path / "p.xml"
    xml.write_text(PYTEST, encoding="utf-8")
    code, text = run(tmp_path, [result("//p:p_test", xml, "FAILED")], bazel_exit=3)
    assert (code, last_line(text)) == (3, "1 passed, 1 failed, 1 skipped")
    assert "tests.a_test.test_later: astrabox is not installed" in text


def test_a_target_that_did_not_build_is_one_failure(tmp_path: Path) -> None:
    xml = tmp_path / "ok.xml"
    xml.write_text(PYTEST.replace("<error", "<system-out").replace("</error", "</system-out"),
                   encoding="utf-8")
    lines = [completed("//a:bad_test", False), completed("//a:good_test", True),
             result("//a:good_test", xml)]
    code, text = run(tmp_path, lines, bazel_exit=1)
    assert (code, last_line(text)) == (1, "2 passed, 1 failed, 1 skipped")
    assert "  //a:bad_test: did not build" in text


def test_a_library_that_builds_is_no_case(tmp_path: Path, gtest_xml: Path) -> None:
    lines = [completed("//a:library", True), result("//a:a_test", gtest_xml, "FAILED")]
    _, text = run(tmp_path, lines, bazel_exit=3)
    assert "//a:library" not in text


def test_a_crash_after_the_last_case_counts(tmp_path: Path) -> None:
    xml = tmp_path / "ok.xml"
    xml.write_text('<testsuites><testsuite><testcase name="one" classname="S"/></testsuite>'
                   "</testsuites>", encoding="utf-8")
    code, text = run(tmp_path, [result("//a:a_test", xml, "TIMEOUT")], bazel_exit=3)
    assert (code, last_line(text)) == (3, "1 passed, 1 failed, 0 skipped")
    assert "  //a:a_test: timeout" in text


@pytest.mark.parametrize("xml", [None, Path("/nowhere/test.xml")])
def test_a_pass_without_a_report_is_no_pass(tmp_path: Path, xml: Path | None) -> None:
    code, text = run(tmp_path, [result("//a:a_test", xml)])
    assert (code, last_line(text)) == (1, "0 passed, 1 failed, 0 skipped")


def test_only_the_last_attempt_counts_and_shards_add_up(tmp_path: Path, gtest_xml: Path) -> None:
    ok = tmp_path / "ok.xml"
    ok.write_text('<testsuite><testcase name="one" classname="S"/></testsuite>', encoding="utf-8")
    lines = [result("//a:a_test", gtest_xml, "FAILED", attempt=1),
             result("//a:a_test", ok, "PASSED", attempt=2),
             result("//a:a_test", ok, "PASSED", shard=2)]
    code, text = run(tmp_path, lines)
    assert (code, last_line(text)) == (0, "2 passed, 0 failed, 0 skipped")
    assert "Tried again:\n  //a:a_test\n" in text


def test_nothing_run_is_a_failure(tmp_path: Path) -> None:
    assert run(tmp_path, [], bazel_exit=0)[0] == 1
    code, text = run(tmp_path, [], bazel_exit=4)
    assert (code, last_line(text)) == (4, "0 passed, 1 failed, 0 skipped")


def test_a_broken_package_is_named(tmp_path: Path) -> None:
    aborted = {"reason": "LOADING_FAILURE", "description": "no such package x\n- /w/x"}
    line = json.dumps({"id": {"pattern": {"pattern": ["//x/..."]}}, "aborted": aborted})
    code, text = run(tmp_path, [line], bazel_exit=1)
    assert (code, last_line(text)) == (1, "0 passed, 1 failed, 0 skipped")
    assert "  build: no such package x\n\n" in text


def test_a_missing_event_file_is_a_failure(tmp_path: Path) -> None:
    out = io.StringIO()
    assert summary.summarize(tmp_path / "none.json", 2, out) == 2
    assert last_line(out.getvalue()) == "0 passed, 1 failed, 0 skipped"
