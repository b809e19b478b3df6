"""The checker of brokers (tests/broker_check), with programs of this package as every other of the providers that are
killed and stopped: no call is lost, doubled or given to another."""

from __future__ import annotations

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
CHECKER = HERE.parents[1] / "tests" / "broker_check" / "check.py"
TOOL = pathlib.Path(sys.executable).with_name("wirecall")


def test_calls_survive_the_killing_of_python_providers():
    done = subprocess.run(
        [sys.executable, "-B", CHECKER, TOOL, "--provider", HERE / "broker_provider.py", "--seconds", "8"],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
