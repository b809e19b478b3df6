#!/usr/bin/env python3
"""What batching costs and wins in Python. The server is on one core and the load on another; a figure is the median of the
rounds, beside its bound. Exits with 1 when a bound is exceeded.

    nothing   processor of the server for a call of a batched function that does nothing, of that for one unbatched;
              1,000 callers on 10 connections
    model     the rate at which batches of 128 could run of a function that takes 1 ms and 10 us more for each element,
              without the GIL, of the rate that 512 callers get; and their 99th percentile, in ms
    lone      what one call at a time waits more than one unbatched, in us
    stacking  the time in which arrays of 1 MiB of 32 callers become one array, of memcpy's

    measure.py [--only NAME] [--rounds N] [--seconds S] [--python build/venv/bin/python]
"""

import argparse
import statistics
import sys
import typing
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

PARTS = ["nothing", "model", "lone", "stacking"]
MODEL_RATE = 128 / 2.28e-3  # calls a second


class Bench:
    def __init__(self, options: argparse.Namespace, server: harness.ServerProcess) -> None:
        self.options = options
        self.server = server

    def load(self, method: str, connections: int, pipeline: int) -> "tuple[dict, float]":
        """What `wirecall bench` says, and the seconds of the server's processor for a call."""
        words = harness.load(
            harness.WIRECALL, self.server.urls[0], [method, "7"], connections, pipeline, self.options.seconds
        )
        before = harness.processor_seconds(self.server.pid)
        done = harness.told_by(words, 60 + self.options.seconds)
        return done, (harness.processor_seconds(self.server.pid) - before) / max(1, done["calls"])

    def rounds(self, measure: "typing.Callable[[], float]") -> float:
        return statistics.median(measure() for _ in range(self.options.rounds))

    def nothing(self) -> "list[harness.Row]":
        def share() -> float:
            return self.load("many", 10, 100)[1] / self.load("one", 10, 100)[1]

        return [("processor of a batched call, of one unbatched", self.rounds(share), 0.7)]

    def model(self) -> "list[harness.Row]":
        shares, slowest = [], []
        for _ in range(self.options.rounds):
            told, _ = self.load("model", 8, 64)
            shares.append(MODEL_RATE / told["rate"])
            slowest.append(told["latency_us"]["p99"] / 1000)
        return [
            ("rate of full batches, of what 512 callers get", statistics.median(shares), 1 / 0.7),
            ("99th percentile of these, ms", statistics.median(slowest), 25),
        ]

    def lone(self) -> "list[harness.Row]":
        def more() -> float:
            return self.load("many", 1, 1)[0]["latency_us"]["p50"] - self.load("one", 1, 1)[0]["latency_us"]["p50"]

        return [("a lone call waits more, us", self.rounds(more), 50)]

    def stacking(self) -> "list[harness.Row]":
        told = harness.told_by([self.options.python, str(HERE / "stacking.py")], 60)
        return [(f"stacking, of memcpy into memory that is {where}", ratio, 2) for where, ratio in zip(("new", "there"), told)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--python", default=str(harness.ROOT / "build/venv/bin/python"))
    options = parser.parse_args()
    pinned = harness.two_cores()
    port = harness.free_port()
    words = [*pinned, options.python, str(HERE / "server.py"), f"tcp://127.0.0.1:{port}"]
    rows: "list[harness.Row]" = []
    with harness.listening_at(port, words, f"tcp://127.0.0.1:{port}") as server:
        bench = Bench(options, server)
        for name in options.only or PARTS:
            rows += getattr(bench, name)()
    sys.exit(0 if harness.report(rows) else 1)


if __name__ == "__main__":
    main()
