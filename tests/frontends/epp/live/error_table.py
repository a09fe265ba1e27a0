# SPDX-License-Identifier: Apache-2.0
"""The published table of failures, docs/errors.md, as tests compare with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

# What a host shows for a JSON-RPC code that comes without a word of its own.
_WORD_OF_CODE = {
    -32000: "E8000",
    -32001: "E1000",
    -32002: "E8005",
    -32003: "E8004",
    -32004: "E2002",
    -32005: "E8022",
    -32006: "E8002",
}


class Answer(NamedTuple):
    """What the plugin answers with."""

    code: int
    sdk_code: str | None

    @property
    def shown(self) -> str:
        """What a user of the SDK sees."""
        return self.sdk_code or _WORD_OF_CODE[self.code]


def answers() -> dict[str, Answer]:
    """By the bridge's reason: the column "EPP"."""
    table = {}
    for line in Path("docs/errors.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip(" `") for cell in line.split("|")]
        if len(cells) > 6 and (match := re.match(r"(-\d+)(?: (E\d+))?", cells[6])):
            table[cells[1]] = Answer(int(match.group(1)), match.group(2))
    assert len(table) > 40
    return table
