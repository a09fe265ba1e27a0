# SPDX-License-Identifier: Apache-2.0
"""The table for people, the CSV for machines, the plot for the eye."""

from __future__ import annotations

import csv
from pathlib import Path

from rows import Row

Figure = tuple[Row, float, float, float]


def verdict(figure: Figure) -> str:
    row, median, _, _ = figure
    if row.gate is None:
        return ""
    within = (lambda limit: median <= limit) if row.at_most else (lambda limit: median >= limit)
    if row.aim is not None and within(row.aim):
        return "aim"
    return "gate" if within(row.gate) else "MISSED"


def lines(title: str, figures: list[Figure]) -> list[str]:
    text = [f"-- {title}"]
    for figure in figures:
        row, median, least, most = figure
        sign = "<=" if row.at_most else ">="
        gate = "" if row.gate is None else f"gate {sign} {row.gate:g}"
        aim = "" if row.aim is None else f"aim {sign} {row.aim:g}"
        text.append(
            f"{row.name:48} {median:9.3g}  [{least:.3g} .. {most:.3g}]".ljust(86)
            + f"{gate:14} {aim:12} {verdict(figure)}"
        )
    return text


def write_csv(path: Path, named: list[tuple[str, Figure]]) -> None:
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["group", "row", "median", "least", "most", "gate", "aim", "verdict"])
        for group, figure in named:
            row, median, least, most = figure
            writer.writerow(
                [group, row.name.strip(), median, least, most, row.gate, row.aim, verdict(figure)]
            )


def plot(path: Path, named: list[tuple[str, Figure]]) -> None:
    """How far each figure is from its gate, on one scale: 1 is the gate, left of it is better."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    gated = [(group, figure) for group, figure in named if figure[0].gate]
    figure_, axes = pyplot.subplots(figsize=(10, 0.4 * len(gated) + 1.5))
    for place, (_, (row, median, least, most)) in enumerate(reversed(gated)):
        assert row.gate
        scale = sorted(
            value / row.gate if row.at_most else row.gate / max(value, 1e-9)
            for value in (least, median, most)
        )
        axes.plot([scale[0], scale[2]], [place, place], color="tab:blue", linewidth=2)
        axes.plot(scale[1], place, "o", color="tab:blue")
        if row.aim is not None:
            aim = row.aim / row.gate if row.at_most else row.gate / row.aim
            axes.plot(aim, place, "|", color="tab:green", markersize=14)
    axes.axvline(1.0, color="tab:red")
    axes.set_yticks(
        range(len(gated)),
        [f"{group}: {figure[0].name.strip()}" for group, figure in reversed(gated)],
        fontsize=8,
    )
    axes.set_xscale("log")
    axes.set_xlabel("figure / gate (red: the gate, green: the aim)")
    figure_.tight_layout()
    figure_.savefig(path)
