#!/usr/bin/env python3
"""What Python costs: our server beside others for Python, and our clients beside the load generator and a plain socket.
Servers are on one core and loads on another. A figure is the median of the rounds, all of whose parts follow each other;
it is printed beside its bound, where it has one. The others are installed into build/bench-python. Exits with 1 when a
bound is exceeded.

    http        processor of the server for a call, by HTTP, 32 connections with one call each
    pipelined   the same, 32 connections with 16 calls each; ours as JSON lines and by HTTP
    p50         what one call at a time waits, beside our server in C++
    asyncio     calls a second of the asyncio client on one connection; load and server have a core each
    blocking    what a call of the blocking client takes, beside one of the load generator
    array       a MiB of float32 there and back in MessagePack, beside a plain socket
    import      what `import wirecall` adds to a bare interpreter, in ms; memory of an idle server, in MiB
    memory      growth of the server's memory over a million calls, in KiB

    measure.py [--only NAME] [--rounds N] [--seconds S] [--python build/venv/bin/python]
"""

import argparse
import contextlib
import socket
import statistics
import subprocess
import sys
import time
import typing
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

SERVERS = HERE / "servers"
OTHERS = harness.ROOT / "build" / "bench-python"
PACKAGES = ["fastapi", "uvicorn[standard]", "orjson", "granian", "grpcio"]
NAMED = ["sum", "a=2", "b=3"]


def install_others() -> None:
    if (OTHERS / "bin" / "granian").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", OTHERS], check=True)
    subprocess.run([OTHERS / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True)


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.pinned = harness.two_cores()

    def running(
        self, words: "list[object]", port: int, url: str
    ) -> "contextlib.AbstractContextManager[harness.ServerProcess]":
        return harness.listening_at(port, [*self.pinned, *words], url, cwd=SERVERS)

    def wirecall(self, url: str = "tcp://127.0.0.1:{}"):
        port = harness.free_port()
        return self.running(
            [self.options.python, "with_wirecall.py", f"tcp://127.0.0.1:{port}"], port, url.format(port)
        )

    def native(self, url: str = "tcp://127.0.0.1:{}"):
        port = harness.free_port()
        words = [harness.WIRECALL, "serve", "--demo", "--port", str(port)]
        return self.running(words, port, url.format(port))

    def uvicorn(self, app: str, path: str = "/rpc"):
        port = harness.free_port()
        words = [OTHERS / "bin/uvicorn", app, "--port", str(port), "--no-access-log", "--log-level", "error"]
        return self.running(words, port, f"http://127.0.0.1:{port}{path}")

    def granian(self):
        port = harness.free_port()
        words = [OTHERS / "bin/granian", "--interface", "asgi", "--port", str(port), "--no-log", "with_asgi:app"]
        return self.running(words, port, f"http://127.0.0.1:{port}/rpc")

    def grpc(self):
        port = harness.free_port()
        words = [OTHERS / "bin/python", "with_grpc.py", f"127.0.0.1:{port}"]
        return self.running(words, port, f"127.0.0.1:{port}")

    def load(self, url: str, connections: int, pipeline: int, words: "list[str]" = NAMED) -> dict:
        load = harness.load(harness.WIRECALL, url, words, connections, pipeline, self.options.seconds)
        return harness.told_by(load, self.options.seconds + 30)

    def grpc_load(self, endpoint: str) -> dict:
        words = [OTHERS / "bin/python", HERE / "grpc_load.py", endpoint, str(self.options.seconds)]
        return {"calls": int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)}

    def processor_us(self, serving, load) -> float:
        """Of all processes of a server, for one call."""
        with serving as served:
            load(served.urls[0])  # warm
            before = sum(map(harness.processor_seconds, harness.processes_of(served.pid)))
            calls = load(served.urls[0])["calls"]
            return (sum(map(harness.processor_seconds, harness.processes_of(served.pid))) - before) / calls * 1e6

    def client(self, which: str, uri: str, python: "str | None" = None) -> float:
        words = [python or self.options.python, HERE / "clients.py", which, uri]
        return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    def rounds(self, parts: "dict[str, typing.Callable[[], float]]") -> "dict[str, float]":
        """Each part once a round; the median of each."""
        figures = {name: [] for name in parts}
        for _ in range(self.options.rounds):
            for name, part in parts.items():
                figures[name].append(part())
        return {name: statistics.median(of) for name, of in figures.items()}


