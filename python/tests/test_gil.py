"""Slow handlers, and those that keep the GIL: what they hold up, and what they do not. The server is this process, the
clients are another: they would wait for the GIL themselves."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator

import pytest

KEEPS_GIL = ctypes.PyDLL(None)


@pytest.fixture
def uri(app) -> Iterator[str]:
    gate = threading.Event()

    @app
    def wait() -> bool:
        return gate.wait(30)

    @app
    def open_gate() -> None:
        gate.set()

    @app
    def hog(milliseconds: int) -> None:
        KEEPS_GIL.usleep(milliseconds * 1000)

    @app
    def quick(n: int) -> int:
        return n

    with app.serving() as uri:
        yield uri


def run_client(uri: str, program: str) -> str:
    header = """
        import sys, threading, time, wirecall
        uri = sys.argv[1]
        def connect(): return wirecall.connect(uri)
        def say(what): sys.stdout.write(f"{what}\\n")
        def begin(f):
            thread = threading.Thread(target=f)
            thread.start()
            return thread
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(header) + textwrap.dedent(program), uri],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_handler_that_waits_holds_up_nobody(uri):
    out = run_client(uri, """
        a, b = connect(), connect()
        waiting = [begin(lambda: say(a.wait())) for _ in range(5)]
        print([b.quick(n) for n in range(100)] == list(range(100)))
        b.open_gate()
        for thread in waiting: thread.join()
    """)  # fmt: skip
    assert out == "True\n" * 6


def test_while_one_keeps_the_gil_the_server_goes_on(uri):
    out = run_client(uri, """
        a, b = connect(), connect()
        began = time.monotonic()
        hogging = begin(lambda: a.hog(1500))
        time.sleep(0.1)
        print(b["rpc.ping"]())                     # no Python is needed for that
        try: b.quick(1, _timeout=0.1)
        except wirecall.Timeout: print("timeout")  # nor for that
        print(time.monotonic() - began < 1.2)
        others = [begin(lambda: say(connect().quick(7))) for _ in range(3)]
        time.sleep(0.1)
        print(b["rpc.ping"](), time.monotonic() - began < 1.2)
        for thread in [hogging, *others]: thread.join()
        print(b.quick(8))
    """)  # fmt: skip
    assert out == "pong\ntimeout\nTrue\npong True\n7\n7\n7\n8\n"
