# SPDX-License-Identifier: Apache-2.0
"""The rules for text. Words that a rule forbids are put together here, so as not to be found."""

from __future__ import annotations

import pytest
import text_rules

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


def whats(path: str, content: str | bytes) -> list[str]:
    data = content.encode() if isinstance(content, str) else content
    return [f"{line}: {what}" for line, what in text_rules.findings(path, data)]


def test_a_good_file_has_no_findings() -> None:
    assert whats("a.cc", SPDX + "int a;\n") == []
    assert whats("a.h", SPDX + "#pragma once\nint a;\n") == []
    assert whats("a.py", "#!/usr/bin/env python3\n" + SPDX + "a = 1\n") == []
    assert whats("BUILD.bazel", "cc_library()\n") == []
    assert whats("empty/__init__.py", "") == []


def test_the_licence_line_is_near_the_top() -> None:
    assert whats("a.cc", "int a;\n") == ["1: no SPDX line at the top"]
    assert whats("a.cc", "\n" * 3 + SPDX + "int a;\n") == ["1: no SPDX line at the top"]
    assert whats("run", "#!/bin/sh\ntrue\n") == ["1: no SPDX line at the top"]
    assert whats("notes.md", "# Notes\n") == []


def test_headers_are_included_once() -> None:
    assert whats("a.h", SPDX + "int a;\n") == ["1: no #pragma once"]


def test_a_file_has_at_most_400_lines() -> None:
    assert whats("a.cc", SPDX + "\n" * 398 + "int a;\n") == []
    assert len(whats("a.cc", SPDX + "\n" * 399 + "int a;\n")) == 1
    assert whats("a.proto", SPDX + "\n" * 600 + "x\n") == []


def test_ends_of_lines_and_of_the_file() -> None:
    assert whats("a.md", "a \n") == ["1: white space at the end of the line"]
    assert whats("a.md", "a\r\n") == ["1: white space at the end of the line"]
    assert whats("a.md", "a") == ["1: no line end at the end of the file"]
    assert whats("a.md", "a\n\n") == ["2: an empty line at the end of the file"]


def test_todos_name_their_issue() -> None:
    assert whats("a.cc", SPDX + "// TO" "DO(#12): later\n") == []
    assert len(whats("a.cc", SPDX + "// TO" "DO: later\n")) == 1
    assert whats("a.md", "TO" "DO list\n") == []


@pytest.mark.parametrize("condition", ["(root) ", "(root)\n    ", "(root() &&\n      other())\n    "])
def test_an_expectation_of_an_if_has_braces(condition: str) -> None:
    bare = f"  if {condition}EXPECT_EQ(f(), 1);\n"
    assert whats("a_test.cc", SPDX + bare) == ["2: an expectation of an if wants braces around it"]
    assert whats("a_test.cc", SPDX + "  if (root) {\n    EXPECT_EQ(f(), 1);\n  }\n") == []
    assert whats("a.md", bare) == []


@pytest.mark.parametrize("text", ["see /wo" "rk/x", "(/fa" "rm/y)", "a sub-ag" "ent did"])
def test_nothing_speaks_of_the_workplace(text: str) -> None:
    assert len(whats("a.md", text + "\n")) == 1


@pytest.mark.parametrize("text", ["/workspace/x", "net/work/x", "agents", "a.b/work/"])
def test_ordinary_words_are_no_findings(text: str) -> None:
    assert whats("a.md", text + "\n") == []


def test_data_is_left_alone() -> None:
    assert whats("tests/x/testdata/a.txt", "a ") == []
    assert whats("a.png", b"\x89PNG\0\xff") == []
    assert whats("a.md", b"\xff\n") == ["0: is not UTF-8"]