def tell(name: str, figure: float, unit: str) -> None:
    print(f"  {name:60} {figure:12.2f} {unit}", flush=True)


def ratio(name: str, figure: float, bound: float, *, least: bool = False) -> bool:
    good = figure >= bound if least else figure <= bound
    print(f"{name:62} {figure:12.5g}   bound {bound:8.4g}  {'ok' if good else 'over'}", flush=True)
    return good


def http(bench: Bench) -> bool:
    load = lambda url: bench.load(url, 32, 1)  # noqa: E731
    positions = lambda url: bench.load(url, 32, 1, ["sum", "2", "3"])  # noqa: E731
    cost = bench.rounds({
        "wirecall": lambda: bench.processor_us(bench.wirecall("http://127.0.0.1:{}/rpc"), load),
        "wirecall in C++, the same without Python": lambda: bench.processor_us(
            bench.native("http://127.0.0.1:{}/rpc"), positions
        ),
        "FastAPI, def": lambda: bench.processor_us(bench.uvicorn("with_fastapi:app"), load),
        "FastAPI, async def": lambda: bench.processor_us(bench.uvicorn("with_fastapi:app", "/async"), load),
        "uvicorn, ASGI and orjson alone": lambda: bench.processor_us(bench.uvicorn("with_asgi:app"), load),
        "granian, ASGI and orjson alone": lambda: bench.processor_us(bench.granian(), load),
        "grpcio for asyncio, by its own client": lambda: bench.processor_us(bench.grpc(), bench.grpc_load),
    })
    for name, us in cost.items():
        tell(f"http 32x1, {name}", us, "us of processor a call")
    ours = cost["wirecall"]
    others = {name: us for name, us in cost.items() if not name.startswith("wirecall")}
    return all([
        ratio("http 32x1: wirecall, FastAPI with def taking 1", ours / others["FastAPI, def"], 1 / 25),
        ratio("http 32x1: wirecall, FastAPI with async def taking 1", ours / others["FastAPI, async def"], 1 / 25),
        ratio("http 32x1: wirecall, the best other taking 1", ours / min(others.values()), 1 / 4),
    ])


def pipelined(bench: Bench) -> bool:
    load = lambda url: bench.load(url, 32, 16)  # noqa: E731
    cost = bench.rounds({
        "wirecall, JSON lines": lambda: bench.processor_us(bench.wirecall(), load),
        "wirecall, HTTP": lambda: bench.processor_us(bench.wirecall("http://127.0.0.1:{}/rpc"), load),
        "FastAPI, HTTP": lambda: bench.processor_us(bench.uvicorn("with_fastapi:app", "/async"), load),
    })
    for name, us in cost.items():
        tell(f"pipelined 32x16, {name}", us, "us of processor a call")
    return ratio(
        "pipelined 32x16: wirecall, FastAPI taking 1", cost["wirecall, JSON lines"] / cost["FastAPI, HTTP"], 1 / 200
    )


def waiting_us(bench: Bench, serving, words: "list[str]") -> float:
    with serving as served:
        bench.load(served.urls[0], 1, 1, words)
        return bench.load(served.urls[0], 1, 1, words)["latency_us"]["p50"]


def p50(bench: Bench) -> bool:
    words = ["sum", "2", "3"]
    waits = bench.rounds({
        "wirecall in Python": lambda: waiting_us(bench, bench.wirecall(), words),
        "wirecall in C++": lambda: waiting_us(bench, bench.native(), words),
    })
    for name, us in waits.items():
        tell(f"p50 1x1, {name}", us, "us")
    return ratio("p50 1x1: Python, C++ taking 1", waits["wirecall in Python"] / waits["wirecall in C++"], 1.3)


