#!/usr/bin/env python3
"""How long brokers of a cluster take until all know what all provide, and what they send for it, against the number of
nodes and of methods, as a table in Markdown and a plot in SVG. The nodes are simulated (cluster_convergence_test.cpp),
by virtual time.

    convergence.py [--test build/tests/test_cluster] [--sizes 3x300,10x1000,...] [--page FILE --plot FILE]

The table goes to standard output, and into the page of documentation in place of the one there."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import typing
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIZES = "3x1000,10x1000,30x1000,100x1000,300x1000,3x10000,10x10000,30x10000,100x10000"  # nodes, methods of all
# Around the table in the page.
BEGIN, END = "<!-- tests/cluster/convergence.py -->\n\n", "\n<!-- end -->\n"

Measured = dict[str, typing.Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--test", type=Path, default=ROOT / "build/tests/test_cluster")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    rows = [measure(options.test, size.replace("x", " ")) for size in options.sizes.split(",")]
    print(table(rows), end="")
    if options.page is not None:
        before, _, rest = options.page.read_text().partition(BEGIN)
        options.page.write_text(before + BEGIN + table(rows) + END + rest.partition(END)[2])
    if options.plot is not None:
        options.plot.write_text(plot(rows))


def measure(test: Path, size: str) -> Measured:
    command = [test, "--gtest_filter=ClusterConvergence.*", "--gtest_brief=1"]
    environment = {**os.environ, "WIRECALL_CONVERGENCE": size}
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    measured: Measured = json.loads(next(line for line in told.splitlines() if line.startswith("{")))
    return measured


def in_short(bytes_count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if bytes_count < 1000 or unit == "GB":
            return f"{bytes_count:.3g} {unit}"
        bytes_count /= 1000
    raise AssertionError


def table(rows: list[Measured]) -> str:
    columns = [
        "nodes",
        "methods",
        "all begin",
        "processor",
        "one begins anew",
        "one method more",
        "one is killed",
        "a second",
    ]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        begin, restart = row["begin"], row["restart"]
        cells = [
            f"{row['nodes']}",
            f"{row['methods']:,}",
            f"{begin['ms']:.1f} ms, {begin['messages']:,} messages, {in_short(begin['bytes'])}",
            f"{begin['processor_ms'] / row['nodes']:.0f} ms",
            f"{restart['ms']:.1f} ms, {restart['messages']:,} messages, {in_short(restart['bytes'])}",
            f"{row['method']['ms']:.1f} ms, {row['method']['messages']:,} messages",
            f"{row['death']['ms'] / 1000:.1f} s",
            f"{row['second']['messages']:,} messages, {row['second']['delivered']:,} deliveries",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


# ---- the plot: two panels above each other, whose x is the number of nodes ----

LEFT, WIDTH, TOP, HEIGHT, GAP = 70, 470, 40, 190, 50
COLOURS = ["#2f6fb0", "#c0392b", "#808080"]


def plot(rows: list[Measured]) -> str:
    methods = sorted({row["methods"] for row in rows}, key=lambda count: -count)
    # Sizes of about as many methods are one line.
    groups: dict[int, list[Measured]] = {}
    for count in methods:
        head = next((known for known in groups if count > 0.7 * known), count)
        groups.setdefault(head, []).extend(row for row in rows if row["methods"] == count)
    panels = [
        ("until all know all methods, once all have begun, ms", lambda row: row["begin"]["ms"], (0.1, 10)),
        ("messages for it", lambda row: row["begin"]["messages"], (10, 1_000_000)),
        ("bytes for it", lambda row: row["begin"]["bytes"], (10_000, 1_000_000_000)),
    ]
    nodes = sorted({row["nodes"] for row in rows})
    body: list[str] = []
    for at, (title, value, span) in enumerate(panels):
        panel = Panel(TOP + at * (HEIGHT + GAP), nodes, span, in_short if title.startswith("bytes") else "{:,g}".format)
        body += panel.frame(title)
        for colour, of in zip(COLOURS, groups.values(), strict=False):
            ordered = sorted(of, key=lambda row: row["nodes"])
            body += panel.line([(row["nodes"], value(row)) for row in ordered], colour)
    y = TOP + len(panels) * (HEIGHT + GAP)
    for colour, count in zip(COLOURS, groups, strict=False):
        words = f"about {count:,} methods of all nodes together"
        body.append(f'<rect x="{LEFT}" y="{y - 8}" width="14" height="8" fill="{colour}"/>' + text(LEFT + 20, y, words))
        y += 18
    width = LEFT + WIDTH + 30
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" height="{y}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Convergence of a cluster, and its traffic, against the number of nodes</title>",
        f'<rect width="{width}" height="{y}" fill="white"/>',
        *body,
        "</svg>",
        "",
    ])  # fmt: skip


class Panel:
    def __init__(self, top: float, nodes: list[int], span: tuple[float, float], label: Callable[[float], str]) -> None:
        self.top = top
        self.nodes = nodes
        self.least, self.most = span
        self.label = label

    def x(self, nodes: float) -> float:
        first, last = math.log10(self.nodes[0]), math.log10(self.nodes[-1])
        return LEFT + WIDTH * (math.log10(nodes) - first) / max(last - first, 1e-9)

    def y(self, value: float) -> float:
        share = math.log10(max(value, self.least) / self.least) / math.log10(self.most / self.least)
        return self.top + HEIGHT * (1 - share)

    def frame(self, title: str) -> list[str]:
        made = [text(LEFT, self.top - 8, title, weight="bold")]
        value = self.least
        while value <= self.most:
            y = self.y(value)
            made.append(f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#e0e0e0"/>')
            made.append(text(LEFT - 6, y + 4, self.label(value), anchor="end"))
            value *= 10
        for nodes in self.nodes:
            made.append(text(self.x(nodes), self.top + HEIGHT + 16, str(nodes), anchor="middle"))
        return made

    def line(self, points: list[tuple[float, float]], colour: str) -> list[str]:
        path = " ".join(f"{self.x(nodes):.1f},{self.y(value):.1f}" for nodes, value in points)
        made = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
        for nodes, value in points:
            made.append(f'<circle cx="{self.x(nodes):.1f}" cy="{self.y(value):.1f}" r="3" fill="{colour}"/>')
        return made


def text(x: float, y: float, words: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>'


if __name__ == "__main__":
    main()
