# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md, written from what a run of the tests has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_HEAD = """\
# Compatibility

Written by `tests/integration/opensandbox` from what it saw; a run that sees something else fails.
To renew the page, copy `compatibility.md` from the test's undeclared outputs
(`bazel-testlogs/…/test.outputs/outputs.zip`).

"""

_WAYS = """
## Ways into a sandbox

The same scenarios through each, on the same server. ✓ is what Linux does, byte for byte; a number
is a note below. The *stock daemon* is our execd with the routes and habits of execd 1.1.0 and
nothing else.

"""


def render(versions: Mapping[str, str], features: Mapping[str, tuple[str, str]],
           capabilities: Mapping[str, Mapping[str, tuple[str, str]]],
           scenarios: Mapping[str, Mapping[str, str]], ways: Sequence[str]) -> str:
    """The page. `features` and `capabilities` hold (level, note); `scenarios` "" or a reason."""
    text = _HEAD
    text += _table(["what was run", "version"], [[name, versions[name]] for name in versions])
    text += "\n## The server's features through the bridge\n\n"
    text += _table(["feature", "level", "note"],
                   [[name, *features[name]] for name in sorted(features)])
    text += "\n## What the sandbox's daemon can do\n\n"
    text += _table(["feature", *capabilities], _capability_rows(capabilities))
    text += _WAYS
    notes: list[str] = []

    def mark(reason: str) -> str:
        if not reason:
            return "✓"
        if reason not in notes:
            notes.append(reason)
        return str(notes.index(reason) + 1)

    text += _table(["scenario", *ways],
                   [[name, *(mark(row[way]) for way in ways)] for name, row in scenarios.items()])
    return text + "\n" + "".join(f"{i}. {note}\n" for i, note in enumerate(notes, 1))


def _capability_rows(capabilities: Mapping[str, Mapping[str, tuple[str, str]]]) -> list[list[str]]:
    names = dict.fromkeys(name for rows in capabilities.values() for name in rows)
    cells = []
    for name in names:
        row = [f"`{name}`"]
        for rows in capabilities.values():
            level, note = rows.get(name, ("", ""))
            row.append(f"{level}: {note}" if note else level)
        cells.append(row)
    return cells


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
