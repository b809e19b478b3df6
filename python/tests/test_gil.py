"""Slow handlers, and those that keep the GIL: what they hold up, and what they do not. The server is this process, the
clients are another: they would wait for the GIL themselves."""

from __future__ import annotations

import ctypes
import dataclasses
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import pydantic
import pytest

KEEPS_GIL = ctypes.PyDLL(None)


GATE = threading.Event()


@dataclasses.dataclass
class Slow:
    name: str

    def __post_init__(self) -> None:
        GATE.wait(30)


class Written(pydantic.BaseModel):
    name: str

    @pydantic.field_serializer("name")
    def write(self, name: str) -> str:
        GATE.wait(30)
        return name


@pytest.fixture
def uri(app) -> Iterator[str]:
    GATE.clear()

    @app
    def wait() -> bool:
        return GATE.wait(30)

    @app
    def open_gate() -> None:
        GATE.set()

    @app
    def hog(milliseconds: int) -> None:
        KEEPS_GIL.usleep(milliseconds * 1000)

    @app
    def quick(n: int) -> int:
        return n

    @app
    def takes(slow: Slow) -> str:
        return slow.name

    @app
    def matches(text: Annotated[str, pydantic.Field(pattern="^(a+)+$")]) -> str:
        return text

    @app
    def gives() -> Written:
        return Written(name="written")

    @app
    def each(n: int) -> Iterator[int]:
        yield from range(n)

    @app
    def anything(value: Any) -> bool:
        return value is not None

    @app(blocking=True)
    def aside(n: int) -> int:
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


@pytest.mark.parametrize("call", ["a.takes({'name': 'taken'})", "a.gives()['name']"])
def test_what_a_class_does_with_its_values_holds_up_nobody(uri, call):
    out = run_client(uri, f"""
        a, b = connect(), connect()
        waiting = [begin(lambda: say({call})) for _ in range(3)]
        print([b.quick(n) for n in range(100)] == list(range(100)), b["rpc.ping"]())
        b.open_gate()
        for thread in waiting: thread.join()
    """)  # fmt: skip
    assert out == "True pong\n" + ("taken\n" if "taken" in call else "written\n") * 3


def test_while_a_pattern_is_matched_the_server_goes_on(uri):
    out = run_client(uri, """
        a, b = connect(), connect()
        began = time.monotonic()
        def match():
            try: a.matches("a" * 25 + "b")
            except wirecall.InvalidParams: say(time.monotonic() - began > 0.5)
        matching = begin(match)
        time.sleep(0.1)
        print(b["rpc.ping"](), time.monotonic() - began < 0.5)
        matching.join()
    """)  # fmt: skip
    assert out == "pong True\nTrue\n"


def test_streams_that_nobody_reads_take_no_threads(uri):
    out = run_client(uri, """
        import json, socket
        host, port = uri.removeprefix("tcp://").split(":")
        readers = []
        for _ in range(40):
            reader = socket.create_connection((host, int(port)))
            reader.sendall(b'{"jsonrpc":"2.0","method":"each","params":[100000],"stream":1,"id":1}\\n')
            reader.recv(1)
            readers.append(reader)
        c = connect()
        print([c.aside(n, _timeout=10) for n in range(20)] == list(range(20)))
        print(list(c.each.stream(1000)) == list(range(1000)))
        for reader in readers:  # one that is read after all goes on where it was
            reader.sendall(b'{"jsonrpc":"2.0","method":"rpc.credit","params":{"id":1,"n":200}}\\n')
        lines = readers[-1].makefile()
        print(json.loads("{" + lines.readline().lstrip("{"))["params"]["seq"],
              [json.loads(lines.readline())["params"]["value"] for _ in range(200)] == list(range(1, 201)))
    """)  # fmt: skip
    assert out == "True\nTrue\n0 True\n"
