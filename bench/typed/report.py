#!/usr/bin/env python3
"""Runs bench_typed, and makes a table in Markdown and a plot in SVG of what it prints.

usage: report.py PROGRAM [--seconds N] [--page FILE --plot FILE]

The table goes to standard output, and into the page of documentation in place of the one there."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from xml.sax.saxutils import escape

ITSELF = "the function itself"
REFERENCE = "gRPC"
# Around the table in the page.
BEGIN, END = "<!-- bench/typed/report.py -->\n\n", "\n<!-- end -->\n"
Rows = dict[str, dict[str, tuple[float, float]]]  # by benchmark and system: ns a call, ns of processor


def main() -> None:
    parser = argparse.ArgumentParser(description="the typed benchmarks as a table and a plot")
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    ran = subprocess.run([arguments.program, str(arguments.seconds)], check=True, capture_output=True, text=True)
    rows = parse(ran.stdout)
    print(table(rows), end="")
    if arguments.page is not None:
        page = arguments.page.read_text()
        before, _, rest = page.partition(BEGIN)
        arguments.page.write_text(before + BEGIN + table(rows) + END + rest.partition(END)[2])
    if arguments.plot is not None:
        arguments.plot.write_text(plot(rows))


def parse(text: str) -> Rows:
    rows: Rows = {}
    for line in text.splitlines():
        benchmark, system, call, processor = line.split("\t")
        rows.setdefault(benchmark, {})[system] = (float(call), float(processor))
    return rows


def table(rows: Rows) -> str:
    """A call's time, and in brackets the processor of both ends less the function's own, gRPC taking 1."""
    systems = list(next(iter(rows.values())))
    lines = ["| | " + " | ".join(rows) + " |", "|---" * (len(rows) + 1) + "|"]
    for system in systems:
        cells = []
        for row in rows.values():
            call, processor = row[system]
            reference = row.get(REFERENCE, (0.0, 0.0))[1]
            share = f" ({processor / reference:.2f})" if reference > 0 and system != ITSELF else ""
            cells.append(duration(call) + share)
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def duration(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


BAR, GAP, LEFT, WIDTH, TOP = 16, 22, 150, 460, 34


def plot(rows: Rows) -> str:
    """Bars: the processor time of a call at both ends, less the function's own; the longest of a benchmark is whole."""
    systems = [system for system in next(iter(rows.values())) if system != ITSELF]
    body: list[str] = []
    at = TOP
    for benchmark, row in rows.items():
        longest = max(max(row[system][1] for system in systems), 1.0)
        body.append(text(8, at - 6, benchmark, "bold"))
        for system in systems:
            length = WIDTH * max(row[system][1], 0.0) / longest
            colour = "#b0b0b0" if system == REFERENCE else "#2f6fb0"
            body.append(text(LEFT - 8, at + BAR - 4, system, "end"))
            body.append(f'<rect x="{LEFT}" y="{at}" width="{length:.1f}" height="{BAR - 3}" fill="{colour}"/>')
            body.append(text(LEFT + length + 5, at + BAR - 4, duration(max(row[system][1], 0.0))))
            at += BAR
        at += GAP
    width, height = LEFT + WIDTH + 80, at
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Processor time of a call at both ends, less the function's own</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *body,
        "</svg>",
        "",
    ])  # fmt: skip


def text(x: float, y: float, words: str, *styles: str) -> str:
    weight = ' font-weight="bold"' if "bold" in styles else ""
    anchor = ' text-anchor="end"' if "end" in styles else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{weight}{anchor}>{escape(words)}</text>'


if __name__ == "__main__":
    main()
