"""What the scripts of this folder share: processes that listen, what the system counts of them, and figures beside their
bounds. Nothing here measures by itself."""

import contextlib
import os
import re
import statistics
import subprocess
import sys
import typing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIRECALL = str(ROOT / "build" / "wirecall")


class ServerProcess(typing.NamedTuple):
    pid: int
    urls: "list[str]"


@contextlib.contextmanager
def listening(words: "list[str]", endpoints: int = 1) -> "typing.Iterator[ServerProcess]":
    """Runs a process that begins by telling stderr at how many endpoints it listens."""
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        urls = []
        for line in process.stderr:
            urls += re.findall(r"(?:tcp|unix|udp)://\S+", line)
            if len(urls) >= endpoints:
                break
        else:
            sys.exit(f"{' '.join(words)}: does not say where it listens")
        yield ServerProcess(process.pid, urls)
    finally:
        process.kill()
        process.stderr.close()
        process.wait()


def memory_bytes(pid: int, which: str) -> int:
    """VmRSS, what is resident, or VmHWM, the most that ever was."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(rf"{which}:\s+(\d+)", status)[1]) * 1024


def processor_seconds(pid: int) -> float:
    """Of all threads that the process has."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


def certificate(folder: str) -> "tuple[str, str]":
    """Makes a self-signed certificate with a P-256 key: the paths of both files."""
    files = f"{folder}/cert.pem", f"{folder}/key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", files[0], "-keyout", files[1]]
    subprocess.run(words, check=True, capture_output=True)
    return files


def beside(name: str, of: str, unit: str, bound: float,
           rounds: "list[tuple[float, float, float]]") -> "tuple[str, float, float]":
    """A row for `report`. A round has the figures of a ceiling, a server and the ceiling again; the row's figure is the
    median of the ratios server / ceiling. Its name shows the ceiling's own figure and the ratio of its two turns."""
    ratio = statistics.median(own / ((first + last) / 2) for first, own, last in rounds)
    base = statistics.median(first for first, _, _ in rounds)
    itself = statistics.median(first / last for first, _, last in rounds)
    return f"{name}, of the {of}'s {base:.0f} {unit} ({itself:.2f})", ratio, bound


def report(rows: "list[tuple[str, float, float]]") -> bool:
    """Prints name, figure and bound of each; whether all are within."""
    for name, figure, bound in rows:
        print(f"{name:75} {figure:10.3f}   bound {bound:8.2f}  {'ok' if figure <= bound else 'over'}", flush=True)
    return all(figure <= bound for _, figure, bound in rows)
