"""Server, broker and clients by shared memory, shm://name: within a process and between two."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import wirecall

URI = f"shm://wirecall-test-{os.getpid()}"


@pytest.fixture
def uri(app: wirecall.Server) -> Iterator[str]:
    @app
    def sum(a: int, b: int) -> int:
        return a + b

    @app
    def echo(value: Any) -> Any:
        return value

    @app
    async def count(n: int) -> Any:
        for i in range(n):
            yield i

    with app.serving(URI) as uri:
        assert uri == URI
        yield uri


def test_calls_in_all_ways(uri: str) -> None:
    with wirecall.connect(uri) as c:
        assert c.sum(2, 3) == 5
        assert c.sum(a=2, b=3) == 5
        with c.batch() as b:
            five, nine = b.sum(2, 3), b.sum(4, 5)
        assert (five.result(), nine.result()) == (5, 9)
        assert list(c.count.stream(5)) == [0, 1, 2, 3, 4]
        with pytest.raises(wirecall.InvalidParams):
            c.sum("two", 3)

    async def call() -> list[int]:
        async with wirecall.aconnect(uri, encoding="msgpack") as client:
            return await asyncio.gather(*(client.sum(n, n) for n in range(100)))

    assert asyncio.run(call()) == [2 * n for n in range(100)]


def test_messages_larger_than_the_ring(uri: str) -> None:
    with wirecall.connect(uri) as c:
        for size in (1, 65_535, 65_536, 3_000_000):
            assert c.echo("x" * size) == "x" * size


def test_threads_and_clients_at_once(uri: str) -> None:
    def calls(n: int) -> list[int]:
        with wirecall.connect(uri) as c:
            return [c.sum(n, i) for i in range(50)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(calls, range(8))) == [[n + i for i in range(50)] for n in range(8)]


def test_another_process_calls(uri: str) -> None:
    program = f"import wirecall; print(wirecall.connect({uri!r}).sum(2, 3))"
    called = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert called.stdout == "5\n", called.stderr


def test_a_broker_relays_between_shared_memory_and_sockets() -> None:
    broker = wirecall.Server("broker", broker=True, kick_ms=0)
    with broker.serving(URI) as uri, wirecall.connect(uri) as provider, wirecall.connect(uri) as caller:
        provider.provide("double", lambda n: 2 * n)
        assert caller.double(21) == 42
        events: list[Any] = []
        subscription = provider.subscribe("news", lambda topic, value: events.append((topic, value)))
        assert caller.publish("news", {"n": 1}) == 1
        caller.call_all("double", 1)  # behind the event, on the provider's connection
        assert events == [("news", {"n": 1})]
        subscription.unsubscribe()


def test_a_server_whose_socket_nobody_serves_is_replaced(app: wirecall.Server) -> None:
    program = f"import os, wirecall\napp = wirecall.Server('x')\nwith app.serving({URI!r}):\n    os._exit(0)\n"
    subprocess.run([sys.executable, "-c", program], check=True)

    @app
    def one() -> int:
        return 1

    with app.serving(URI) as uri, wirecall.connect(uri) as c:
        assert c.one() == 1


def test_a_lost_server_is_an_error(app: wirecall.Server) -> None:
    with app.serving(URI) as uri:
        client = wirecall.connect(uri)
    with pytest.raises(wirecall.ConnectionLost):
        client.one()
    client.close()
