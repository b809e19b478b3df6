#!/usr/bin/env python3
"""What a durable publish costs, beside what the disk itself takes to make an appended block safe, in the same run and folder:
one at a time, and 256 in flight, which share a sync. Exits with 1 when a bound is exceeded.

    durable.py [WIRECALL] [--folder FOLDER] [--engine epoll|uring] [--rounds N] [--seconds S]

FOLDER is on the disk that is measured.
"""

import os
import statistics
import sys
import tempfile
import time
import typing
from pathlib import Path

import harness

BLOCK = bytes(4096)
CONNECTIONS = 16
PIPELINE = 16  # on each
MICROSECONDS = 1e6


class Round(typing.NamedTuple):
    sync_us: float
    one_us: float
    many_per_s: float


def sync_us(folder: str, seconds: float) -> float:
    """The median time of a block that is appended and synced."""
    file = os.open(f"{folder}/plain", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    taken: "list[float]" = []
    try:
        end = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < end or not taken:
            os.write(file, BLOCK)
            os.fdatasync(file)
            taken.append(time.perf_counter() - begun)
    finally:
        os.close(file)
        os.unlink(f"{folder}/plain")
    return statistics.median(taken) * MICROSECONDS


def main() -> int:
    parser = harness.arguments(__doc__, rounds=5)
    parser.add_argument("--folder", type=Path, default=harness.ROOT / "build")
    options = parser.parse_args()
    pinned = harness.two_cores()
    call = ["rpc.publish", "topic=orders.new", 'params={"id":1}', "durable=true"]
    rounds: "list[Round]" = []
    with tempfile.TemporaryDirectory(prefix="durable-", dir=options.folder) as folder:
        words = [*pinned, *harness.serve(options, "--durable", f"{folder}/data")]
        with harness.listening(words) as server:

            def load(connections: int, pipeline: int) -> dict:
                words = harness.load(options.wirecall, server.urls[0], call, connections, pipeline, options.seconds)
                return harness.told_by(words, options.seconds + 60)

            for _ in range(options.rounds):
                before = sync_us(folder, options.seconds / 2)
                one = load(1, 1)
                many = load(CONNECTIONS, PIPELINE)
                after = sync_us(folder, options.seconds / 2)
                rounds.append(Round((before + after) / 2, one["latency_us"]["p50"], many["rate"]))
    for name in Round._fields:
        print(f"{name}: {', '.join(f'{getattr(one, name):,.0f}' for one in rounds)}")
    in_flight = CONNECTIONS * PIPELINE
    wanted = [min(0.7 * in_flight * MICROSECONDS / one.sync_us, 50_000) for one in rounds]
    within = harness.report([
        ("durable publish, one at a time, of 1.2 syncs and 100 us",
         statistics.median(one.one_us / (1.2 * one.sync_us + 100) for one in rounds), 1.0),
        (f"0.7 of {in_flight} a sync, 50,000 a second at most, of durable publishes, {in_flight} in flight",
         statistics.median(least / one.many_per_s for least, one in zip(wanted, rounds)), 1.0),
    ])
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
