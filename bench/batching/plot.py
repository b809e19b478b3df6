#!/usr/bin/env python3
"""Rate and latency of a batched model, against the size of its batches, as a plot in SVG; and what fixed waits and the
adaptive one give calls that come at a rate, and callers that wait for their answers, as a table in Markdown. The model
(server.py) takes 1 ms and 10 us more for each element, without the GIL. The server is on one core and the load on
another. A figure is the median of the rounds.

    plot.py [--rounds N] [--seconds S] [--python build/venv/bin/python] [--page FILE --plot FILE]

The table goes to standard output, and into the page of documentation in place of the one there."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import typing
from collections.abc import Callable, Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

# Those of server.py.
SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
WAITS_MS = ["0", "1", "2", "5", "auto"]
RUN_S, ELEMENT_S = 1e-3, 10e-6

CONNECTIONS, CALLERS = 8, 512
RATES = [1_000, 5_000, 20_000, 40_000]  # calls a second
WAITING = 64  # callers, each of which calls again only once it has been answered
THINK_US = [100, 500]  # and after such a time
# Around the table in the page.
BEGIN, END = "<!-- bench/batching/plot.py -->\n\n", "\n<!-- end -->\n"


class Measured(typing.NamedTuple):
    size: float  # of a batch, on average
    rate: float  # calls a second
    p50_ms: float

    @property
    def busy(self) -> float:
        """Of the time, that in which the model runs."""
        return self.rate * (RUN_S / self.size + ELEMENT_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--python", default=str(harness.ROOT / "build/venv/bin/python"))
    parser.add_argument("--page", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    pinned = harness.two_cores()
    url = f"tcp://127.0.0.1:{harness.free_port()}"
    with harness.listening_at(int(url.rpartition(":")[2]), [*pinned, options.python, HERE / "server.py", url], url):
        rounds = [measure_all(url, options.seconds) for _ in range(options.rounds)]
    by_size = [median(of) for of in zip(*(sizes for sizes, _ in rounds))]
    by_wait = {wait: [median(of) for of in zip(*(waits[wait] for _, waits in rounds))] for wait in WAITS_MS}
    print(table(by_wait), end="")
    if options.page is not None:
        before, _, rest = options.page.read_text().partition(BEGIN)
        options.page.write_text(before + BEGIN + table(by_wait) + END + rest.partition(END)[2])
    if options.plot is not None:
        options.plot.write_text(plot(by_size, by_wait))


def measure_all(url: str, seconds: float) -> tuple[list[Measured], dict[str, list[Measured]]]:
    by_size = [measure(url, f"size_{size}", seconds, CALLERS) for size in SIZES]
    by_wait: dict[str, list[Measured]] = {wait: [] for wait in WAITS_MS}
    for rate in RATES:
        for wait, row in by_wait.items():
            row.append(measure(url, f"wait_{wait}", seconds, CALLERS, "--rate", str(rate)))
    for wait, row in by_wait.items():
        row.append(measure(url, f"wait_{wait}", seconds, WAITING))
    for wait, row in by_wait.items():
        row.append(measure_thinking(url, f"wait_{wait}", seconds))
    return by_size, by_wait


def median(rounds: Iterable[Measured]) -> Measured:
    return Measured(*(statistics.median(column) for column in zip(*rounds)))


def measure(url: str, method: str, seconds: float, callers: int, *more: str) -> Measured:
    load = harness.load(harness.WIRECALL, url, [method, "7"], CONNECTIONS, callers // CONNECTIONS, seconds)
    return measure_load(url, method, [*load, *more], seconds)


def measure_thinking(url: str, method: str, seconds: float) -> Measured:
    load = [sys.executable, HERE / "thinking_load.py", url, method, "--callers", str(WAITING), "--seconds", str(seconds)]
    return measure_load(url, method, [*load, "--think-us", *map(str, THINK_US)], seconds)


def measure_load(url: str, method: str, load: list[typing.Any], seconds: float) -> Measured:
    before = sizes_of(url, method)
    told = harness.told_by(load, seconds + 30)
    runs, calls = (after - earlier for after, earlier in zip(sizes_of(url, method), before))
    return Measured(calls / runs, told["rate"], told["latency_us"]["p50"] / 1e3)


def sizes_of(url: str, method: str) -> list[int]:
    words = [harness.WIRECALL, "call", "sizes_of", method, "--url", url]
    sizes: list[int] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return sizes


def table(by_wait: dict[str, list[Measured]]) -> str:
    """The median of the latency, or the rate where that is not given, the mean size of the batches, and how busy the
    model is."""
    columns = [f"{rate:,} calls/s" for rate in RATES] + [f"{WAITING} callers", f"{WAITING} that think"]
    lines = ["| `wait_ms` | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for wait, row in by_wait.items():
        firsts = [f"{of.p50_ms:.1f} ms" for of in row[: len(RATES)]] + [f"{of.rate:,.0f}/s" for of in row[len(RATES) :]]
        cells = [f"{first}, {of.size:.1f}, {of.busy:.0%}" for first, of in zip(firsts, row)]
        lines.append(f"| {wait} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


# ---- the plot: two panels above each other, whose x is the size of a batch ----

LEFT, WIDTH, TOP, HEIGHT, GAP = 70, 470, 40, 190, 50
COLOURS = {"sizes": "#2f6fb0", "5": "#808080", "auto": "#c0392b"}


def plot(by_size: list[Measured], by_wait: dict[str, list[Measured]]) -> str:
    panels: list[tuple[str, Callable[[Measured], float], float]] = [
        ("calls a second", lambda of: of.rate, 100_000),
        ("median of the latency, ms", lambda of: of.p50_ms, 1000),
    ]
    body: list[str] = []
    for at, (title, value, most) in enumerate(panels):
        panel = Panel(TOP + at * (HEIGHT + GAP), most, is_logarithmic=at == 1)
        body += panel.frame(title)
        body.append(panel.line([(of.size, value(of)) for of in by_size], COLOURS["sizes"]))
        if at == 0:
            full = [(float(size), size / (RUN_S + ELEMENT_S * size)) for size in SIZES]
            body.append(panel.line(full, COLOURS["sizes"], dashes="4 4"))
        for wait in ("5", "auto"):
            is_above = (wait == "auto") == (at == 0)  # where the other one is not
            for rate, of in zip(RATES, by_wait[wait]):
                body += panel.point(of.size, value(of), f"{rate:,}", COLOURS[wait], is_above=is_above)
    legend = [
        ("line: full batches, 512 callers; dashes: the model alone", COLOURS["sizes"]),
        ('wait_ms="auto", calls that come at a rate', COLOURS["auto"]),
        ("wait_ms=5, the same", COLOURS["5"]),
    ]
    y = TOP + 2 * (HEIGHT + GAP)
    for words, colour in legend:
        body.append(f'<rect x="{LEFT}" y="{y - 8}" width="14" height="8" fill="{colour}"/>' + text(LEFT + 20, y, words))
        y += 18
    width = LEFT + WIDTH + 30
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" height="{y}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Rate and latency of a batched function against the size of its batches</title>",
        f'<rect width="{width}" height="{y}" fill="white"/>',
        *body,
        "</svg>",
        "",
    ])  # fmt: skip


class Panel:
    def __init__(self, top: float, most: float, *, is_logarithmic: bool) -> None:
        self.top = top
        self.most = most
        self.is_logarithmic = is_logarithmic

    def x(self, size: float) -> float:
        return LEFT + WIDTH * math.log2(size) / math.log2(SIZES[-1])

    def y(self, value: float) -> float:
        share = math.log10(value) / math.log10(self.most) if self.is_logarithmic else value / self.most
        return self.top + HEIGHT * (1 - share)

    def frame(self, title: str) -> list[str]:
        made = [text(LEFT, self.top - 8, title, weight="bold")]
        for value in [1, 10, 100, 1000] if self.is_logarithmic else [0, 25_000, 50_000, 75_000, 100_000]:
            y = self.y(value)
            made.append(f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#e0e0e0"/>')
            made.append(text(LEFT - 6, y + 4, f"{value:,}", anchor="end"))
        for size in SIZES:
            made.append(text(self.x(size), self.top + HEIGHT + 16, str(size), anchor="middle"))
        return made

    def line(self, points: list[tuple[float, float]], colour: str, dashes: str = "") -> str:
        path = " ".join(f"{self.x(size):.1f},{self.y(value):.1f}" for size, value in points)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashed}/>'

    def point(self, size: float, value: float, words: str, colour: str, *, is_above: bool) -> list[str]:
        x, y = self.x(size), self.y(value)
        return [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>',
            text(x, y - 8 if is_above else y + 16, words, anchor="middle", colour=colour),
        ]


def text(
    x: float, y: float, words: str, *, anchor: str = "start", weight: str = "normal", colour: str = "black"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}">{words}</text>'
    )


if __name__ == "__main__":
    main()
