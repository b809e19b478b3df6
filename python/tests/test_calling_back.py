"""ctx.call: a handler calls whoever called it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest

import wirecall


@pytest.fixture
def uri(app) -> Iterator[str]:
    @app
    async def rename(old: str, new: str, ctx: wirecall.Context) -> str:
        if not await ctx.call("confirm", old=old, new=new):
            raise wirecall.Error(1, "not confirmed")
        return new

    @app(blocking=True)
    def rename_waiting(old: str, new: str, ctx: wirecall.Context) -> str:
        return new if ctx.call("confirm", old, new) else old

    @app
    def each(n: int, ctx: wirecall.Context) -> Iterator[int]:
        for i in range(n):
            yield ctx.call("double", i)

    @app
    async def each_async(n: int, ctx: wirecall.Context) -> AsyncIterator[int]:
        for i in range(n):
            yield await ctx.call("double", i)

    @app
    async def all_of(n: int, ctx: wirecall.Context) -> list[int]:
        return await asyncio.gather(*(ctx.call("double", i) for i in range(n)))

    @app
    def plain(ctx: wirecall.Context) -> None:
        ctx.call("double", 1)

    @app
    async def passes_on(method: str, ctx: wirecall.Context) -> object:
        return await ctx.call(method)

    @app(blocking=True)
    def passes_on_waiting(method: str, ctx: wirecall.Context) -> object:
        return ctx.call(method)

    @app
    async def says(ctx: wirecall.Context) -> None:
        ctx.notify("said", "hi")

    with app.serving() as uri:
        yield uri


def test_from_each_kind_of_handler(uri):
    asked = []

    def confirm(old: str, new: str) -> bool:
        asked.append((old, new))
        return old != new

    with wirecall.connect(uri) as c:
        c.offer("confirm", confirm)
        c.offer("double", lambda x: 2 * x)
        assert c.rename("a", "b") == "b"
        assert c.rename_waiting("a", "c") == "c"
        with pytest.raises(wirecall.Error, match="not confirmed"):
            c.rename("a", "a")
        assert asked == [("a", "b"), ("a", "c"), ("a", "a")]
        assert list(c.each.stream(3)) == [0, 2, 4]
        assert list(c.each_async.stream(3)) == [0, 2, 4]
        assert c.all_of(50) == [2 * i for i in range(50)]


def test_to_an_asyncio_client(uri):
    async def main() -> None:
        async with wirecall.aconnect(uri) as c:

            async def confirm(old: str, new: str) -> bool:
                await asyncio.sleep(0)
                return True

            c.offer("confirm", confirm)
            c.offer("double", lambda x: 2 * x)
            assert await asyncio.gather(*(c.rename("a", str(i)) for i in range(20))) == [str(i) for i in range(20)]
            assert await c.all_of(3) == [0, 2, 4]

    asyncio.run(main())


def test_over_messagepack(uri):
    with wirecall.connect(uri, encoding="msgpack") as c:
        c.offer("double", lambda x: np.asarray(x).tolist())
        assert c.all_of(3) == [0, 1, 2]


def test_errors_pass(uri):
    def fails() -> None:
        raise wirecall.Error(7, "no", {"a": 1})

    with wirecall.connect(uri) as c:
        c.offer("fails", fails)
        with pytest.raises(wirecall.Error) as caught:
            c.passes_on("fails")
        assert (caught.value.code, caught.value.message, caught.value.data) == (7, "no", {"a": 1})
        with pytest.raises(wirecall.MethodNotFound):
            c.passes_on("nothing")


def test_a_plain_handler_is_told_what_to_do(uri, caplog):
    with wirecall.connect(uri) as c, pytest.raises(wirecall.InternalError):
        c.plain()
    assert "make it async def, or @app(blocking=True)" in caplog.text


def test_by_http_there_is_nobody_to_call(uri):
    with wirecall.connect(uri.replace("tcp://", "http://")) as c:
        with pytest.raises(wirecall.ConnectionLost, match="cannot be called"):
            c.rename("a", "b")
        with pytest.raises(wirecall.ConnectionLost, match="cannot be called"):
            c.rename_waiting("a", "b")


def test_notifications(uri):
    said = threading.Event()
    with wirecall.connect(uri) as c:
        c.offer("said", lambda word: said.set() if word == "hi" else None)
        c.says()
        assert said.wait(300)


def test_it_ends_with_the_call_it_is_made_in(app):
    ended = threading.Event()

    @app
    async def asks(ctx: wirecall.Context) -> None:
        try:
            await ctx.call("never")
        finally:
            ended.set()

    begun = threading.Event()

    async def main() -> None:
        async with wirecall.aconnect(uri) as c:

            async def never() -> None:
                begun.set()
                await asyncio.sleep(3600)

            c.offer("never", never)
            reply = c.asks()
            await asyncio.to_thread(begun.wait, 20)
            reply.cancel()
            assert await asyncio.to_thread(ended.wait, 20)

    with app.serving() as uri:
        asyncio.run(main())


def test_a_caller_that_goes_ends_who_waits_for_it(app):
    ended = threading.Event()

    @app(blocking=True)
    def asks(ctx: wirecall.Context) -> None:
        try:
            ctx.call("never")
        finally:
            ended.set()

    begun = threading.Event()

    async def main() -> None:
        async with wirecall.aconnect(uri) as c:

            async def never() -> None:
                begun.set()
                await asyncio.sleep(3600)

            c.offer("never", never)
            reply = c.asks()
            await asyncio.to_thread(begun.wait, 20)
        with pytest.raises(wirecall.ConnectionLost):
            await reply
        assert await asyncio.to_thread(ended.wait, 20)

    with app.serving() as uri:
        asyncio.run(main())


def test_a_provider_calls_its_broker(broker):
    async def main() -> None:
        async with wirecall.aconnect(broker) as one, wirecall.aconnect(broker) as two:

            async def outer(x: int, ctx: wirecall.Context) -> int:
                assert ctx.hops == 0
                return await ctx.call("inner", x) + 1

            async def inner(x: int, ctx: wirecall.Context) -> int:
                assert ctx.hops == 1
                return 10 * x

            await one.provide("outer", outer)
            await two.provide("inner", inner)
            assert await two.outer(4) == 41

    asyncio.run(main())


@pytest.mark.parametrize("answer", ["1e400", "9" * 5000, '{"a":[1e999]}'])
@pytest.mark.parametrize("method", ["passes_on", "passes_on_waiting"])
def test_an_answer_that_cannot_be_read_is_an_error_of_that_call(uri, app, method, answer):
    host, port = uri.removeprefix("tcp://").split(":")
    with socket.create_connection((host, int(port))) as peer:
        lines = peer.makefile()
        peer.sendall(f'{{"jsonrpc":"2.0","method":"{method}","params":["x"],"id":1}}\n'.encode())
        asked = json.loads(lines.readline())
        peer.sendall(f'{{"jsonrpc":"2.0","id":"{asked["id"]}","result":{answer}}}\n'.encode())
        answered = json.loads(lines.readline())
        assert answered["id"] == 1
        assert answered["error"]["code"] == -32603
    with wirecall.connect(uri) as c:
        assert c["rpc.ping"]() == "pong"
