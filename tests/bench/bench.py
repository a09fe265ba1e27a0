# SPDX-License-Identifier: Apache-2.0
"""Measures, prints a table of ratios, writes a CSV and a plot. Run by tests/bench/run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import file_rows
import real_rows
import report
import rows
import with_opensandbox
from servers import Unusable
from world import Place, world


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/bench/run", description=__doc__)
    parser.add_argument("--bins", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=9, help="counted rounds of each group")
    parser.add_argument("--only", default="", help="groups whose name holds this text")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), help="folder to write to")
    return parser.parse_args()


Named = list[tuple[str, report.Figure]]


def main() -> int:
    options = _arguments()
    known = [*rows.groups(), *file_rows.groups(), *real_rows.groups()]
    groups = [group for group in known if options.only in group.name]
    real = [group for group in groups if group.real]
    # The engine of the real server lives in namespaces; then all of this does.
    missing = with_opensandbox.enter([sys.executable, *sys.argv]) if real else ""
    named: Named = []
    if local := [group for group in groups if not group.real]:
        with world(options.bins) as place:
            named += _measure(place, local, options.repeats)
    try:
        if missing:
            raise Unusable(missing)
        if real:
            with real_rows.real_world(options.bins) as place:
                named += _measure(place, real, options.repeats)
    except Unusable as reason:
        print(f"-- real: left out, {reason}")
    return _conclude(named, options.out)


def _measure(place: Place, groups: list[rows.Group], repeats: int) -> Named:
    named: Named = []
    for group in groups:
        if lacks := rows.missing(group):
            print(f"-- {group.name}: left out, this machine has no {', '.join(lacks)}")
            continue
        figures = rows.figures(group, rows.run(place, group, repeats))
        print("\n".join(report.lines(group.name, figures)), flush=True)
        named += [(group.name, figure) for figure in figures]
    return named


def _conclude(named: Named, out: Path) -> int:
    out.mkdir(parents=True, exist_ok=True)
    report.write_csv(out / "bench.csv", named)
    report.plot(out / "bench.png", named)
    missed = [figure[0].name.strip() for _, figure in named if report.verdict(figure) == "MISSED"]
    print(f"{len(named)} figures, {len(missed)} gates missed{': ' if missed else ''}{'; '.join(missed)}")
    print(f"written: {out}/bench.csv, {out}/bench.png")
    return 1 if missed else 0


sys.exit(main())
