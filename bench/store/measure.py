#!/usr/bin/env python3
"""What examples/store costs beside redis-server, which has all in memory and here writes nothing to disk. The server is
on one core and the load on another; a figure is the median of the rounds, in each of which both have their turn, beside
its bound. Exits with 1 when a bound is exceeded.

    get       processor of a get of 100 bytes, of redis' GET, and its median latency, of redis'; 32 connections with 16
              in flight
    commit    what a put takes among those of 512 callers, of what it takes alone: how many share a wait for the disk

    measure.py [build/wirecall] [--store build/examples/example_store] [--only NAME] [--rounds N] [--seconds S]
               [--folder FOLDER]
"""

import argparse
import contextlib
import csv
import statistics
import subprocess
import sys
import tempfile
import typing
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

CONNECTIONS, IN_FLIGHT = 32, 16
VALUE = "x" * 100
Cost = typing.Tuple[float, float]  # seconds of the server's processor for a call, and the median latency in us


class Bench:
    def __init__(self, options: argparse.Namespace, store: harness.ServerProcess, redis: harness.ServerProcess) -> None:
        self.options = options
        self.store = store
        self.redis = redis

    def load(self, call: "list[str]", connections: int, pipeline: int) -> dict:
        words = harness.load(
            self.options.wirecall, self.store.urls[0], call, connections, pipeline, self.options.seconds
        )
        return harness.told_by([*words, "--warm-up", "1ms"], 60 + self.options.seconds)

    def get_of_store(self) -> Cost:
        before = harness.processor_seconds(self.store.pid)
        done = self.load(["get", "key"], CONNECTIONS, IN_FLIGHT)
        return (harness.processor_seconds(self.store.pid) - before) / done["calls"], done["latency_us"]["p50"]

    def get_of_redis(self, calls: int) -> "tuple[Cost, float]":
        """What it costs, and how many are answered a second."""
        before = harness.processor_seconds(self.redis.pid)
        words = f"redis-benchmark -p {self.redis.port} -c {CONNECTIONS} -P {IN_FLIGHT} -n {calls} --csv GET key".split()
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        cost = (harness.processor_seconds(self.redis.pid) - before) / calls
        [told] = csv.DictReader(done.stdout.splitlines())
        return (cost, float(told["p50_latency_ms"]) * 1000), float(told["rps"])

    def get(self) -> "list[harness.Row]":
        put = f"{self.options.wirecall} call put --url {self.store.urls[0]} key=key value:bytes={VALUE}"
        for words in (put, f"redis-cli -p {self.redis.port} set key {VALUE}"):
            subprocess.run(words.split(), check=True, capture_output=True)
        calls = max(10_000, int(self.get_of_redis(50_000)[1] * self.options.seconds))
        rounds = [(self.get_of_redis(calls)[0], self.get_of_store()) for _ in range(self.options.rounds)]

        def row(name: str, unit: str, figure: int, scale: float) -> harness.Row:
            ratio = statistics.median(own[figure] / theirs[figure] for theirs, own in rounds)
            base = statistics.median(theirs[figure] for theirs, _ in rounds) * scale
            return f"{name} of a get, of redis' {base:.0f} {unit}", ratio, 1.5

        return [row("processor", "ns", 0, 1e9), row("median latency", "us", 1, 1)]

    def commit(self) -> "list[harness.Row]":
        def share() -> float:
            call = ["put", "key", '{"$bytes":"eA=="}']
            return self.load(call, 1, 1)["rate"] / self.load(call, CONNECTIONS, IN_FLIGHT)["rate"]

        figure = statistics.median(share() for _ in range(self.options.rounds))
        return [("a put among those of 512 callers, of one alone", figure, 0.05)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wirecall", nargs="?", default=harness.WIRECALL)
    parser.add_argument("--store", default=str(harness.ROOT / "build/examples/example_store"))
    parser.add_argument("--only", action="append", choices=["get", "commit"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--folder", help="where the store is, and so on which disk; a temporary one where not said")
    options = parser.parse_args()
    pinned = harness.two_cores()
    rows: "list[harness.Row]" = []
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder))
        port = harness.free_port()
        url = f"tcp://127.0.0.1:{port}"
        store = stack.enter_context(harness.listening_at(port, [*pinned, options.store, folder, url], url))
        port = harness.free_port()
        words = [*pinned, "redis-server", "--port", port, "--save", "", "--appendonly", "no", "--dir", folder]
        redis = stack.enter_context(harness.listening_at(port, words, f"tcp://127.0.0.1:{port}"))
        bench = Bench(options, store, redis)
        for name in options.only or ["get", "commit"]:
            rows += getattr(bench, name)()
    sys.exit(0 if harness.report(rows) else 1)


if __name__ == "__main__":
    main()
