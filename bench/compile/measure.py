#!/usr/bin/env python3
"""Measures what the umbrella header costs a compiler: seconds (median of three) and object size of ten_methods.cpp with
g++ -O2, beside their bounds. Exits with 1 when a bound is exceeded. $CXX names another compiler."""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SECONDS_MAX = 4.0
KIB_MAX = 400.0

ROOT = pathlib.Path(__file__).resolve().parents[2]


def compile_once(source: str, output: str) -> float:
    command = [os.environ.get("CXX", "g++"), "-std=c++23", "-O2", "-I", str(ROOT / "include"), "-c", source, "-o", output]
    start = time.monotonic()
    subprocess.run(command, check=True)
    return time.monotonic() - start


def main() -> int:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        empty = pathlib.Path(folder) / "umbrella.cpp"
        empty.write_text('#include "wirecall/wirecall.hpp"\n', encoding="utf-8")
        sources = [("the umbrella header alone", str(empty)),
                   ("ten methods over five structs", str(ROOT / "bench" / "compile" / "ten_methods.cpp"))]
        for name, source in sources:
            output = str(pathlib.Path(folder) / "object.o")
            seconds = statistics.median(compile_once(source, output) for _ in range(3))
            rows.append((name, seconds, os.path.getsize(output) / 1024))
    print(f"{'g++ -O2':32} {'seconds':>8} {'KiB':>8}")
    for name, seconds, size in rows:
        print(f"{name:32} {seconds:8.2f} {size:8.0f}")
    print(f"{'bound':32} {SECONDS_MAX:8.2f} {KIB_MAX:8.0f}")
    return 1 if rows[-1][1] > SECONDS_MAX or rows[-1][2] > KIB_MAX else 0


if __name__ == "__main__":
    sys.exit(main())
