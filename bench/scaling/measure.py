#!/usr/bin/env python3
"""What more threads bring to a server, and more workers to one in Python: 1, 2, 4, 8 and 16 of them, as far as there are
processors. Each thread has a processor, and the load has the others. A figure is the time of a call with several threads,
of that with one: the median of the rounds, in which all have their turns. Exits with 1 when a bound is exceeded.

    computing   time from call to call, of 200 us of processor each, of a server in C++; the load takes little
    workers     the same, of a server in Python
    small       time from call to call of a server in C++, which do nothing; the load has as many processors as the server
    broker      the same by way of a broker, in which one thread has all messages

With fewer than 4 processors, `small` and `broker` are left out, and the others have 1 and 2 threads, on the same processors
as their load: a second thread has to pay.

    measure.py [--only NAME] [--rounds N] [--seconds S] [--processors 0,1,2,3] [--build build]
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import typing
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

COUNTS = [1, 2, 4, 8, 16]
EFFICIENCY_MIN = 0.75  # of threads that have a processor each
BROKER_MAX = 1.1  # no slower with several threads


class Part(typing.NamedTuple):
    serve: "typing.Callable[[str, int], list[object]]"  # by endpoint and threads, the command that serves
    load: "typing.Callable[[harness.ServerProcess], list[str]]"  # the command that loads it
    calls: str  # what the load calls the number of calls
    bound: "typing.Callable[[int], float]"  # by the number of threads
    heavy_load: bool = False


def by_threads(threads: int) -> float:
    return 1 / (EFFICIENCY_MIN * threads)


def pinned(processors: "list[int]") -> "list[str]":
    return ["taskset", "-c", ",".join(map(str, processors))]


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self.processors = options.processors
        self.rounds = options.rounds
        self.seconds = options.seconds
        build = options.build
        wirecall = str(build / "wirecall")

        def server(url: str, threads: int) -> "list[object]":
            return [build / "bench/scaling_server", url, threads]

        def workers(url: str, count: int) -> "list[object]":
            return [build / "venv/bin/python", HERE / "workers.py", url, count]

        def broker(url: str, threads: int) -> "list[object]":
            return [wirecall, "serve", "--listen", url, "--threads", threads]

        def calling(method: str, argument: str) -> "typing.Callable[[harness.ServerProcess], list[str]]":
            return lambda to: harness.load(wirecall, to.urls[0], [method, argument], 32, 1, self.seconds)

        def routed(to: harness.ServerProcess) -> "list[str]":
            return [str(build / "bench/router_load"), "wirecall", str(to.port), "calls", "32", "1", str(self.seconds)]

        compute = calling("compute", "200")
        self.parts = {
            "computing": Part(server, compute, "calls", by_threads),
            "workers": Part(workers, compute, "calls", by_threads),
            "small": Part(server, calling("echo", "7"), "calls", by_threads, heavy_load=True),
            "broker": Part(broker, routed, "count", lambda _: BROKER_MAX, heavy_load=True),
        }

    def counts(self, part: Part) -> "list[int]":
        """The numbers of threads for which there are processors."""
        processors = len(self.processors)
        if processors < 4:
            return [] if part.heavy_load else [1, 2]
        return [count for count in COUNTS if count <= (processors // 2 if part.heavy_load else processors - 1)]

    def us_of_call(self, part: Part, server: harness.ServerProcess, threads: int) -> float:
        others = self.processors[threads:] if len(self.processors) >= 4 else self.processors
        places = [[one] for one in others[:threads]] if part.heavy_load else [others]
        loads = [
            subprocess.Popen([*pinned(place), *part.load(server)], stdout=subprocess.PIPE, text=True)
            for place in places
        ]
        said = [json.loads(load.communicate(timeout=self.seconds + 30)[0]) for load in loads]
        if any(load.returncode != 0 for load in loads):
            sys.exit(f"calls were lost: {said}")
        return self.seconds * 1e6 / sum(one[part.calls] for one in said)

    def measure(self, name: str) -> "list[harness.Row]":
        part = self.parts[name]
        counts = self.counts(part)
        with contextlib.ExitStack() as stack:
            servers = {}
            for threads in counts:
                port = harness.free_port()
                url = f"tcp://127.0.0.1:{port}"
                words = [*pinned(self.processors[:threads]), *part.serve(url, threads)]
                servers[threads] = stack.enter_context(harness.listening_at(port, words, url))
            rounds = [
                {threads: self.us_of_call(part, server, threads) for threads, server in servers.items()}
                for _ in range(self.rounds)
            ]
        median = {threads: statistics.median(one[threads] for one in rounds) for threads in counts}
        return [
            (
                f"{name}: {threads} of them, {median[threads]:.2f} us a call, of one, {median[1]:.2f} us",
                statistics.median(one[threads] / one[1] for one in rounds),
                part.bound(threads),
            )
            for threads in counts[1:]
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=["computing", "workers", "small", "broker"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument(
        "--processors",
        type=lambda text: [int(one) for one in text.split(",")],
        default=sorted(os.sched_getaffinity(0)),
        help="those that are used, by their numbers: the first ones by the server",
    )
    parser.add_argument("--build", type=Path, default=harness.ROOT / "build")
    options = parser.parse_args()
    if len(options.processors) < 2:
        sys.exit("this needs two processors: on one a second thread cannot pay")
    if len(options.processors) < 4:
        print("fewer than 4 processors: only whether a second thread pays, beside the load")
    bench = Bench(options)
    rows = [row for name in options.only or bench.parts for row in bench.measure(name)]
    sys.exit(0 if harness.report(rows) else 1)


if __name__ == "__main__":
    main()
