"""What the scripts of this folder share: their arguments and cores, processes that listen, what the system counts of them,
and figures beside their bounds. Nothing here measures by itself."""

import argparse
import contextlib
import json
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import typing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIRECALL = str(ROOT / "build" / "wirecall")
Row = typing.Tuple[str, float, float]  # name, figure, bound


class ServerProcess(typing.NamedTuple):
    pid: int
    urls: "list[str]"

    @property
    def port(self) -> int:
        return int(self.urls[0].rpartition(":")[2])

    @property
    def address(self) -> "tuple[str, int]":
        return "127.0.0.1", self.port


def arguments(text: str, rounds: "int | None" = None) -> argparse.ArgumentParser:
    """A parser with the command and its engine, and for what is measured in rounds, their number and length."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wirecall", nargs="?", default=WIRECALL)
    parser.add_argument("--engine", default="epoll")
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds)
        parser.add_argument("--seconds", type=float, default=1)
    return parser


def two_cores() -> "list[str]":
    """Keeps this process, and what it starts, on one core. Returns how a command begins that runs on the other."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        sys.exit("this needs two processors, one for the server and one for the load")
    os.sched_setaffinity(0, {cores[1]})
    return ["taskset", "-c", str(cores[0])]


def allow_descriptors(count: int) -> None:
    """So many for this process, and for what it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        sys.exit(f"this needs {count} descriptors, and the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def serve(options: argparse.Namespace, *more: str, at: str = "tcp://127.0.0.1:0") -> "list[str]":
    """The command that serves, by what `arguments` has parsed."""
    return [options.wirecall, "serve", "--engine", options.engine, "--listen", at, *more]


def told_by(words: "list[str]", timeout_s: float) -> dict:
    """What a program prints as JSON."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout_s)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout)


@contextlib.contextmanager
def listening(words: "list[str]", endpoints: int = 1) -> "typing.Iterator[ServerProcess]":
    """Runs a process that begins by telling stderr at how many endpoints it listens."""
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        urls = []
        for line in process.stderr:
            urls += re.findall(r"(?:tcp|unix|udp|shm)://\S+", line)
            if len(urls) >= endpoints:
                break
        else:
            sys.exit(f"{' '.join(words)}: does not say where it listens")
        yield ServerProcess(process.pid, urls)
    finally:
        process.kill()
        process.stderr.close()
        process.wait()


def free_port() -> int:
    """A TCP port that nobody has now."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return bound.getsockname()[1]


@contextlib.contextmanager
def listening_at(port: int, words: "list[object]", url: str, start_s: float = 30,
                 **settings: typing.Any) -> "typing.Iterator[ServerProcess]":
    """Runs a process that listens at a port without saying so, within `start_s`; `settings` are subprocess.Popen's."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(list(map(str, words)), stdout=said, stderr=said, **settings)
        try:
            deadline = time.monotonic() + start_s
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                if process.poll() is not None or time.monotonic() > deadline:
                    said.seek(0)
                    sys.exit(f"{' '.join(map(str, words))}: does not listen: {said.read()}")
                time.sleep(0.02)
            yield ServerProcess(process.pid, [url])
        finally:
            process.terminate()  # so that its own children end as well
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


def load(wirecall: str, url: str, call: "list[str]", connections: int, pipeline: int, seconds: float) -> "list[str]":
    """The command that calls for so long, and prints what it has seen as JSON."""
    return [wirecall, "bench", *call, "--url", url, "-c", str(connections), "-p", str(pipeline), "-z", f"{seconds}s",
            "--json"]


def memory_bytes(pid: int, which: str) -> int:
    """VmRSS, what is resident, or VmHWM, the most that ever was."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(rf"{which}:\s+(\d+)", status)[1]) * 1024


def processor_seconds(pid: int) -> float:
    """Of all threads that the process has."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


def processes_of(pid: int) -> "list[int]":
    """It, and those that it has started, and these."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(one for child in children for one in processes_of(int(child)))]


def certificate(folder: str) -> "tuple[str, str]":
    """Makes a self-signed certificate with a P-256 key: the paths of both files."""
    files = f"{folder}/cert.pem", f"{folder}/key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", files[0], "-keyout", files[1]]
    subprocess.run(words, check=True, capture_output=True)
    return files


def in_turns(rounds: int, measure: "typing.Callable[[ServerProcess], typing.Any]", ceiling: ServerProcess,
             server: ServerProcess) -> "list[list[typing.Any]]":
    """What `measure` has of a ceiling, a server and the ceiling again, in each round."""
    return [[measure(which) for which in (ceiling, server, ceiling)] for _ in range(rounds)]


def beside(name: str, of: str, unit: str, bound: float, rounds: "list[list[float]]") -> Row:
    """A row for `report`. A round has the figures of a ceiling, a server and the ceiling again; the row's figure is the
    median of the ratios server / ceiling. Its name shows the ceiling's own figure and the ratio of its two turns."""
    ratio = statistics.median(own / ((first + last) / 2) for first, own, last in rounds)
    base = statistics.median(first for first, _, _ in rounds)
    itself = statistics.median(first / last for first, _, last in rounds)
    return f"{name}, of the {of}'s {base:.0f} {unit} ({itself:.2f})", ratio, bound


def report(rows: "list[Row]") -> bool:
    """Prints name, figure and bound of each; whether all are within."""
    for name, figure, bound in rows:
        print(f"{name:75} {figure:10.3f}   bound {bound:8.2f}  {'ok' if figure <= bound else 'over'}", flush=True)
    return all(figure <= bound for _, figure, bound in rows)
