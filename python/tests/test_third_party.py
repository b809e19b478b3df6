"""Clients that others have written, against a server in Python: those of tests/clients, which are installed where ctest
has them."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

CLIENTS = pathlib.Path(__file__).parents[2] / "tests" / "clients"
INSTALLED = CLIENTS.parents[1] / "build" / "tests" / "clients" / "environment"


def test_clients_of_others(tmp_path):
    served = tmp_path / "served"
    served.write_text(f'#!/bin/sh\nexec {sys.executable} {CLIENTS / "served.py"} "$@"\n')
    served.chmod(0o755)
    done = subprocess.run(
        [sys.executable, CLIENTS / "run.py", served, "--environment", INSTALLED],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": ok") + done.stdout.count("skipped: ") == 16
    skipped = [line for line in done.stdout.splitlines() if line.startswith("skipped: ") and "make clients" not in line]
    if skipped:
        pytest.skip("; ".join(skipped))
