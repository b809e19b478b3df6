#!/usr/bin/env python3
"""What serving by UDP costs beyond what the machine takes for moving the datagrams. The demo server and an echo, which
parses nothing, are on one core and have the same load from another, in turns: echo, server, echo. 256 calls are in
flight, or as many as --in-flight says: with thousands neither side sleeps, and what is left is what a call costs. A figure is the server's processor time a call as a part of the echo's, the median over the rounds; the echo's
own is beside it, and in brackets the echo against itself: far from 1 the machine was not quiet. What was lost is beside
it as well. Exits with 1 when a bound is exceeded.

    joined   load and echo send and receive many datagrams of one address as one (UDP_SEGMENT, UDP_GRO)
    apart    they do not

    datagrams.py [WIRECALL] [--only joined|apart] [--engine epoll|uring] [--rounds N] [--seconds S]
                 [--in-flight N]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import harness

BOUND = 1.5
REQUEST = '{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":%d}'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wirecall", nargs="?", default=harness.WIRECALL)
    parser.add_argument("programs", nargs="?", default=str(harness.ROOT / "build" / "bench"))
    parser.add_argument("--only", choices=["joined", "apart"])
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--in-flight", type=int, default=256)
    options = parser.parse_args()
    in_flight = options.in_flight
    core, loading = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, {loading})
    pinned = ["taskset", "-c", str(core)]
    rows = []

    def measure(which: harness.ServerProcess, sockets: int, way: str) -> "tuple[float, float]":
        """Nanoseconds of processor a call, and the part that was lost."""
        before = harness.processor_seconds(which.pid)
        words = [f"{options.programs}/datagram_load", which.urls[0].rpartition(":")[2], REQUEST, str(sockets),
                 str(in_flight // sockets), str(options.seconds), way]
        done = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        took = harness.processor_seconds(which.pid) - before
        return took / max(done["calls"], 1) * 1e9, done["lost"] / max(done["calls"] + done["lost"], 1)

    serve = [options.wirecall, "serve", "--demo", "--engine", options.engine, "--listen", "udp://127.0.0.1:0"]
    for way in [options.only] if options.only else ["joined", "apart"]:
        for sockets in (1, 16, 256):
            with harness.listening(pinned + serve) as server, \
                    harness.listening([*pinned, f"{options.programs}/datagram_echo", way]) as echo:
                rounds = [[measure(which, sockets, way) for which in (echo, server, echo)]
                          for _ in range(options.rounds)]
            ratio = statistics.median(own[0] / ((first[0] + last[0]) / 2) for first, own, last in rounds)
            base = statistics.median(first[0] for first, _, _ in rounds)
            itself = statistics.median(first[0] / last[0] for first, _, last in rounds)
            lost = [100 * statistics.mean(one[i][1] for one in rounds) for i in (1, 0)]
            rows.append((f"{way} {sockets}x{in_flight // sockets}, of the echo's {base:.0f} ns ({itself:.2f}); lost "
                         f"{lost[0]:.2f} %, echo {lost[1]:.2f} %", ratio, BOUND))
            harness.report(rows[-1:])
    return 0 if all(figure <= bound for _, figure, bound in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
