# SPDX-License-Identifier: Apache-2.0
"""Where a way into a sandbox does not give what is right, what it gives, and why.

A row that is no longer true fails the test, as does a difference without a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clients import Ran


@dataclass(frozen=True)
class Difference:
    gives: Any
    reason: str


_LINE_ENDS = ("the SDK reads the daemon's event stream, whose lines have lost their ends: which "
              "each had, and whether the last one had any, is unknown")
_MINUS_ONE = "the SDK knows exit codes only; every end by a signal, a timeout included, is -1"
_TEXT = "output is text in this host's API: a byte that is not UTF-8 becomes U+FFFD"
_HOST_CODES = ("the host knows exit codes only: 128 and the signal's number, 124 after a timeout, "
               "127 for a program that is not there")
_SHELL_LINES = "AstraBox's contract has shell lines of root and no more"
_NO_SUCH_CALL = "the host's protocol has no such call"


_REPLACED = b"x\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdy\n"
_ALL_BYTES_AS_TEXT = bytes(range(128)) + "\N{REPLACEMENT CHARACTER}".encode() * 128

DIFFERENCES: dict[tuple[str, str], Difference] = {
    ("no newline at the end", "sdk"): Difference(Ran("exit 0", b"abc\n"), _LINE_ENDS),
    ("carriage returns", "sdk"): Difference(Ran("exit 0", b"a\nb\nc\n"), _LINE_ENDS),
    ("environment", "sdk"): Difference(
        Ran("exit 0", b"<a 'b' \"c\" $d\n\xc3\xa9>\n"), _LINE_ENDS),
    ("bytes that are not UTF-8", "sdk"): Difference(
        Ran("exit 0", _REPLACED), "the daemon's event stream is JSON: a byte that is not UTF-8 "
        "becomes U+FFFD"),
    ("bytes that are not UTF-8", "astrabox"): Difference(Ran("exit 0", _REPLACED), _TEXT),
    ("bytes that are not UTF-8", "epp"): Difference(Ran("exit 0", _REPLACED), _TEXT),
    ("stdin", "epp"): Difference(Ran("exit 0", _ALL_BYTES_AS_TEXT), _TEXT),
    ("death by a signal", "sdk"): Difference(Ran("exit -1"), _MINUS_ONE),
    ("a timeout", "sdk"): Difference(Ran("exit -1"), _MINUS_ONE),
    ("death by a signal", "astrabox"): Difference(Ran("exit 143"), _HOST_CODES),
    ("death by a signal", "epp"): Difference(Ran("exit 143"), _HOST_CODES),
    ("a timeout", "epp"): Difference(Ran("exit 124"), _HOST_CODES),
    ("a program that does not exist", "epp"): Difference(
        Ran("exit 127", b"", b"opensandbox: the command could not be started: no such program\n"),
        _HOST_CODES),
    ("a name with a dollar and a tilde is literal", "sdk"): Difference(
        ["root", "~"], "the daemon expands $ and ~ in paths: $HOME went to another name, without a "
        "word"),
    ("a link is described, not followed", "epp"): Difference(
        "file", "the host knows two types, directories and files"),
    ("removing what is not there is refused", "sdk"): Difference(
        "answered None", "the daemon's route succeeds for a missing file"),
    ("stdin", "sdk"): Difference("not offered: stdin", "the daemon's route has no stdin"),
    ("text is replaced", "astrabox"): Difference("not offered: replace", _NO_SUCH_CALL),
    ("text is replaced", "epp"): Difference("not offered: replace", _NO_SUCH_CALL),
} | {
    (name, "astrabox"): Difference("not offered: only shell lines", _SHELL_LINES)
    for name in ("stdin", "argv is not read by a shell", "a program that does not exist",
                 "a working directory", "environment", "a user by numbers")
}
