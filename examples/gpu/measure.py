#!/usr/bin/env python3
"""What batching wins and the wire costs with the worker of this folder, on the device that it has found: calls of one text
and one image a second, alone and 32 together, within its process and by TCP from another one. Each figure is the median
of the rounds, which take turns.

    measure.py [--build build] [--device cuda|cpu] [--rounds N] [--seconds S]
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import typing
from pathlib import Path

IN_FLIGHT = 128


def output(*words: str) -> str:
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout


@contextlib.contextmanager
def serving(worker: "list[str]", *more: str) -> "typing.Iterator[str]":
    """A worker's URI."""
    words = [*worker, "--listen", "tcp://127.0.0.1:0", *more]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().rpartition(" at ")[2].strip()
        finally:
            process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--build", type=Path, default=root / "build")
    parser.add_argument("--device", choices=["cuda", "cpu"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    programs = options.build / "examples"
    worker = [str(programs / "example_gpu_worker")] + (["--device", options.device] if options.device else [])
    caller, seconds = str(programs / "example_gpu_caller"), str(options.seconds)

    rates: "dict[str, list[float]]" = {}
    device = ""
    with serving(worker, "--batch", "1") as unbatched, serving(worker) as batched:
        by_tcp = [
            ("by TCP, one in flight", batched, 1),
            (f"by TCP, {IN_FLIGHT} in flight, alone", unbatched, IN_FLIGHT),
            (f"by TCP, {IN_FLIGHT} in flight, batched", batched, IN_FLIGHT),
        ]
        for _ in range(options.rounds):
            said = json.loads(output(*worker, "--in-process", seconds))
            device = said["device"]
            rates.setdefault("within the process, alone", []).append(said["alone"])
            rates.setdefault("within the process, 32 together", []).append(said["batched"])
            for name, uri, in_flight in by_tcp:
                rates.setdefault(name, []).append(float(output(caller, uri, "--load", str(in_flight), seconds)))
    print(f"calls a second on {device}")
    for name, figures in rates.items():
        print(f"{name:40} {statistics.median(figures):10.0f}")


if __name__ == "__main__":
    main()
