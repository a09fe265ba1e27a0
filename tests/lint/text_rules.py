#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules for the text of every file that is checked in.

    text_rules.py FILE...

Prints "path:line: what" for each finding; the exit code is 1 when there are any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_LINES = 400

# Files that a person reads as code.
CODE = {".cc", ".h", ".py", ".sh", ".proto", ".bzl"}
# The API's files are one a service, as long as the service is.
LONG_OK = {".proto"}
# Data and records, in which every byte is as it was made.
DATA_DIRECTORIES = {"testdata", "recordings", "corpus", "goldens"}

# What speaks of the machine or the workplace where something was written, not of the product. Each
# pattern is written so that it does not find itself.
WORKPLACE = [
    (re.compile(r"(?<![\w.])/(?:wor[k]|far[m])/"), "a path of the machine where it was written"),
    (re.compile(r"\b[Ss]ub-?agen[t]s?\b"), "how it was written, not what it is"),
]
TODO_WITHOUT_ISSUE = re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X])\b(?!\(#\d+\))")
# The macro is an if with an else, and g++ warns of an else whose if one could mistake.
BARE_EXPECTATION = re.compile(r"\bif \([^;{}]*\)\s+(?:EXPECT|ASSERT)_")


def findings(path: str, content: bytes) -> Iterator[tuple[int, str]]:
    """(line, what) for each finding in one file; line 0 is the file as a whole."""
    if b"\0" in content or DATA_DIRECTORIES & set(Path(path).parts):
        return
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        yield 0, "is not UTF-8"
        return
    lines = text.split("\n")
    yield from _whole_file(path, text, lines)
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "white space at the end of the line"
        for pattern, what in WORKPLACE:
            if pattern.search(line):
                yield number, what
        if Path(path).suffix in CODE and TODO_WITHOUT_ISSUE.search(line):
            yield number, "unfinished work names its issue: TOD" + "O(#12)"


def _whole_file(path: str, text: str, lines: list[str]) -> Iterator[tuple[int, str]]:
    suffix = Path(path).suffix
    if text and not text.endswith("\n"):
        yield len(lines), "no line end at the end of the file"
    if text.endswith("\n\n"):
        yield len(lines) - 1, "an empty line at the end of the file"
    is_script = suffix == "" and text.startswith("#!")
    if not text or not (suffix in CODE or is_script):
        return
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
        yield 1, "no SPDX line at the top"
    if suffix in {".cc", ".h"}:
        for found in BARE_EXPECTATION.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield line, "an expectation of an if wants braces around it"
    if suffix == ".h" and "#pragma once\n" not in text:
        yield 1, "no #pragma once"
    if suffix not in LONG_OK and len(lines) - 1 > MAX_LINES:
        yield 0, f"{len(lines) - 1} lines; at most {MAX_LINES}: is there a second thing in it?"


def main(paths: list[str]) -> int:
    bad = False
    for path in paths:
        for line, what in findings(path, Path(path).read_bytes()):
            bad = True
            print(f"{path}:{line}: {what}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
