"""What must be survived: handlers, values and peers at their worst. Afterwards the server answers as before."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import math
import os
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

import wirecall


class Unprintable(Exception):
    """Neither str nor repr come back."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


class Liar:
    """Whatever is asked of it goes wrong."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no dict")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no eq")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("no " + name)


def recursion() -> None:
    recursion()


def cycle() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


def raising(exception: Callable[[], BaseException]) -> Callable[[], None]:
    def handler() -> None:
        raise exception()

    return handler


def raising_async(exception: Callable[[], BaseException]) -> Callable[[], Any]:
    async def handler() -> None:
        await asyncio.sleep(0)
        raise exception()

    return handler


def breaking(exception: Callable[[], BaseException]) -> Callable[[], Any]:
    async def handler() -> AsyncIterator[int]:
        yield 1
        raise exception()

    return handler


RAISED: dict[str, Callable[[], BaseException]] = {
    "BaseException": lambda: BaseException("base"),
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "MemoryError": MemoryError,
    "StopIteration": StopIteration,
    "Unprintable": Unprintable,
    "Surrogates": lambda: wirecall.Error(1, "\ud800", {"a": "\udfff"}),
    "Unsendable": lambda: wirecall.Error(1, "x", object()),
    "Group": lambda: ExceptionGroup("g", [ValueError()]),
    "Wrong": lambda: wirecall.Error("no number", 7),  # type: ignore[arg-type]
}
RETURNED: dict[str, Callable[[], Any]] = {
    "object": object,
    "cycle": cycle,
    "liar": Liar,
    "liars": lambda: {"a": [Liar()]},
    "surrogate": lambda: "\ud800",
    "nan": lambda: float("nan"),
    "keys": lambda: {(1, 2): 3},
    "function": lambda: recursion,
    "objects": lambda: np.array([object()]),
    "generator": lambda: (i for i in range(3)),
}


@pytest.fixture
def uri(app) -> Iterator[str]:
    for name, exception in RAISED.items():
        app.add(raising(exception), name="raise." + name)
        app.add(raising_async(exception), name="raise_async." + name)
        app.add(breaking(exception), name="break." + name)
    for name, value in RETURNED.items():
        app.add(value, name="return." + name)
    app.add(recursion)

    @app
    def echo(value: Any) -> Any:
        return value

    @app
    def array(value: np.ndarray) -> list[int]:
        return list(value.shape)

    @app
    def picture(value: Image.Image) -> list[int]:
        return list(value.size)

    @app
    def number(value: int) -> str:
        return hex(value)

    @app
    def midway(n: int) -> Iterator[int]:
        yield from range(n)
        raise Unprintable

    @app
    async def midway_async(n: int) -> AsyncIterator[Any]:
        for i in range(n):
            yield i
        yield object()

    @app
    def forks() -> int:
        pid = os.fork()
        if pid == 0:
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    @app
    async def echo_async(value: Any) -> Any:
        await asyncio.sleep(0)
        return value

    @app
    async def leaves_badly() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(60)
        finally:
            raise SystemExit

    with app.serving() as uri:
        yield uri


@pytest.fixture(params=["json", "msgpack", "cbor"])
def client(uri, request) -> Iterator[wirecall.Client]:
    with wirecall.connect(uri, encoding=request.param) as client:
        yield client
        assert client.echo("as before") == "as before"
        assert client.echo_async("as before") == "as before"


@pytest.mark.parametrize("name", RAISED)
def test_handlers_may_raise_anything(client, name):
    with pytest.raises(wirecall.Error):
        client["raise." + name]()


@pytest.mark.parametrize("name", RAISED)
def test_async_handlers_may_raise_anything(client, name):
    with pytest.raises(wirecall.Error):
        client["raise_async." + name](_timeout=300)


@pytest.mark.parametrize("name", RAISED)
def test_async_generators_may_raise_anything(client, name):
    stream = client["break." + name].stream(_timeout=300)
    assert next(stream) == 1
    with pytest.raises(wirecall.Error) as caught:
        next(stream)
    assert not isinstance(caught.value, wirecall.Timeout)


def test_an_async_generator_that_would_end_the_program_when_its_reader_leaves(client):
    stream = client.leaves_badly.stream()
    assert next(stream) == 1
    stream.close()


@pytest.mark.parametrize("name", RETURNED)
def test_handlers_may_return_anything(client, name, request):
    if name == "nan" and request.node.callspec.params["client"] != "json":
        assert math.isnan(client["return.nan"]())  # it is a number there
        return
    with pytest.raises(wirecall.InternalError):
        client["return." + name]()


def test_a_handler_may_run_out_of_stack(client):
    with pytest.raises(wirecall.InternalError):
        client.recursion()


def test_a_handler_may_fork(client):
    assert client.forks() == 7


def test_streams_that_break(client):
    for name in ("midway", "midway_async"):
        came = []
        with pytest.raises(wirecall.InternalError):
            for item in client[name].stream(3):
                came.append(item)
        assert came == [0, 1, 2]
    # And one that is dropped half-way.
    stream = client.midway.stream(1000)
    assert next(stream) == 0
    del stream
    gc.collect()


@pytest.mark.parametrize(
    "value",
    [
        {"$npy": "AAAA"},
        {"$npy": ""},
        {"$npy": "!"},
        {"$npy": 7},
        {"$bytes": "aGk="},
        [[1], [2, 3]],
        [{}],
        "text",
    ],
)
def test_arrays_that_are_none(client, value):
    with pytest.raises(wirecall.InvalidParams):
        client.array(value)


def npy_head(header: str) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': 'x', 'fortran_order': False, 'shape': (1,), }",
        "__import__('os').abort()",
        "{" * 5000,
    ],
)
def test_array_files_that_lie(client, header):
    import base64

    with pytest.raises(wirecall.InvalidParams):
        client.array({"$npy": base64.b64encode(npy_head(header) + b"\0" * 64).decode()})


def test_an_image_that_would_fill_the_memory(client):
    import base64
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    with pytest.raises(wirecall.InvalidParams):
        client.picture({"$image": base64.b64encode(bomb).decode()})


# ---- texts that our own client would not send ----


class Peer:
    """Lines there and back."""

    def __init__(self, uri: str) -> None:
        host, port = uri.removeprefix("tcp://").split(":")
        self.connection = socket.create_connection((host, int(port)), timeout=300)
        self.lines = self.connection.makefile("rb")

    def ask(self, params: str, method: str = "echo") -> Any:
        return self.ask_raw(f'{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":1}}\n'.encode())

    def ask_raw(self, text: bytes) -> Any:
        self.connection.sendall(text)
        return json.loads(self.lines.readline())


@pytest.fixture
def peer(uri) -> Iterator[Peer]:
    made = Peer(uri)
    yield made
    made.connection.close()
    with wirecall.connect(uri) as c:
        assert c.echo("as before") == "as before"


def test_numbers_of_any_length(peer):
    assert peer.ask("[" + "1" * 4000 + "]", "number")["result"].startswith("0x")
    for digits in ("1" * 100_000, "-" + "9" * 1_000_000):
        assert peer.ask(f"[{digits}]", "number")["error"]["code"] == -32602
    assert peer.ask("[1e400]")["error"]["code"] in (-32602, -32603)
    assert peer.ask("[-0]")["result"] == 0
    assert peer.ask("[1E2]")["result"] == 100.0


def test_texts_of_all_kinds(peer):
    for params, code in (
        ('["\\ud800"]', -32700),
        ("[" * 2000 + "]" * 2000, -32700),
        ('[{"a":1,"a":2}]', None),
        ('{"value":1,"value":2}', -32602),
        ('{"value":1,"other":2}', -32602),
        ("[]", -32602),
        ("[1,2]", -32602),
        ('["\\u0000"]', None),
    ):
        answer = peer.ask(params)
        assert answer.get("error", {}).get("code") == code, (params, answer)
    assert peer.ask('["\\u0000"]')["result"] == "\0"


def test_messagepack_that_declares_what_does_not_come(uri):
    host, port = uri.removeprefix("tcp://").split(":")
    call = b"\x84\xa7jsonrpc\xa32.0\xa6method\xa4echo\xa2id\x01\xa6params"
    for params in (
        b"\x91\xc6\xff\xff\xff\xff",  # 4 GiB of bytes
        b"\xdd\xff\xff\xff\xff",  # as many elements
        b"\xdf\xff\xff\xff\xff",
        b"\x91\xc9\xff\xff\xff\xff\x4e",
        b"\x91" * 100_000,
        b"\x91\xc1",
    ):
        with socket.create_connection((host, int(port)), timeout=300) as connection:
            message = call + params
            connection.sendall(struct.pack(">I", len(message)) + message)
            assert connection.recv(65536)  # an error, behind its length
    with wirecall.connect(uri) as c:
        assert c.echo("as before") == "as before"


# ---- peers ----


def test_peers_that_leave_while_they_are_served(uri):
    begun = [Peer(uri) for _ in range(50)]
    for peer in begun:
        peer.connection.sendall(b'{"jsonrpc":"2.0","method":"midway","params":[100000],"id":1,"stream":1}\n' * 3)
        peer.connection.sendall(b'{"jsonrpc":"2.0","method":"echo","params":["' + b"x" * 1000)
    for peer in begun:
        peer.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.connection.close()
    with wirecall.connect(uri) as c:
        assert c.echo("as before") == "as before"


def test_clients_that_are_dropped_with_calls_in_flight(app):
    gate = threading.Event()

    @app(blocking=True)
    def wait() -> None:
        gate.wait(300)

    with app.serving() as uri:
        for _ in range(20):
            c = wirecall.connect(uri)
            threading.Thread(target=c.wait, daemon=True).start()
            del c
        gc.collect()
        gate.set()
        with wirecall.connect(uri) as c:
            assert c.wait() is None


def test_a_flood_is_served_while_a_handler_keeps_the_gil(app):
    keeps_gil = ctypes.PyDLL(None)

    @app
    def hog() -> int:
        keeps_gil.usleep(100_000)
        return 1

    @app
    def quick(n: int) -> int:
        return n

    with app.serving() as uri, wirecall.connect(uri) as c:
        peers = [Peer(uri) for _ in range(20)]
        for peer in peers:
            peer.connection.sendall(b'{"jsonrpc":"2.0","method":"hog","id":1}\n')
            peer.connection.sendall(b'{"jsonrpc":"2.0","method":"quick","params":[2],"id":2}\n' * 20)
        assert c.quick(7) == 7
        for peer in peers:
            answers = [json.loads(peer.lines.readline()) for _ in range(21)]
            assert sorted(answer["id"] for answer in answers) == [1] + [2] * 20
            assert all(answer["result"] == answer["id"] for answer in answers)
            peer.connection.close()
