#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes compile_commands.json from `bazel aquery --output=jsonproto`, for clang-tidy and editors.

    bazel aquery 'mnemonic(CppCompile, //...)' --output=jsonproto > actions.json
    compile_commands.py --workspace . --execution_root "$(bazel info execution_root)" actions.json

Sources are read where they are edited: each entry's directory is the workspace, and only what Bazel
makes (bazel-out/) or mounts (external/) is looked up below its output directories.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

# What only one compiler run needs: dependency files, the object's name, its random seed, colours.
_PAIRS = {"-MF", "-o"}
_SINGLES = {"-MD", "-fcolor-diagnostics"}
_PREFIXES = ("-frandom-seed=",)


def tool_arguments(arguments: list[str]) -> list[str]:
    """The arguments that say how a source is read; what they would write is left out."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in _PAIRS:
            skip = True
        elif argument not in _SINGLES and not argument.startswith(_PREFIXES):
            kept.append(argument)
    return kept


def absolute(argument: str, execution_root: Path) -> str:
    """A path that is relative to Bazel's execution root, as one that holds everywhere."""
    if argument.startswith("bazel-out/"):
        return str(execution_root / argument)
    if argument.startswith("external/"):
        # The execution root has links only to what the last build used; the output base has all.
        return str(execution_root.parent.parent / argument)
    return argument


def source_of(arguments: list[str]) -> str | None:
    """The file after -c."""
    for index, argument in enumerate(arguments[:-1]):
        if argument == "-c":
            return arguments[index + 1]
    return None


def entries(actions: dict[str, Any], workspace: Path, execution_root: Path) -> list[dict[str, Any]]:
    """One entry per source of the workspace, sorted; generated sources are left out."""
    found: dict[str, dict[str, Any]] = {}
    for action in actions.get("actions", []):
        arguments = action.get("arguments", [])
        source = source_of(arguments)
        if source is None or source.startswith(("bazel-out/", "external/")):
            continue
        found.setdefault(source, {
            "directory": str(workspace),
            "file": str(workspace / source),
            "arguments": [absolute(a, execution_root) for a in tool_arguments(arguments)],
        })
    return [found[source] for source in sorted(found)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--execution_root", type=Path, required=True)
    parser.add_argument("actions", type=Path, help="output of bazel aquery")
    arguments = parser.parse_args()
    actions = json.loads(arguments.actions.read_text(encoding="utf-8"))
    database = entries(actions, arguments.workspace.resolve(), arguments.execution_root)
    target = arguments.workspace / "compile_commands.json"
    target.write_text(json.dumps(database, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
