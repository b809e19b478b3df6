#!/usr/bin/env python3
"""What a small call costs a server by shared memory, in parts of what it costs by a unix socket: processor a call, 10
connections with 100 calls each in flight. One server on one core serves both, in turns: unix, shm, unix; the figure is
the median of the rounds' ratios, and in brackets the unix socket against itself: far from 1 the machine was not quiet.
Neither end spins. Exits with 1 when the bound is exceeded.

    shm.py [WIRECALL] [--engine epoll|uring] [--rounds N] [--seconds S]
"""

import os
import sys
import tempfile

import harness

SHM_MAX = 0.6


def main() -> int:
    options = harness.arguments(__doc__, rounds=5).parse_args()
    pinned = harness.two_cores()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        words = pinned + harness.serve(options, "--demo", "--listen", "shm://bench", at=f"unix://{folder}/bench.sock")
        with harness.listening(words, endpoints=2) as server:

            def ns_a_call(url: str) -> float:
                before = harness.processor_seconds(server.pid)
                load = harness.load(options.wirecall, url, ["subtract", "42", "23"], 10, 100, options.seconds)
                calls = harness.told_by(load + ["--warm-up", "1ms"], options.seconds + 30)["calls"]
                return (harness.processor_seconds(server.pid) - before) / calls * 1e9

            by_socket, by_memory = sorted(server.urls, reverse=True)
            rounds = [[ns_a_call(url) for url in (by_socket, by_memory, by_socket)] for _ in range(options.rounds)]
    return 0 if harness.report([harness.beside("shm 10x100: processor", "unix socket", "ns", SHM_MAX, rounds)]) else 1


if __name__ == "__main__":
    sys.exit(main())
