#!/usr/bin/env python3
"""What passing messages between clients costs the broker, beside nats-server and beside itself with two threads. Each
router is on one core, the same load on another, and they have their turns: nats-server, broker, broker with two threads.
A figure is the broker's processor time a call or a delivery, as a part of the other's; the median over the rounds.
nats-server is Debian's; without it those rows are left out. Exits with 1 when a bound is exceeded.

    routing.py [WIRECALL] [LOAD] [--engine epoll|uring] [--rounds N] [--seconds S]
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
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


def port_of(url: str) -> str:
    return url.rpartition(":")[2]


@contextlib.contextmanager
def nats() -> "typing.Iterator[harness.ServerProcess]":
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen(["nats-server", "-a", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL,
                          env={**os.environ, "GOMAXPROCS": "1"}) as process:
        try:
            for _ in range(500):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.01)
            yield harness.ServerProcess(process.pid, [f"tcp://127.0.0.1:{port}"])
        finally:
            process.kill()


def measured(options: argparse.Namespace, protocol: str, server: harness.ServerProcess, row: Row) -> Cost:
    words = [options.load, protocol, port_of(server.urls[0]), *row.words, str(options.seconds)]
    before = harness.processor_seconds(server.pid)
    done = subprocess.run(words, capture_output=True, text=True, timeout=options.seconds + 30)
    spent = harness.processor_seconds(server.pid) - before
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    return Cost(spent * 1e9 / max(result["count"], 1), result["p99_us"])


def on_core(core: int, words: "list[str]") -> "list[str]":
    return ["taskset", "-c", str(core), *words]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wirecall", nargs="?", default=harness.WIRECALL)
    parser.add_argument("load", nargs="?", default=LOAD)
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    serving, loading = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, {loading})
    serve = [options.wirecall, "serve", "--port", "0", "--engine", options.engine]
    with contextlib.ExitStack() as stack:
        # A server is pinned when it starts, and what it starts is pinned with it.
        os.sched_setaffinity(0, {serving})
        beside = stack.enter_context(nats()) if shutil.which("nats-server") else None
        one = stack.enter_context(harness.listening(serve))
        two = stack.enter_context(harness.listening([*serve, "--threads", "2"]))
        os.sched_setaffinity(0, {loading})
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
