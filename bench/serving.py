#!/usr/bin/env python3
"""What serving costs beyond what the machine takes for moving the bytes. The demo server and a ceiling, a server that
parses nothing, are on one core and have the same load from another, in turns: ceiling, server, ceiling. A figure is the
server's part of the ceiling's, the median over the rounds; the ceiling's own is beside it, and in brackets the ceiling
against itself: far from 1 the machine was not quiet. Exits with 1 when a bound is exceeded.

    neighbour   what a client with one call in flight waits beside a flood of 32 connections with 16 calls each
    echo        processor a call of 100 KiB there and back, 50 connections; and the server's peak memory
    unix        processor a small call over a unix socket, CONNECTIONSxCALLS in flight
    websocket   processor a call of 1 MiB there and back by WebSocket, masked by the client, 4 connections; the baseline is
                the same server with the same calls as raw JSON, in place of the ceiling

    serving.py [WIRECALL] [CEILING] [--only NAME] [--engine epoll|uring] [--rounds N] [--seconds S]
"""

import argparse
import contextlib
import socket
import subprocess
import sys
import tempfile
import typing
from pathlib import Path

import harness

NEIGHBOUR_MAX = 1.5
ECHO_BYTES = 100 * 1024
ECHO_MAX = 1.5
PEAK_MIB_MAX = 40
WEBSOCKET_BYTES = 1024 * 1024
WEBSOCKET_MAX = 1.3
UNIX_MAX = {(1, 1): 1.10, (32, 1): 1.15, (32, 16): 1.30, (10, 100): 2.0}
PARTS = ["neighbour", "echo", "unix", "websocket"]


class Load(typing.NamedTuple):
    """What `wirecall bench` is asked to call."""
    words: "list[str]"
    connections: int
    pipeline: int


