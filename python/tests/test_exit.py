"""The interpreter ends while calls are in flight: at once, and in order, whatever goes on. `WIRECALL_EXITS` says how
often (14 unless given; `make soak` asks for 100)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

import wirecall

EXITS = int(os.environ.get("WIRECALL_EXITS", "14"))

# What goes on when the program's last line is reached.
GOING_ON = {
    "blocking calls in threads": """
        c = wirecall.connect(uri)
        for _ in range(5):
            threading.Thread(target=c.wait, daemon=True).start()
        c.quick(1)
    """,
    "gathered calls": """
        async def main():
            c = wirecall.aconnect(uri)
            pending = [c.wait() for _ in range(100)]
            await c.quick(1)
        asyncio.run(main())
    """,
    "a stream half read": """
        c = wirecall.connect(uri)
        stream = c.count.stream(100_000)
        next(stream)
    """,
    "a server in a thread": """
        app = wirecall.Server()
        @app
        async def later() -> int:
            await asyncio.sleep(3600)
        @app(blocking=True)
        def wait() -> None:
            threading.Event().wait()
        endpoint = app.listen("tcp://127.0.0.1:0")
        threading.Thread(target=app.run, kwargs={"quiet": True}, daemon=True).start()
        c = wirecall.connect(endpoint)
        threading.Thread(target=c.later, daemon=True).start()
        c["rpc.ping"]()
    """,
    "a provider at work": """
        hub = wirecall.Server(broker=True)
        endpoint = hub.listen("tcp://127.0.0.1:0")
        threading.Thread(target=hub.run, kwargs={"quiet": True}, daemon=True).start()
        async def main():
            one, two = wirecall.aconnect(endpoint), wirecall.aconnect(endpoint)
            began = asyncio.Event()
            async def never():
                began.set()
                await asyncio.sleep(3600)
            await one.provide("never", never)
            pending = two.never()
            await began.wait()
        asyncio.run(main())
    """,
    "a plain function that a client provides": """
        hub = wirecall.Server(broker=True)
        endpoint = hub.listen("tcp://127.0.0.1:0")
        threading.Thread(target=hub.run, kwargs={"quiet": True}, daemon=True).start()
        began = threading.Event()
        def never():
            began.set()
            threading.Event().wait()
        one, two = wirecall.connect(endpoint), wirecall.connect(endpoint)
        one.provide("never", never)
        threading.Thread(target=two.never, daemon=True).start()
        began.wait()
    """,
    "sys.exit in the middle": """
        c = wirecall.connect(uri)
        threading.Thread(target=c.wait, daemon=True).start()
        with c.batch() as b:
            b.quick(1)
        sys.exit(0)
    """,
}


@pytest.fixture
def uri(app) -> Iterator[str]:
    gate = threading.Event()

    @app(blocking=True)
    def wait() -> None:
        gate.wait()

    @app
    def quick(n: int) -> int:
        return n

    @app
    async def count(n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i

    with app.serving() as uri:
        yield uri
        gate.set()


def test_the_interpreter_ends_although_calls_never_do(uri):
    """Whatever goes on would go on for ever, so that who waits for it does not end."""
    for number in range(EXITS):
        kind, program = list(GOING_ON.items())[number % len(GOING_ON)]
        header = "import asyncio, sys, threading, time, wirecall, wirecall.aclient\nuri = sys.argv[1]\n"
        footer = "\nprint('the last line')\n"
        program = textwrap.dedent(program)
        if "sys.exit" in program:
            program = program.replace("sys.exit(0)", "print('the last line')\nsys.exit(0)")
            footer = ""
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", header + program + footer, uri],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{kind}: {done.returncode} {done.stderr}"
        assert "Fatal" not in done.stderr, f"{kind}: {done.stderr}"
        assert done.stdout == "the last line\n", kind


def test_a_forked_child_is_told_at_its_first_use(uri):
    program = """
        import os, sys, wirecall
        c = wirecall.connect(sys.argv[1])
        c.quick(1)
        pid = os.fork()
        if pid == 0:
            try:
                c.quick(2)
            except wirecall.LocalError as error:
                print(error, flush=True)
            with wirecall.connect(sys.argv[1]) as own:
                print(own.quick(3), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        print(c.quick(4))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), uri], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout == "the client was made before fork: make one in the child process\n3\n4\n", done.stderr


def test_signals_are_the_programs_while_a_server_runs_in_its_background():
    # Who starts the tests in the background of a shell hands on that SIGINT is ignored.
    program = """
        import signal, sys, time, wirecall
        signal.signal(signal.SIGINT, signal.default_int_handler)
        app = wirecall.Server()

        @app
        def twice(x: int) -> int:
            return 2 * x

        with app.serving() as uri, wirecall.connect(uri) as c:
            try:
                print("waiting", c.twice(1), flush=True)
                time.sleep(60)
            except KeyboardInterrupt:
                print("interrupted", c.twice(21), flush=True)
    """
    done = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert done.stdout is not None
    assert done.stdout.readline() == "waiting 2\n"
    done.send_signal(signal.SIGINT)
    assert done.communicate(timeout=300)[0] == "interrupted 42\n"
    assert done.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("handler", ["blocks", "goes_on", "yields_on"])
def test_a_server_ends_although_an_async_handler_does_not(handler, number):
    program = """
        import asyncio, time, wirecall
        app = wirecall.Server(drain_ms=100)

        @app
        async def blocks():
            print("there", flush=True)
            time.sleep(3600)

        @app
        async def goes_on():
            print("there", flush=True)
            while True:
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    pass

        @app
        async def yields_on():
            print("there", flush=True)
            while True:
                try:
                    yield 1
                    await asyncio.sleep(3600)
                except BaseException:
                    pass

        print(app.listen("tcp://127.0.0.1:0"), flush=True)
        app.run()
    """
    server = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    with wirecall.connect(server.stdout.readline().strip()) as c:
        c.notify(handler)
        assert server.stdout.readline() == "there\n"
        server.send_signal(number)
        said = server.communicate(timeout=300)[1]
    assert server.returncode == 0, said
    if handler != "yields_on":  # which can be closed by force
        assert "the server ends without it" in said
