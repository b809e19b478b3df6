#!/usr/bin/env python3
"""What brokers that are one cost: calls from one to the other, beside local ones and beside libnats's own request and reply
in the same run; events; and a broker that joins, or has nothing to do. nats-server, the brokers and libnats's two processes
are on one core, the load on another. Processor time is that of both brokers, or of both of libnats's processes, a call;
nats-server's is printed. Exits with 1 when a bound is exceeded.

    cluster.py [WIRECALL] [FOLDER] [--engine epoll|uring] [--rounds N] [--seconds S]

FOLDER has router_load and nats_echo.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time
import typing
from pathlib import Path

import harness

METHODS = 10_000
METHODS_EACH = 500
IDLE_SECONDS = 5
MEETING_SECONDS = 30


class Cost(typing.NamedTuple):
    us: float  # of processor, a call or delivery
    p50_us: float
    nats_us: float = 0  # of nats-server


class Client:
    """A connection that asks one thing after the other."""

    def __init__(self, server: harness.ServerProcess) -> None:
        self.file = socket.create_connection(server.address).makefile("rw")

    def ask(self, method: str, **params: typing.Any) -> typing.Any:
        print(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": 1}), file=self.file, flush=True)
        answer = json.loads(self.file.readline())
        if "error" in answer:
            sys.exit(f"{method}: {answer['error']}")
        return answer["result"]


def own_children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Bench:
    def __init__(self, options: argparse.Namespace, stack: contextlib.ExitStack) -> None:
        self.options = options
        self.pinned = harness.two_cores()
        self.stack = stack
        port = harness.free_port()
        self.url = f"nats://127.0.0.1:{port}"
        words = [*self.pinned, "nats-server", "-a", "127.0.0.1", "-p", str(port)]
        self.nats = stack.enter_context(
            harness.listening_at(port, words, self.url, env={**os.environ, "GOMAXPROCS": "1"}))
        self.one = self.broker("one")
        self.two = self.broker("two")
        self.alone = stack.enter_context(harness.listening([*self.pinned, *harness.serve(options)]))
        self.until_known(self.one, "two")
        self.until_known(self.two, "one")

    def broker(self, node: str) -> harness.ServerProcess:
        words = [*self.pinned, *harness.serve(self.options), "--cluster", self.url, "--node", node]
        return self.stack.enter_context(harness.listening(words))

    def until_known(self, broker: harness.ServerProcess, node: str, methods: int = 0) -> float:
        """The seconds until then."""
        client = Client(broker)
        begun = time.monotonic()
        while time.monotonic() - begun < MEETING_SECONDS:
            for one in client.ask("rpc.cluster")["nodes"]:
                if one["node"] == node and one["state"] == "up" and one["methods"] >= methods:
                    return time.monotonic() - begun
            time.sleep(0.005)
        sys.exit(f"the brokers do not meet: {client.ask('rpc.cluster')}")

    def load(self, ports: str, *words: str) -> "dict[str, float]":
        command = [str(self.options.folder / "router_load"), "wirecall", ports, *words, str(self.options.seconds)]
        return harness.told_by(command, self.options.seconds + 60)

    def across(self, *words: str) -> Cost:
        before = [harness.processor_seconds(server.pid) for server in (self.one, self.two, self.nats)]
        told = self.load(f"{self.one.port},{self.two.port}", *words)
        one, two, nats = (harness.processor_seconds(server.pid) - was
                          for server, was in zip((self.one, self.two, self.nats), before))
        count = max(told["count"], 1)
        return Cost((one + two) * 1e6 / count, told["p50_us"], nats * 1e6 / count)

    def at(self, server: harness.ServerProcess, *words: str) -> Cost:
        before = harness.processor_seconds(server.pid)
        told = self.load(str(server.port), *words)
        return Cost((harness.processor_seconds(server.pid) - before) * 1e6 / max(told["count"], 1), told["p50_us"])

    def libnats(self, in_flight: int) -> Cost:
        program = str(self.options.folder / "nats_echo")
        responder = subprocess.Popen([*self.pinned, program, "respond", self.url], stdout=subprocess.PIPE, text=True)
        try:
            responder.stdout.readline()
            before = harness.processor_seconds(responder.pid) + own_children_seconds()
            nats = harness.processor_seconds(self.nats.pid)
            told = harness.told_by([*self.pinned, program, "request", self.url, str(in_flight), str(self.options.seconds)],
                                   self.options.seconds + 60)
            spent = harness.processor_seconds(responder.pid) + own_children_seconds() - before
            nats = harness.processor_seconds(self.nats.pid) - nats
        finally:
            responder.kill()
            responder.stdout.close()
            responder.wait()
        return Cost(spent * 1e6 / max(told["count"], 1), told["p50_us"], nats * 1e6 / max(told["count"], 1))

    def rounds(self, *measures: "typing.Callable[[], Cost]") -> "list[list[Cost]]":
        return [[measure() for measure in measures] for _ in range(self.options.rounds)]

    def calls(self) -> "typing.Iterator[harness.Row]":
        rounds = self.rounds(lambda: self.libnats(1), lambda: self.at(self.one, "calls", "1", "1"),
                             lambda: self.across("calls", "1", "1"))
        nats, local, remote = (statistics.median(one[i].p50_us for one in rounds) for i in range(3))
        print(f"one call in flight, median: libnats {nats:.0f} us, local {local:.0f} us, remote {remote:.0f} us")
        yield ("remote call, of libnats's request and reply and 2.4 local calls",
               statistics.median(r.p50_us / (n.p50_us + 2.4 * own.p50_us) for n, own, r in rounds), 1.0)
        for in_flight, bound in ((64, 2.0), (512, 1.5)):
            rounds = self.rounds(lambda: self.libnats(in_flight), lambda: self.across("calls", "1", str(in_flight)))
            nats, own = (statistics.median(one[i].us for one in rounds) for i in range(2))
            of_server = [statistics.median(one[i].nats_us for one in rounds) for i in range(2)]
            print(f"{in_flight} calls in flight: libnats {nats:.2f} us, both brokers {own:.2f} us a call; nats-server "
                  f"{of_server[0]:.2f} and {of_server[1]:.2f} us")
            yield (f"processor of both brokers, {in_flight} in flight, of libnats's two processes",
                   statistics.median(b.us / n.us for n, b in rounds), bound)

    def local(self) -> "typing.Iterator[harness.Row]":
        words = ("calls", "64", "1")
        rounds = self.rounds(lambda: self.at(self.alone, *words), lambda: self.at(self.one, *words),
                             lambda: self.at(self.alone, *words))
        yield ("local calls of a broker of a cluster, of those of one alone",
               statistics.median(2 * own.us / (a.us + b.us) for a, own, b in rounds), 1.02)

    def events(self) -> "typing.Iterator[harness.Row]":
        rounds = self.rounds(lambda: self.at(self.alone, "events", "100", "128"),
                             lambda: self.across("events", "200", "128"))
        yield ("an event to 100 subscribers at each of two brokers, of two local fan-outs",
               statistics.median(both.us / own.us for own, both in rounds), 1.1)

    def joining(self) -> "typing.Iterator[harness.Row]":
        providers = [Client(self.two) for _ in range(METHODS // METHODS_EACH)]
        for number, provider in enumerate(providers):
            names = range(number * METHODS_EACH, (number + 1) * METHODS_EACH)
            provider.ask("rpc.register", methods=[{"method": f"bench.method{name}"} for name in names])
        three = self.broker("three")
        yield f"seconds until a broker that joins knows {METHODS:,} methods", self.until_known(three, "two", METHODS), 1.0
        for provider in providers:
            provider.file.close()

    def idle(self) -> "typing.Iterator[harness.Row]":
        time.sleep(2)
        before = harness.processor_seconds(self.one.pid)
        time.sleep(IDLE_SECONDS)
        spent = harness.processor_seconds(self.one.pid) - before
        yield "percent of a core of a broker of three that have nothing to do", 100 * spent / IDLE_SECONDS, 0.5


def main() -> int:
    parser = harness.arguments(__doc__, rounds=5)
    parser.add_argument("folder", nargs="?", type=Path, default=harness.ROOT / "build" / "bench")
    options = parser.parse_args()
    if shutil.which("nats-server") is None:
        sys.exit("this needs nats-server: tools/install_packages.sh cluster installs it")
    with contextlib.ExitStack() as stack:
        bench = Bench(options, stack)
        within = True
        for part in (bench.calls, bench.local, bench.events, bench.joining, bench.idle):
            within = harness.report(list(part())) and within
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
