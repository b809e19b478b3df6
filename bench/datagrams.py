#!/usr/bin/env python3
"""What serving by UDP costs beyond what the machine takes for moving the datagrams. The demo server and an echo, which
parses nothing, are on one core and have the same load from another, in turns: echo, server, echo. 256 calls are in
flight, or as many as --in-flight says: with thousands neither side sleeps, and what is left is what a call costs. A
figure is the server's processor time a call as a part of the echo's, the median over the rounds; the echo's own is beside
it, and in brackets the echo against itself: far from 1 the machine was not quiet. What was lost is beside it as well.
Exits with 1 when a bound is exceeded.

    joined   load and echo send and receive many datagrams of one address as one (UDP_SEGMENT, UDP_GRO)
    apart    they do not

    datagrams.py [WIRECALL] [--only joined|apart] [--engine epoll|uring] [--rounds N] [--seconds S]
                 [--in-flight N]
"""

import statistics
import sys

import harness

BOUND = 1.5
REQUEST = '{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":%d}'


def main() -> int:
    parser = harness.arguments(__doc__, rounds=7)
    parser.add_argument("programs", nargs="?", default=str(harness.ROOT / "build" / "bench"))
    parser.add_argument("--only", choices=["joined", "apart"])
    parser.add_argument("--in-flight", type=int, default=256)
    options = parser.parse_args()
    in_flight = options.in_flight
    pinned = harness.two_cores()
    rows = []

    def measure(which: harness.ServerProcess, sockets: int, way: str) -> "tuple[float, float]":
        """Nanoseconds of processor a call, and the part that was lost."""
        before = harness.processor_seconds(which.pid)
        words = [f"{options.programs}/datagram_load", str(which.port), REQUEST, str(sockets), str(in_flight // sockets),
                 str(options.seconds), way]
        done = harness.told_by(words, options.seconds + 30)
        took = harness.processor_seconds(which.pid) - before
        return took / max(done["calls"], 1) * 1e9, done["lost"] / max(done["calls"] + done["lost"], 1)

    serve = harness.serve(options, "--demo", at="udp://127.0.0.1:0")
    for way in [options.only] if options.only else ["joined", "apart"]:
        for sockets in (1, 16, 256):
            with harness.listening(pinned + serve) as server, \
                    harness.listening([*pinned, f"{options.programs}/datagram_echo", way]) as echo:
                rounds = harness.in_turns(options.rounds, lambda which: measure(which, sockets, way), echo, server)
            name, ratio, bound = harness.beside(f"{way} {sockets}x{in_flight // sockets}", "echo", "ns", BOUND,
                                                [[ns for ns, _ in one] for one in rounds])
            lost = [100 * statistics.mean(one[i][1] for one in rounds) for i in (1, 0)]
            rows.append((f"{name}; lost {lost[0]:.2f} %, echo {lost[1]:.2f} %", ratio, bound))
            harness.report(rows[-1:])
    return 0 if all(figure <= bound for _, figure, bound in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
