#!/usr/bin/env python3
"""What a client of a broker notices of others that are slow or hostile. `wirecall bench` makes one call after the other,
which a provider answers, beside each of the others, and before that beside a process that only takes its core. Printed are
p50 and p99 as parts of what they are there, the median over the rounds, and what they are there. Exits with 1 when a p99
exceeds the bound.

    flood       calls a method of another provider as fast as it is read, and reads the answers
    shared      the same, of the same provider as the one who is measured, which works at one call at a time
    pings       says rpc.ping as fast as it is read, and reads the answers
    unread      calls the method of the other provider and never reads an answer
    stalled     subscribes to a topic that another one publishes 2,000 events of 1 KiB a second to, and never reads
    trickle     sends calls byte by byte, each a segment of its own
    large       publishes events of 1 MiB
    reconnects  connects, says hello, registers, and resets the connection

Then the cost table: how long rpc.ping takes one client while another sends the dearest that there is, at a broker with
METHODS methods and TOPICS retained events. Bounds: its quiet median and 1 ms at p50, 20 ms at worst.

    subscribes  batches of 1,000 rpc.subscribe with a pattern that no topic fits, and last
    misspells   batches of 1,000 calls of methods that nobody provides
    discovers   batches of 1,000 rpc.discover; likewise lists (rpc.methods) and asks (rpc.stats)
    registers   registers a method and asks rpc.discover, in turns
    patterns    4,096 patterns of 250 bytes with wildcards, and then notifications
    streams     GET /events?last=true, on one connection after the other
    documents   pipelined GET /openrpc.json and /metrics
    elements    one batch of eight million elements, which is over its limit
    names       one rpc.register of a million methods
    events      events of 1 MiB to 100 subscribers
    asks_all    rpc.call_all with 1 MiB of params, of 100 providers

    neighbours.py [WIRECALL] [--only NAME] [--engine epoll|uring] [--rounds N] [--seconds S] [--methods N] [--topics N]

The broker is on one core, and all clients are on another, where those who are measured go before others, which have
what they leave (SCHED_IDLE). Who is cut connects again and goes on.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import time
import typing

import harness

P99_MAX = 3.0

Address = typing.Tuple[str, int]


def request(method: str, params: object, id_: "int | None" = None) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id_ is None else {"id": id_})
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


CALL = request("other", [1, 2], 7)


def connect(address: Address) -> socket.socket:
    client = socket.create_connection(address)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def flood(address: Address, call: bytes = CALL) -> None:
    client = connect(address)
    client.setblocking(False)
    calls = call * 64
    left = b""
    while True:
        with contextlib.suppress(BlockingIOError):
            left = left or calls
            left = left[client.send(left):]
        with contextlib.suppress(BlockingIOError):
            if not client.recv(1 << 16):
                return


def shared(address: Address) -> None:
    flood(address, request("add", [1, 2], 7))


def pings(address: Address) -> None:
    flood(address, request("rpc.ping", [], 1))


def unread(address: Address) -> None:
    client = connect(address)
    while True:
        client.sendall(CALL * 64)


def stalled(address: Address) -> None:
    subscriber = connect(address)
    subscriber.sendall(request("rpc.subscribe", {"topic": "busy"}, 1))
    publisher = connect(address)
    events = request("busy", ["x" * 1000]) * 20
    while True:
        publisher.sendall(events)
        time.sleep(0.01)


def trickle(address: Address) -> None:
    client = connect(address)
    client.setblocking(False)
    while True:
        for byte in CALL:
            with contextlib.suppress(BlockingIOError):
                client.send(bytes([byte]))
        with contextlib.suppress(BlockingIOError):
            if not client.recv(1 << 16):
                return


def large(address: Address) -> None:
    client = connect(address)
    event = request("large", ["x" * (1 << 20)])
    while True:
        client.sendall(event)


def reconnects(address: Address) -> None:
    number = 0
    while True:
        number += 1
        with connect(address) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(request("rpc.hello", {"name": f"n{number}"}, 1) +
                           request("rpc.register", {"method": f"m{number % 10}"}, 2))
            client.recv(4096)


OTHERS = [flood, shared, pings, unread, stalled, trickle, large, reconnects]

# ---- the cost table ----

BATCH = 1000


def exchange(address: Address, message: bytes) -> None:
    """Sends it again and again on one connection, and reads whatever comes."""
    client = connect(address)
    client.setblocking(False)
    left = b""
    while True:
        with contextlib.suppress(BlockingIOError):
            left = left or message
            left = left[client.send(left):]
        with contextlib.suppress(BlockingIOError):
            if not client.recv(1 << 18):
                return


def batch(method: str, params: object) -> bytes:
    return b"[" + b",".join(request(method, params, number).strip() for number in range(BATCH)) + b"]\n"


def subscribes(address: Address) -> None:
    exchange(address, batch("rpc.subscribe", {"topic": "*.*.zzz", "last": True}))


def misspells(address: Address) -> None:
    exchange(address, batch("service.methud_1", []))


def discovers(address: Address) -> None:
    exchange(address, batch("rpc.discover", []))


def lists(address: Address) -> None:
    exchange(address, batch("rpc.methods", []))


def asks(address: Address) -> None:
    exchange(address, batch("rpc.stats", []))


def registers(address: Address) -> None:
    exchange(address, (request("rpc.register", {"method": "in.turns"}, 1) + request("rpc.discover", [], 2) +
                       request("rpc.unregister", {"method": "in.turns"}, 3)) * 20)


def patterns(address: Address) -> None:
    client = connect(address)
    for number in range(4096):
        words = [f"{number:04}", *(["*", "w"] * 61)]
        client.sendall(request("rpc.subscribe", {"topic": ".".join(words)[:249]}))
    topic = ".".join(["0001", *(["v", "w"] * 61)])[:249]
    exchange(address, request(topic, []) * 20)


def streams(address: Address) -> None:
    get = b"GET /events?topic=*.*.zzz&last=true HTTP/1.1\r\nHost: localhost\r\n\r\n"
    while True:
        clients = [connect(address) for _ in range(100)]
        for client in clients:
            client.sendall(get)
        for client in clients:
            client.recv(1 << 16)
            client.close()


def documents(address: Address) -> None:
    exchange(address, b"".join(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
                               for path in ("/openrpc.json", "/metrics")) * 100)


def elements(address: Address) -> None:
    exchange(address, b"[" + b"1," * 7_999_999 + b"1]\n")


def names(address: Address) -> None:
    exchange(address, request("rpc.register", {"methods": [{"method": "a"}] * 1_000_000}, 1))


def among_many(address: Address, greeting: bytes, message: bytes) -> None:
    """The same as `exchange`, with a hundred others that have sent the greeting and read whatever comes."""
    with selectors.DefaultSelector() as readable:
        client = connect(address)
        for other in [client, *(connect(address) for _ in range(100))]:
            if other is not client:
                other.sendall(greeting)
            other.setblocking(False)
            readable.register(other, selectors.EVENT_READ)
        left = b""
        while True:
            with contextlib.suppress(BlockingIOError):
                left = left or message
                left = left[client.send(left):]
            for ready, _ in readable.select(0.001):
                if not ready.fileobj.recv(1 << 20):
                    return


def events(address: Address) -> None:
    among_many(address, request("rpc.subscribe", {"topic": "wide"}, 1), request("wide", ["x" * (1 << 20)]))


def asks_all(address: Address) -> None:
    call = {"method": "all", "params": ["x" * (1 << 20)], "timeout_ms": 100}
    among_many(address, request("rpc.register", {"method": "all"}, 1), request("rpc.call_all", call, 1))


COSTS = [subscribes, misspells, discovers, lists, asks, registers, patterns, streams, documents, elements, names, events,
         asks_all]
PING_MORE_MS = 1.0
PING_WORST_MS = 20.0


def fill(address: Address, methods: int, topics: int) -> "list[socket.socket]":
    """Connections that provide so many methods, 4,000 each; and so many retained events."""
    clients = []
    for first in range(0, methods, 4000):
        names = [{"method": f"service.method_{number}", "summary": f"does {number}",
                  "params": [{"name": "x", "schema": {"type": "integer"}}]}
                 for number in range(first, min(first + 4000, methods))]
        client = connect(address)
        client.sendall(request("rpc.register", {"methods": names}, 1))
        client.makefile("rb").readline()
        clients.append(client)
    client = connect(address)
    for first in range(0, topics, 1000):
        client.sendall(b"".join(request("rpc.publish", {"topic": f"a.b.t{number}", "params": {}, "retain": True})
                                for number in range(first, min(first + 1000, topics))))
    client.sendall(request("rpc.ping", [], 1))
    client.makefile("rb").readline()
    return [*clients, client]


def spin(address: Address) -> None:
    del address
    while True:
        pass


class Broker:
    """One that runs, with what is measured on it."""

    def __init__(self, options: argparse.Namespace, process: harness.ServerProcess) -> None:
        self.wirecall = options.wirecall
        self.seconds = options.seconds
        self.url = process.urls[0]
        self.address = process.address

    @contextlib.contextmanager
    def provider(self, method: str, *more: str) -> "typing.Iterator[None]":
        idle = ["chrt", "-i", "0"] if method != "add" else []
        process = subprocess.Popen([*idle, self.wirecall, "reply", method, "3", "--url", self.url, *more],
                                   stderr=subprocess.PIPE, text=True)
        try:
            if "provides" not in process.stderr.readline():
                sys.exit("the provider has not begun")
            yield
        finally:
            process.kill()
            process.wait()
            process.stderr.close()

    def latency(self, *call: str) -> "dict[str, float]":
        words = harness.load(self.wirecall, self.url, list(call or ("add", "1", "2")), 1, 1, self.seconds)
        return harness.told_by(words, self.seconds + 30)["latency_us"]

    def beside(self, other: "typing.Callable[[Address], None]", *call: str) -> "dict[str, float]":
        def behave_badly() -> None:
            # It is the broker that has to be fair, not the core that the clients share.
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            while True:
                with contextlib.suppress(OSError):
                    other(self.address)

        process = multiprocessing.get_context("fork").Process(target=behave_badly, daemon=True)
        process.start()
        try:
            return self.latency(*call)
        finally:
            process.kill()
            process.join()


def main() -> int:
    parser = harness.arguments(__doc__, rounds=5)
    parser.add_argument("--only", choices=[other.__name__ for other in OTHERS + COSTS])
    parser.add_argument("--methods", type=int, default=40_000)
    parser.add_argument("--topics", type=int, default=10_000)
    options = parser.parse_args()
    serve = harness.two_cores() + harness.serve(options, "--log-level", "error")
    within = True
    with harness.listening(serve) as listening:
        broker = Broker(options, listening)
        with broker.provider("add", "--concurrency", "1", "--queue", "100000"), broker.provider("other"):
            for other in OTHERS:
                if options.only not in (None, other.__name__):
                    continue
                rounds = [(broker.beside(spin), broker.beside(other)) for _ in range(options.rounds)]
                for figure, bound in (("p50", float("inf")), ("p99", P99_MAX)):
                    alone = statistics.median(first[figure] for first, _ in rounds)
                    part = statistics.median(second[figure] / first[figure] for first, second in rounds)
                    within &= harness.report([(f"{other.__name__}: {figure}, of {alone:.0f} us", part, bound)])
    for cost in COSTS:
        if options.only not in (None, cost.__name__):
            continue
        with harness.listening(serve) as listening:
            broker = Broker(options, listening)
            held = fill(broker.address, options.methods, options.topics)
            quiet = broker.beside(spin, "rpc.ping")["p50"] / 1000
            # Null where not one has been answered.
            beside = broker.beside(cost, "rpc.ping") or {"p50": float("inf"), "max": float("inf")}
            within &= harness.report([
                (f"{cost.__name__}: p50 of rpc.ping in ms, quiet {quiet:.3f}", beside["p50"] / 1000,
                 quiet + PING_MORE_MS),
                (f"{cost.__name__}: the worst rpc.ping in ms", beside["max"] / 1000, PING_WORST_MS)])
            for client in held:
                client.close()
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
