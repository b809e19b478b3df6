#!/usr/bin/env python3
"""What a call of a batched model costs the processor, of our server and of others for Python: Ray Serve and BentoML, with
their batching, and FastAPI, without. The model takes 1 ms and 10 us more for each element, without the GIL and without the
processor, so that all the processor's time is the server's own; batches have at most 128 elements. 512 callers by HTTP
have one call each in flight; ours is also called by JSON lines on 8 connections. The servers, with all their processes,
are on one core and the callers on another. Prints the median of the rounds, and the ratio of ours to each other beside
its bound. The others are installed into build/bench-batching. Exits with 1 when a bound is exceeded.

    compare.py [--rounds N] [--seconds S] [--python build/venv/bin/python]
"""

import argparse
import contextlib
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time
import typing
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

OTHERS = harness.ROOT / "build" / "bench-batching"
REQUIREMENTS = HERE / "requirements.txt"
OURS = "wirecall"
CALLERS = 512
BOUND = 0.1
START_S = 120  # Ray starts ten processes
# They send no statistics to their makers, and workers have the priority of others.
SETTINGS = {"BENTOML_DO_NOT_TRACK": "True", "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}


class Server(typing.NamedTuple):
    name: str
    words: "list[object]"  # with {} for the port
    url: str
    body: str
    answer: str


def install() -> None:
    """Again only when what is wanted has changed."""
    ready = OTHERS / "ready"
    if ready.exists() and ready.read_text() == REQUIREMENTS.read_text():
        return
    subprocess.run([sys.executable, "-m", "venv", OTHERS], check=True)
    pip = [OTHERS / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", REQUIREMENTS]
    subprocess.run(pip, check=True)
    ready.write_text(REQUIREMENTS.read_text())


def version(package: str) -> str:
    (found,) = importlib.metadata.distributions(name=package, path=[str(next(OTHERS.glob("lib/python3*/site-packages")))])
    return found.version


def servers(python: str) -> "list[Server]":
    call = json.dumps({"jsonrpc": "2.0", "method": "model", "params": [7], "id": 1})
    http, number = "http://127.0.0.1:{}/", '{"number":7}'
    uvicorn = [OTHERS / "bin/uvicorn", "with_fastapi:app", "--port", "{}", "--no-access-log", "--log-level", "error"]
    bentoml = [OTHERS / "bin/bentoml", "serve", "with_bentoml.py:Model", "--host", "127.0.0.1", "--port", "{}"]
    return [
        Server(OURS, [python, HERE / "server.py", "tcp://127.0.0.1:{}"], http + "rpc", call,
               '{"jsonrpc":"2.0","result":7,"id":1}'),
        Server(f"Ray Serve {version('ray')}", [OTHERS / "bin/python", "with_ray.py", "{}"], http, number, "7"),
        Server(f"BentoML {version('bentoml')}", bentoml, http, '{"numbers":[7]}', "[7]"),
        Server(f"FastAPI {version('fastapi')}, not batched", uvicorn, http, number, "7"),
    ]  # fmt: skip


@contextlib.contextmanager
def running(server: Server, cores: "list[int]") -> "typing.Iterator[harness.ServerProcess]":
    """It starts on all of these, and then has the first."""
    port = harness.free_port()
    words = ["taskset", "-c", ",".join(map(str, cores)), *(str(word).format(port) for word in server.words)]
    settings = {"cwd": HERE / "servers", "env": dict(os.environ, **SETTINGS)}
    with harness.listening_at(port, words, server.url.format(port), START_S, **settings) as process:
        request = urllib.request.Request(process.urls[0], server.body.encode(), {"Content-Type": "application/json"})
        deadline = time.monotonic() + START_S
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=10) as response:
                if response.read().decode() == server.answer:
                    break
            if time.monotonic() > deadline:
                sys.exit(f"{server.name} does not answer")
            time.sleep(0.1)  # Ray listens before it has its model
        for pid in harness.processes_of(process.pid):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread.name), cores[:1])
        yield process


def processor_seconds(process: harness.ServerProcess) -> float:
    return sum(map(harness.processor_seconds, harness.processes_of(process.pid)))


class Measured(typing.NamedTuple):
    rate: float  # calls a second
    p50_ms: float
    p99_ms: float
    processor_us: float  # of a call


def by_http(server: Server, process: harness.ServerProcess, seconds: float) -> Measured:
    words = [OTHERS / "bin/python", HERE / "http_load.py", process.urls[0], server.body, server.answer, CALLERS, seconds]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True) as load:
        if load.stdout.readline() != "warm\n":
            sys.exit(f"{server.name} has answered something else")
        before = processor_seconds(process)
        told = json.loads(load.stdout.readline())
        took = processor_seconds(process) - before
    return Measured(told["rate"], told["p50_ms"], told["p99_ms"], took / told["calls"] * 1e6)


def by_lines(process: harness.ServerProcess, seconds: float) -> Measured:
    url = f"tcp://{urlsplit(process.urls[0]).netloc}"
    words = [*harness.load(harness.WIRECALL, url, ["model", "7"], 8, CALLERS // 8, seconds), "--warm-up", "1ms"]
    before = processor_seconds(process)
    told = harness.told_by(words, seconds + 30)
    took = processor_seconds(process) - before
    latency = told["latency_us"]
    return Measured(told["rate"], latency["p50"] / 1e3, latency["p99"] / 1e3, took / told["calls"] * 1e6)


def median(rounds: "list[Measured]") -> Measured:
    return Measured(*(statistics.median(column) for column in zip(*rounds)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--python", default=str(harness.ROOT / "build/venv/bin/python"))
    options = parser.parse_args()
    install()
    cores = sorted(os.sched_getaffinity(0))[:2]
    harness.two_cores()
    table: "dict[str, Measured]" = {}
    for server in servers(options.python):
        print(server.name, file=sys.stderr, flush=True)
        with running(server, cores) as process:
            rounds = range(options.rounds)
            table[server.name] = median([by_http(server, process, options.seconds) for _ in rounds])
            if server.name == OURS:
                table[f"{OURS}, JSON lines"] = median([by_lines(process, options.seconds) for _ in rounds])
    print("| | calls/s | median, ms | 99 %, ms | processor a call, us |\n|---|---|---|---|---|")
    for name, of in table.items():
        print(f"| {name} | {of.rate:,.0f} | {of.p50_ms:.1f} | {of.p99_ms:.1f} | {of.processor_us:.1f} |")
    ours = table[OURS].processor_us
    others = {name: of.processor_us for name, of in table.items() if not name.startswith(OURS)}
    return 0 if harness.report([(f"processor, {name} taking 1", ours / us, BOUND) for name, us in others.items()]) else 1


if __name__ == "__main__":
    sys.exit(main())
