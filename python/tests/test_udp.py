"""Server and clients by UDP: a message a datagram, which may be lost."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

import wirecall


@pytest.fixture
def uri(app) -> Iterator[str]:
    @app
    def sum(a: int, b: int) -> int:
        return a + b

    @app
    def text(size: int) -> str:
        return "x" * size

    with app.serving("udp://127.0.0.1:0") as uri:
        yield uri


@pytest.fixture
def forgetful() -> Iterator[tuple[str, list[bytes]]]:
    """A peer that answers every third datagram, and those that it has received."""
    received: list[bytes] = []
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            request, source = server.recvfrom(2000)
            if request == b"end":
                return
            received.append(request)
            if len(received) % 3 == 0:
                server.sendto(b'{"jsonrpc":"2.0","result":7,' + request[request.index(b'"id"') :], source)

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"udp://127.0.0.1:{server.getsockname()[1]}", received
    server.sendto(b"end", server.getsockname())
    thread.join()
    server.close()


def test_calls_in_all_ways(uri: str) -> None:
    assert uri.startswith("udp://127.0.0.1:")
    with wirecall.connect(uri) as c:
        assert c.sum(2, 3) == 5
        assert c.sum(a=2, b=3) == 5
        c.notify("sum", 2, 3)
        with c.batch() as b:
            five, nine = b.sum(2, 3), b.sum(4, 5)
        assert (five.result(), nine.result()) == (5, 9)
        with pytest.raises(wirecall.InvalidParams):
            c.sum(2, "three")
        with pytest.raises(wirecall.Error) as too_large:
            c.text(5000)
        assert too_large.value.code == -32006


def test_calls_by_asyncio(uri: str) -> None:
    async def main() -> list[int]:
        async with wirecall.aconnect(uri, encoding="msgpack") as c:
            return await asyncio.gather(*(c.sum(i, 1, _idempotent=True) for i in range(100)))

    assert asyncio.run(main()) == list(range(1, 101))


def test_what_needs_a_connection_is_refused(uri: str) -> None:
    with wirecall.connect(uri) as c:
        with pytest.raises(wirecall.Error) as refused:
            list(c.text.stream(3))
        assert refused.value.code == -32600
        with pytest.raises(RuntimeError, match="a server does not call its client by UDP"):
            c.provide("mine", lambda: 1)


def test_an_idempotent_call_is_sent_again(forgetful: tuple[str, list[bytes]]) -> None:
    uri, received = forgetful
    with wirecall.connect(uri, timeout=60.0) as c:
        assert c.read(1, _idempotent=True) == 7
        assert len(received) == 3
        with pytest.raises(wirecall.Timeout):
            c.read(1, _timeout=0.05)
        assert len(received) == 4


def test_whether_it_is_idempotent_is_true_or_false(uri: str) -> None:
    with wirecall.connect(uri) as c:
        with pytest.raises(TypeError, match="_idempotent is True or False, not 1"):
            c.sum(2, 3, _idempotent=1)
        with pytest.raises(TypeError, match="_idempotent= says that the method may run several times"):
            c.sum(2, b=3, idempotent=True)


def test_principals_need_methods_that_are_safe(tmp_path) -> None:
    principals = tmp_path / "principals.json"
    principals.write_text('[{"name": "ada", "tokens": ["secret"], "call": [">"]}]')
    app = wirecall.Server("test", principals_file=str(principals))
    app.add(lambda: 1, name="erase")
    with pytest.raises(ValueError, match="declare the method erase safe"):
        app.listen("udp://127.0.0.1:0")
    app = wirecall.Server("test", principals_file=str(principals))
    app.add(lambda: 1, name="look", safe=True)
    with app.serving("udp://127.0.0.1:0") as uri, wirecall.connect(uri) as c:
        assert c.look() == 1
