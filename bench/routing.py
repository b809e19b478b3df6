#!/usr/bin/env python3
"""What passing messages between clients costs the broker, beside nats-server and beside itself with two threads. Each
router is on one core, the same load on another, and they have their turns: nats-server, broker, broker with two threads.
A figure is the broker's processor time a call or a delivery, as a part of the other's; the median over the rounds.
nats-server is Debian's; without it those rows are left out. Exits with 1 when a bound is exceeded.

    routing.py [WIRECALL] [LOAD] [--engine epoll|uring] [--rounds N] [--seconds S]
"""

import argparse
import contextlib
import os
import shutil
import statistics
import sys
import typing

import harness

LOAD = str(harness.ROOT / "build" / "bench" / "router_load")


class Row(typing.NamedTuple):
    words: "list[str]"
    name: str
    of_nats: float
    of_one_thread: "float | None" = None


ROWS = [
    Row(["calls", "64", "1"], "calls, 64 connections, one at a time", 0.5, 1.5),
    Row(["calls", "1", "64"], "calls, one connection, 64 in flight", 0.4),
    Row(["calls", "32", "16"], "calls, 32 connections, 16 in flight", 1.0, 1.18),
    Row(["events", "100", "128"], "events of 128 bytes to 100 subscribers, a delivery", 0.8),
]


class Cost(typing.NamedTuple):
    ns: float
    p99_us: float


def nats(pinned: "list[str]") -> "contextlib.AbstractContextManager[harness.ServerProcess]":
    port = harness.free_port()
    words = [*pinned, "nats-server", "-a", "127.0.0.1", "-p", str(port)]
    return harness.listening_at(port, words, f"tcp://127.0.0.1:{port}", env={**os.environ, "GOMAXPROCS": "1"})


def measured(options: argparse.Namespace, protocol: str, server: harness.ServerProcess, row: Row) -> Cost:
    words = [options.load, protocol, str(server.port), *row.words, str(options.seconds)]
    before = harness.processor_seconds(server.pid)
    result = harness.told_by(words, options.seconds + 30)
    spent = harness.processor_seconds(server.pid) - before
    return Cost(spent * 1e9 / max(result["count"], 1), result["p99_us"])


def main() -> int:
    parser = harness.arguments(__doc__, rounds=5)
    parser.add_argument("load", nargs="?", default=LOAD)
    options = parser.parse_args()
    pinned = harness.two_cores()
    serve = pinned + harness.serve(options)
    with contextlib.ExitStack() as stack:
        beside = stack.enter_context(nats(pinned)) if shutil.which("nats-server") else None
        one = stack.enter_context(harness.listening(serve))
        two = stack.enter_context(harness.listening([*serve, "--threads", "2"]))
        figures = []
        for row in ROWS:
            costs: "dict[str, list[Cost]]" = {"nats": [], "one": [], "two": []}
            for _ in range(options.rounds):
                if beside:
                    costs["nats"].append(measured(options, "nats", beside, row))
                costs["one"].append(measured(options, "wirecall", one, row))
                if row.of_one_thread:
                    costs["two"].append(measured(options, "wirecall", two, row))

            def part(of: str, to: str, which: str) -> float:
                return statistics.median(getattr(a, which) / getattr(b, which)
                                         for a, b in zip(costs[of], costs[to]) if getattr(b, which))

            ns = {name: statistics.median(cost.ns for cost in of) for name, of in costs.items() if of}
            p99 = {name: statistics.median(cost.p99_us for cost in of) for name, of in costs.items() if of}
            print(f"{row.name}: " + ", ".join(f"{name} {ns[name]:.0f} ns, p99 {p99[name]:.0f} us" for name in ns),
                  flush=True)
            if beside:
                figures.append((f"{row.name}: of nats-server", part("one", "nats", "ns"), row.of_nats))
                if row.words[0] == "calls":
                    figures.append((f"{row.name}: 99th percentile of nats-server's", part("one", "nats", "p99_us"), 1.0))
            if row.of_one_thread:
                figures.append((f"{row.name}: two threads, of one", part("two", "one", "ns"), row.of_one_thread))
    return 0 if harness.report(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
