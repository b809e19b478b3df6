"""Slow handlers, and those that keep the GIL: what they hold up, and what they do not. The server is this process, the
clients are another: they would wait for the GIL themselves."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import pathlib
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import annotated_types
import pydantic
import pytest

KEEPS_GIL = ctypes.PyDLL(None)


class Hog:
    """Keeps the GIL from when it says so, through one pipe with a name, until another process lets it go on through a
    second one."""

    class Poll(ctypes.Structure):
        _fields_ = (("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short))

    def __init__(self, folder: pathlib.Path) -> None:
        self.pipes = [folder / "begun", folder / "release"]
        for pipe in self.pipes:
            os.mkfifo(pipe)
        self._begun, self._release = (os.open(pipe, os.O_RDWR) for pipe in self.pipes)

    def __call__(self) -> bool:
        """Whether it was let go on, and has not given up."""
        wanted = self.Poll(self._release, 1)
        KEEPS_GIL.write(self._begun, b"x", 1)
        if KEEPS_GIL.poll(ctypes.byref(wanted), 1, 60_000) != 1:
            return False
        os.read(self._release, 1)
        return True

    def close(self) -> None:
        os.close(self._begun)
        os.close(self._release)


HOGS: list[Hog] = []


def hog_looks(text: str) -> bool:
    return text == "" or not HOGS[0]()


GATE = threading.Event()


@dataclasses.dataclass
class Slow:
    name: str

    def __post_init__(self) -> None:
        GATE.wait(300)


class Written(pydantic.BaseModel):
    name: str

    @pydantic.field_serializer("name")
    def write(self, name: str) -> str:
        GATE.wait(300)
        return name


@pytest.fixture
def uri(app, tmp_path) -> Iterator[str]:
    GATE.clear()
    HOGS[:] = [Hog(tmp_path)]

    @app
    def wait() -> bool:
        return GATE.wait(300)

    @app
    def open_gate() -> None:
        GATE.set()

    @app
    def hog() -> bool:
        return HOGS[0]()

    @app
    def quick(n: int) -> int:
        return n

    @app
    def takes(slow: Slow) -> str:
        return slow.name

    @app
    def matches(text: Annotated[str, annotated_types.Predicate(hog_looks)]) -> str:
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
    def off_loop(n: int) -> int:
        return n

    with app.serving() as uri:
        yield uri
    HOGS.pop().close()


def run_client(uri: str, program: str) -> str:
    header = """
        import sys, threading, time, wirecall
        uri, begun, release = sys.argv[1:]
        def hog_has_begun(): open(begun, "rb", buffering=0).read(1)
        def let_hog_go_on(): open(release, "wb", buffering=0).write(b"x")
        def connect(): return wirecall.connect(uri)
        def say(what): sys.stdout.write(f"{what}\\n")
        def begin(f):
            thread = threading.Thread(target=f)
            thread.start()
            return thread
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(header) + textwrap.dedent(program), uri, *HOGS[0].pipes],
        capture_output=True, text=True, timeout=300, check=False,
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
        let_go_on = []
        hogging = begin(lambda: let_go_on.append(a.hog()))
        hog_has_begun()
        print(b["rpc.ping"]())                     # no Python is needed for that
        try: b.quick(1, _timeout=0.1)
        except wirecall.Timeout: print("timeout")  # nor for that
        others = [begin(lambda: say(connect().quick(7))) for _ in range(3)]
        print(b["rpc.ping"]())
        let_hog_go_on()
        for thread in [hogging, *others]: thread.join()
        print(b.quick(8), let_go_on)
    """)  # fmt: skip
    assert out == "pong\ntimeout\npong\n7\n7\n7\n8 [True]\n"


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


def test_while_a_value_is_looked_at_the_server_goes_on(uri):
    out = run_client(uri, """
        a, b = connect(), connect()
        def match():
            try: a.matches("a")
            except wirecall.InvalidParams: say("refused")
        matching = begin(match)
        hog_has_begun()
        print(b["rpc.ping"]())
        let_hog_go_on()
        matching.join()
    """)  # fmt: skip
    assert out == "pong\nrefused\n"


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
        print([c.off_loop(n, _timeout=300) for n in range(20)] == list(range(20)))
        print(list(c.each.stream(1000)) == list(range(1000)))
        for reader in readers:  # one that is read after all goes on where it was
            reader.sendall(b'{"jsonrpc":"2.0","method":"rpc.credit","params":{"id":1,"n":200}}\\n')
        lines = readers[-1].makefile()
        print(json.loads("{" + lines.readline().lstrip("{"))["params"]["seq"],
              [json.loads(lines.readline())["params"]["value"] for _ in range(200)] == list(range(1, 201)))
    """)  # fmt: skip
    assert out == "True\nTrue\n0 True\n"


def test_who_waits_for_the_loop_does_not_keep_the_gil():
    """While one thread computes in Python and others wait for the GIL, loops are taken over; a call that was decoded
    early and has not been run gives its params back on the loop, with the GIL."""
    program = textwrap.dedent(
        """
        import json, socket, threading, time, wirecall

        app = wirecall.Server(takeover_ms=5)

        @app
        def ping() -> str:
            return "pong"

        @app(blocking=True)
        def compute() -> int:
            return sum(i * i for i in range(200_000))

        @app(batch=16, wait_ms=20, batch_priority=lambda ctx: 0)
        def embed(numbers: list[int]) -> list[int]:
            return numbers

        def line(method, *params, **more):
            call = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1, **more}
            return json.dumps(call).encode() + b"\\n"

        def flood(address, lines, pause):
            peer = socket.create_connection(address)
            threading.Thread(target=lambda: all(iter(lambda: peer.recv(65536), b"")), daemon=True).start()
            while True:
                peer.sendall(lines)
                time.sleep(pause)

        with app.serving() as uri:
            address = ("127.0.0.1", int(uri.rpartition(":")[2]))
            for lines, pause in [
                (line("compute") * 6, 0.1),
                (line("ping") * 3, 0.003),
                (b"".join(line("embed", i, timeout_ms=5) for i in range(10)), 0.004),
            ]:
                threading.Thread(target=flood, args=(address, lines, pause), daemon=True).start()
            began = time.monotonic()
            while time.monotonic() - began < 2:
                with socket.create_connection(address) as peer:
                    peer.sendall(line("rpc.ping"))
                    assert peer.recv(100)
            print("served", flush=True)
            import os
            os._exit(0)
        """
    )
    run = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, timeout=120, check=True)
    assert run.stdout == b"served\n"