def asyncio_client(bench: Bench) -> bool:
    with bench.wirecall() as served:
        rates = bench.rounds(
            {which: lambda which=which: bench.client(which, served.urls[0]) for which in ("gather", "workers")}
        )
    return all([
        ratio("asyncio client, gather of 1,000, calls a second", rates["gather"], 150_000, least=True),
        ratio("asyncio client, 1,000 workers, calls a second", rates["workers"], 250_000, least=True),
    ])


def blocking(bench: Bench) -> bool:
    with bench.wirecall() as served:
        waits = bench.rounds({
            "client": lambda: bench.client("blocking", served.urls[0]),
            "load": lambda: bench.load(served.urls[0], 1, 1, ["sum", "2", "3"])["latency_us"]["p50"],
        })
    for name, us in waits.items():
        tell(f"a blocking call, p50, {name}", us, "us")
    return ratio("a blocking call, p50: client, load taking 1", waits["client"] / waits["load"], 2)


def array(bench: Bench) -> bool:
    port = []

    def plain() -> float:
        process = subprocess.Popen(
            [*bench.pinned, sys.executable, SERVERS / "echo_socket.py"], stdout=subprocess.PIPE, text=True
        )
        port[:] = [process.stdout.readline().strip()]
        try:
            return bench.client("socket", port[0])
        finally:
            process.kill()
            process.communicate()

    with bench.wirecall() as served:
        took = bench.rounds({"MessagePack": lambda: bench.client("array", served.urls[0]), "socket": plain})
    for name, us in took.items():
        tell(f"a MiB there and back, {name}", us, "us")
    return ratio("a MiB of float32: bandwidth, a plain socket taking 1", took["socket"] / took["MessagePack"], 1 / 3, least=True)


def importing(bench: Bench) -> bool:
    def milliseconds(code: str) -> float:
        begun = time.perf_counter()
        subprocess.run([bench.options.python, "-c", code], check=True)
        return (time.perf_counter() - begun) * 1e3

    took = bench.rounds({"wirecall": lambda: milliseconds("import wirecall"), "bare": lambda: milliseconds("pass")})
    with bench.running(*idle(bench)) as served:
        memory = harness.memory_bytes(served.pid, "VmRSS") / 2**20
    return all([
        ratio("import wirecall, ms", took["wirecall"] - took["bare"], 25),
        ratio("an idle server, MiB resident", memory, 30),
    ])


def idle(bench: Bench) -> "tuple[list[str], int, str]":
    port = harness.free_port()
    code = f"import wirecall; app = wirecall.Server(); app.add(lambda: 1, name='one'); app.run('tcp://127.0.0.1:{port}')"
    return [bench.options.python, "-c", code], port, f"tcp://127.0.0.1:{port}"


def memory(bench: Bench) -> bool:
    with bench.wirecall() as served:
        calls = bench.load(served.urls[0], 32, 16)["calls"]
        before = harness.memory_bytes(served.pid, "VmRSS")
        made = 0
        while made < 1_000_000:
            made += bench.load(served.urls[0], 32, 16)["calls"]
        grown = (harness.memory_bytes(served.pid, "VmRSS") - before) / 1024
    tell("calls", calls + made, "")
    return ratio("growth of memory over a million calls, KiB", grown, 64)


PARTS = {
    "http": http, "pipelined": pipelined, "p50": p50, "asyncio": asyncio_client, "blocking": blocking, "array": array,
    "import": importing, "memory": memory,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--python", default=str(harness.ROOT / "build/venv/bin/python"))
    options = parser.parse_args()
    if options.only in (None, "http", "pipelined"):
        install_others()
    bench = Bench(options)
    good = [part(bench) for name, part in PARTS.items() if options.only in (None, name)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
