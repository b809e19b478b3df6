#!/usr/bin/env python3
"""Load of callers that think: each waits for its answer, then for a random time, and calls again. Prints one JSON object
with `rate`, in calls a second, and `latency_us`, as `wirecall bench --json` does.

    thinking_load.py URL METHOD [--callers 64] [--think-us 100 500] [--seconds 1]"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import select
import socket
import statistics
import time
from urllib.parse import urlsplit

CONNECTIONS = 8
WARM_UP_S = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("method")
    parser.add_argument("--callers", type=int, default=64)
    parser.add_argument("--think-us", type=float, nargs=2, default=(100, 500))
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    address = urlsplit(options.url)
    connections = [socket.create_connection((address.hostname, address.port)) for _ in range(CONNECTIONS)]
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    latencies = run(connections, options)
    print(json.dumps({"rate": len(latencies) / options.seconds,
                      "latency_us": {"p50": statistics.median(latencies) * 1e6}}))  # fmt: skip


def run(connections: list[socket.socket], options: argparse.Namespace) -> list[float]:
    """The latencies of the calls that have been answered in the time that is measured."""
    low, high = (us / 1e6 for us in options.think_us)
    requests = [
        json.dumps({"jsonrpc": "2.0", "method": options.method, "params": [7], "id": caller}).encode() + b"\n"
        for caller in range(options.callers)
    ]
    began = time.perf_counter()
    measured, end = began + WARM_UP_S, began + WARM_UP_S + options.seconds
    thinking = [(began, caller) for caller in range(options.callers)]  # a heap of when each calls
    called = [0.0] * options.callers
    rest = dict.fromkeys(connections, b"")
    latencies: list[float] = []
    while (now := time.perf_counter()) < end:
        while thinking and thinking[0][0] <= now:
            caller = heapq.heappop(thinking)[1]
            called[caller] = now
            connections[caller % len(connections)].sendall(requests[caller])
        # Not an event loop: their timers are of whole milliseconds.
        timeout = max(thinking[0][0] - time.perf_counter(), 0) if thinking else end - now
        for connection in select.select(connections, [], [], timeout)[0]:
            *answers, rest[connection] = (rest[connection] + connection.recv(1 << 16)).split(b"\n")
            now = time.perf_counter()
            for answer in answers:
                told = json.loads(answer)
                if "result" not in told:
                    raise SystemExit(f"thinking_load.py: {told}")
                if now >= measured:
                    latencies.append(now - called[told["id"]])
                heapq.heappush(thinking, (now + random.uniform(low, high), told["id"]))
    return latencies


if __name__ == "__main__":
    main()
