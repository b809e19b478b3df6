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

    neighbours.py [WIRECALL] [--only NAME] [--engine epoll|uring] [--rounds N] [--seconds S]

The broker is on one core, and all clients are on another, where those who are measured go before others, which have
what they leave (SCHED_IDLE). Who is cut connects again and goes on.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
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


def spin(address: Address) -> None:
    del address
    while True:
        pass


class Broker:
    """One that runs, with what is measured on it."""

    def __init__(self, wirecall: str, url: str, seconds: float) -> None:
        self.wirecall = wirecall
        self.url = url
        self.seconds = seconds
        host, _, port = url.removeprefix("tcp://").rpartition(":")
        self.address = host, int(port)

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

    def latency(self) -> "dict[str, float]":
        words = [self.wirecall, "bench", "add", "1", "2", "--url", self.url, "-z", f"{self.seconds}s", "--json"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=self.seconds + 30)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
        return json.loads(done.stdout)["latency_us"]

    def beside(self, other: "typing.Callable[[Address], None]") -> "dict[str, float]":
        def behave_badly() -> None:
            # It is the broker that has to be fair, not the core that the clients share.
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            while True:
                with contextlib.suppress(OSError):
                    other(self.address)

        process = multiprocessing.get_context("fork").Process(target=behave_badly, daemon=True)
        process.start()
        try:
            return self.latency()
        finally:
            process.kill()
            process.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wirecall", nargs="?", default=harness.WIRECALL)
    parser.add_argument("--only", choices=[other.__name__ for other in OTHERS])
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        sys.exit("this needs two processors, one for the broker and one for the clients")
    os.sched_setaffinity(0, {cores[1]})
    serve = ["taskset", "-c", str(cores[0]), options.wirecall, "serve", "--log-level", "error", "--engine",
             options.engine, "--listen", "tcp://127.0.0.1:0"]
    within = True
    with harness.listening(serve) as listening:
        broker = Broker(options.wirecall, listening.urls[0], options.seconds)
        with broker.provider("add", "--concurrency", "1", "--queue", "100000"), broker.provider("other"):
            for other in OTHERS:
                if options.only not in (None, other.__name__):
                    continue
                rounds = [(broker.beside(spin), broker.beside(other)) for _ in range(options.rounds)]
                for figure, bound in (("p50", float("inf")), ("p99", P99_MAX)):
                    alone = statistics.median(first[figure] for first, _ in rounds)
                    part = statistics.median(second[figure] / first[figure] for first, second in rounds)
                    within &= harness.report([(f"{other.__name__}: {figure}, of {alone:.0f} us", part, bound)])
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
