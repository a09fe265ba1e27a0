# SPDX-License-Identifier: Apache-2.0
"""Measures, prints a table of ratios, writes a CSV and a plot. Run by tests/bench/run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import file_rows
import report
import rows
from world import world


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/bench/run", description=__doc__)
    parser.add_argument("--bins", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=9, help="counted rounds of each group")
    parser.add_argument("--only", default="", help="groups whose name holds this text")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), help="folder to write to")
    return parser.parse_args()


def main() -> int:
    options = _arguments()
    named: list[tuple[str, report.Figure]] = []
    with world(options.bins) as running:
        for group in [*rows.groups(), *file_rows.groups()]:
            if options.only not in group.name:
                continue
            if lacks := rows.missing(group):
                print(f"-- {group.name}: left out, this machine has no {', '.join(lacks)}")
                continue
            figures = rows.figures(group, rows.run(running, group, options.repeats))
            print("\n".join(report.lines(group.name, figures)), flush=True)
            named += [(group.name, figure) for figure in figures]
    options.out.mkdir(parents=True, exist_ok=True)
    report.write_csv(options.out / "bench.csv", named)
    report.plot(options.out / "bench.png", named)
    missed = [figure[0].name.strip() for _, figure in named if report.verdict(figure) == "MISSED"]
    print(f"{len(named)} figures, {len(missed)} gates missed{': ' if missed else ''}{'; '.join(missed)}")
    print(f"written: {options.out}/bench.csv, {options.out}/bench.png")
    return 1 if missed else 0


sys.exit(main())
