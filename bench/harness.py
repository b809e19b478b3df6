"""What the scripts of this folder share: processes that listen, what the system counts of them, and figures beside their
bounds. Nothing here measures by itself."""

import contextlib
import os
import re
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


def report(rows: "list[tuple[str, float, float]]") -> bool:
    """Prints name, figure and bound of each; whether all are within."""
    for name, figure, bound in rows:
        print(f"{name:75} {figure:10.3f}   bound {bound:8.2f}  {'ok' if figure <= bound else 'over'}", flush=True)
    return all(figure <= bound for _, figure, bound in rows)