class Turns:
    """Servers and loads, each on its core, and what the loads saw."""

    def __init__(self, options: argparse.Namespace, folder: str) -> None:
        self.options = options
        self.folder = Path(folder)
        self.pinned = harness.two_cores()

    def bench(self, url: str, load: Load, seconds: float) -> "list[str]":
        return harness.load(self.options.wirecall, url, load.words, load.connections, load.pipeline, seconds)

    def measured(self, url: str, load: Load, *more: str) -> dict:
        words = self.bench(url, load, self.options.seconds) + list(more)
        return harness.told_by(words, self.options.seconds + 30)

    def recorded(self, server_url: str, load: Load) -> "tuple[list[bytes], list[bytes]]":
        """The requests that a connection of the load sends, again and again, and what the server replies to them."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(30)
            url = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
            words = self.bench(url, load, 60)
            with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as loading:
                with listener.accept()[0] as peer, peer.makefile("rb") as stream:
                    requests = [stream.readline() for _ in range(load.pipeline)]
                loading.kill()
        kind, _, address = server_url.partition("://")
        host, _, port = address.rpartition(":")
        with socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET) as client:
            client.settimeout(30)
            client.connect(address if kind == "unix" else (host, int(port)))
            client.sendall(b"".join(requests))
            with client.makefile("rb") as stream:
                return requests, [stream.readline() for _ in range(load.pipeline)]

    @contextlib.contextmanager
    def pair(self, kind: str, *loads: Load) -> "typing.Iterator[tuple[harness.ServerProcess, harness.ServerProcess]]":
        """The ceiling, which has an endpoint for each of the loads, and the server, which has the same one for all."""
        def endpoint(name: str) -> str:
            return f"unix://{self.folder / name}" if kind == "unix" else "tcp://127.0.0.1:0"

        serve = harness.serve(self.options, "--demo", at=endpoint("server"))
        with harness.listening(self.pinned + serve) as server:
            words = self.pinned + [self.options.ceiling]
            for i, load in enumerate(loads):
                requests, replies = self.recorded(server.urls[0], load)
                texts = self.folder / f"replies{i}"
                texts.write_bytes(b"".join(replies))
                words += [endpoint(f"ceiling{i}"), str(len(requests[0])), str(texts)]
            with harness.listening(words, len(loads)) as ceiling:
                yield ceiling, harness.ServerProcess(server.pid, server.urls * len(loads))

    def rows(self, ceiling: harness.ServerProcess, server: harness.ServerProcess, name: str, unit: str, bound: float,
             measure: "typing.Callable[[harness.ServerProcess], dict[str, float]]",
             of: str = "ceiling") -> "list[harness.Row]":
        """A row for each of the figures that `measure` has of a server."""
        rounds = harness.in_turns(self.options.rounds, measure, ceiling, server)
        return [harness.beside(f"{name} {figure}", of, unit, bound, [[one[figure] for one in turns] for turns in rounds])
                for figure in rounds[0][0]]

    def processor_a_call(self, load: Load) -> "typing.Callable[[harness.ServerProcess], dict[str, float]]":
        def measure(which: harness.ServerProcess) -> "dict[str, float]":
            before = harness.processor_seconds(which.pid)
            calls = self.measured(which.urls[0], load, "--warm-up", "1ms")["calls"]
            return {"processor a call": (harness.processor_seconds(which.pid) - before) / calls * 1e9}
        return measure

    def neighbour(self) -> bool:
        flood = Load(["subtract", "42", "23"], 32, 16)
        client = Load(["subtract", "42", "23"], 1, 1)

        def measure(which: harness.ServerProcess) -> "dict[str, float]":
            with subprocess.Popen(self.bench(which.urls[0], flood, 3600), stdout=subprocess.DEVNULL) as flooding:
                try:
                    latency = self.measured(which.urls[1], client)["latency_us"]
                    if flooding.poll() is not None:
                        sys.exit("the flood has ended early")
                finally:
                    flooding.kill()
            return {name: latency[name] for name in ("p50", "p99")}

        with self.pair("tcp", flood, client) as (ceiling, server):
            return harness.report(self.rows(ceiling, server, "neighbour of a flood:", "us", NEIGHBOUR_MAX, measure))

    def echo(self) -> bool:
        text = self.folder / "text"
        text.write_text("x" * ECHO_BYTES, encoding="ascii")
        load = Load(["echo", f"value:str=@{text}"], 50, 1)
        with self.pair("tcp", load) as (ceiling, server):
            rows = self.rows(ceiling, server, "echo 50x1:", "ns", ECHO_MAX, self.processor_a_call(load))
            peak = harness.memory_bytes(server.pid, "VmHWM") / 2**20
            return harness.report(rows + [("echo 50x1: peak memory of the server, MiB", peak, PEAK_MIB_MAX)])

    def unix(self) -> bool:
        within = True
        for (connections, pipeline), bound in UNIX_MAX.items():
            load = Load(["subtract", "42", "23"], connections, pipeline)
            with self.pair("unix", load) as (ceiling, server):
                name = f"unix {connections}x{pipeline}:"
                within &= harness.report(self.rows(ceiling, server, name, "ns", bound, self.processor_a_call(load)))
        return within

    def websocket(self) -> bool:
        text = self.folder / "long"
        text.write_text("x" * WEBSOCKET_BYTES, encoding="ascii")
        load = Load(["echo", f"value:str=@{text}"], 4, 1)
        with harness.listening(self.pinned + harness.serve(self.options, "--demo")) as lines:
            frames = harness.ServerProcess(lines.pid, [url.replace("tcp://", "ws://") + "/" for url in lines.urls])
            return harness.report(self.rows(lines, frames, "websocket 4x1:", "ns", WEBSOCKET_MAX,
                                            self.processor_a_call(load), "raw JSON"))


def main() -> int:
    parser = harness.arguments(__doc__, rounds=7)
    parser.add_argument("ceiling", nargs="?", default=str(harness.ROOT / "build" / "bench" / "ceiling"))
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        turns = Turns(options, folder)
        parts = [options.only] if options.only else PARTS
        return 0 if all([getattr(turns, part)() for part in parts]) else 1


if __name__ == "__main__":
    sys.exit(main())
