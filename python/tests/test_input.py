"""Streams towards handlers: `Iterator[T]` and `AsyncIterator[T]` parameters, and what clients send with `_input=`."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import wirecall

WAIT_S = 10


class Handlers:
    """What the handlers have come to."""

    def __init__(self) -> None:
        self.read = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)
        self.raised: list[BaseException] = []


@pytest.fixture
def handlers() -> Handlers:
    return Handlers()


def add_methods(app: wirecall.Server, handlers: Handlers) -> None:
    @app
    def sum_all(values: Iterator[int]) -> int:
        return sum(values)

    @app
    async def sum_async(values: AsyncIterator[int]) -> int:
        return sum([value async for value in values])

    @app
    def running_sum(values: Iterator[int]) -> Iterator[int]:
        yield from itertools.accumulate(values)

    @app
    async def running_async(values: AsyncIterator[int]) -> AsyncIterator[int]:
        total = 0
        async for value in values:
            total += value
            yield total

    @app
    def join(between: str, *, texts: Iterator[str], ctx: wirecall.Context) -> str:
        return between.join(texts)

    @app
    def first(values: Iterator[int]) -> int | None:
        return next(values, None)

    def note(failure: BaseException) -> None:
        handlers.raised.append(failure)
        handlers.ended.release()

    @app
    def drain(values: Iterator[int]) -> None:
        try:
            for _ in values:
                handlers.read.release()
        except BaseException as failure:
            note(failure)
            raise

    @app
    async def drain_async(values: AsyncIterator[int]) -> None:
        try:
            async for _ in values:
                handlers.read.release()
        except BaseException as failure:
            note(failure)
            raise


@pytest.fixture
def uri(app, handlers) -> Iterator[str]:
    add_methods(app, handlers)
    with app.serving() as uri:
        yield uri


@pytest.fixture(params=["json", "msgpack", "cbor", "protobuf"])
def client(uri, request) -> Iterator[wirecall.Client]:
    with wirecall.connect(uri, encoding=request.param) as c:
        yield c


@pytest.mark.parametrize("method", ["sum_all", "sum_async"])
def test_a_handler_iterates_over_what_its_caller_sends(client, method):
    assert client[method](_input=range(1, 1001)) == 500_500
    assert client[method](_input=[40, 2]) == 42
    assert client[method](_input=(n for n in (1, 2))) == 3
    assert client[method](_input=[]) == 0
    assert client[method]() == 0, "without a stream it is empty"


def test_it_stands_beside_params_and_is_none(client):
    assert client.join("+", _input=["a", "b"]) == "a+b"
    assert client.join(between="+", _input=iter("ab")) == "a+b"
    with pytest.raises(wirecall.InvalidParams):
        client.join(between="+", texts=["a"])


@pytest.mark.parametrize("method", ["running_sum", "running_async"])
def test_both_directions_run_at_once(client, method):
    assert list(client[method].stream(_input=iter([1, 2, 3]))) == [1, 3, 6]
    assert list(client[method].stream(_input=range(500)))[-1] == 124_750


def test_an_answer_before_the_end_stops_the_source(client):
    asked = itertools.count()
    assert client.first(_input=asked) == 0
    assert next(asked) <= 16 + 64 + 1, "no more than the server had room for"


@pytest.mark.parametrize("method", ["drain", "drain_async"])
def test_an_item_is_sent_before_the_next_one_is_waited_for(client, handlers, method):
    def paced() -> Iterator[int]:
        for i in range(100):
            yield i
            assert handlers.read.acquire(timeout=WAIT_S), i

    client[method](_input=paced())


@pytest.mark.parametrize("method", ["sum_all", "sum_async"])
def test_an_item_of_another_type_is_named(client, method):
    with pytest.raises(wirecall.InvalidParams) as caught:
        client[method](_input=[1, "two"])
    assert caught.value.data["loc"] == ["input", 1]
    assert caught.value.data["expected"] == "integer"


def test_what_the_source_raises_the_call_raises(client):
    def torn() -> Iterator[int]:
        yield 1
        raise KeyError("torn")

    with pytest.raises(KeyError, match="torn"):
        client.sum_all(_input=torn())
    with pytest.raises(KeyError, match="torn"):
        list(client.running_sum.stream(_input=torn()))
    assert client.sum_all(_input=[1]) == 1


def test_an_item_that_cannot_be_sent_ends_the_call(client):
    with pytest.raises(wirecall.LocalError, match="object"):
        client.sum_all(_input=[object()])


@pytest.mark.parametrize("method", ["drain", "drain_async"])
def test_a_call_whose_time_is_over_ends_its_handler(client, handlers, method):
    ended = threading.Event()

    def waits() -> Iterator[int]:
        yield 1
        assert handlers.read.acquire(timeout=WAIT_S)
        ended.wait(WAIT_S)
        yield 2

    threading.Thread(target=lambda: (handlers.ended.acquire(timeout=WAIT_S), ended.set())).start()
    with pytest.raises(wirecall.Error):
        client[method](_timeout=0.05, _input=waits())
    assert isinstance(handlers.raised[0], wirecall.Cancelled | asyncio.CancelledError)


@pytest.mark.parametrize("method", ["drain", "drain_async"])
def test_a_caller_that_leaves_ends_the_handler(uri, handlers, method):
    client = wirecall.connect(uri)
    stream = client[method].stream(_input=itertools.count())

    def read() -> None:
        with pytest.raises(wirecall.Error):
            next(stream)

    thread = threading.Thread(target=read)
    thread.start()
    assert handlers.read.acquire(timeout=WAIT_S)
    client.close()
    thread.join(WAIT_S)
    assert handlers.ended.acquire(timeout=WAIT_S)
    assert isinstance(handlers.raised[0], wirecall.Error | asyncio.CancelledError)


def test_it_stands_in_discover(client):
    methods = {one["name"]: one for one in client["rpc.discover"]()["methods"]}
    assert methods["sum_all"]["x-input"] == {"schema": methods["sum_all"]["result"]["schema"]}
    assert methods["sum_all"]["params"] == []
    assert [param["name"] for param in methods["join"]["params"]] == ["between"]


def test_by_http_there_is_none(uri):
    with wirecall.connect(uri.replace("tcp", "http")) as c, pytest.raises(wirecall.InvalidRequest) as caught:
        c.sum_all(_input=[1])
    assert caught.value.data == {"reason": "needs_connection"}


def test_without_a_connection_it_is_empty(app, handlers):
    add_methods(app, handlers)
    assert json.loads(app.handle('{"jsonrpc":"2.0","method":"sum_all","id":1}'))["result"] == 0


def test_what_is_no_iterable_is_refused(client, uri):
    with pytest.raises(TypeError, match="_input is an iterable"):
        client.sum_all(_input=1)

    async def some() -> AsyncIterator[int]:
        yield 1

    with pytest.raises(TypeError, match="aconnect"):
        client.sum_all(_input=some())


def test_hints_that_cannot_be_served_are_refused(app):
    def two(a: Iterator[int], b: Iterator[int]) -> int:
        return 0

    async def blocks(values: Iterator[int]) -> int:
        return 0

    def waits(values: AsyncIterator[int]) -> int:
        return 0

    def unknown(values: Iterator[threading.Thread]) -> int:
        return 0

    for function, why in [(two, "one stream"), (blocks, "AsyncIterator"), (waits, "Iterator"), (unknown, "values")]:
        with pytest.raises(TypeError, match=why):
            app(function)
    with pytest.raises(TypeError, match="cached"):

        @app(cache=1)
        def cached(values: Iterator[int]) -> int:
            return 0


# ---- asyncio ----


def run(uri: str, program: Any, **options: Any) -> Any:
    async def main() -> Any:
        async with wirecall.aconnect(uri, **options) as c:
            return await asyncio.wait_for(program(c), WAIT_S)

    return asyncio.run(main())


async def numbers(count: int) -> AsyncIterator[int]:
    for i in range(count):
        if i % 7 == 0:
            await asyncio.sleep(0)
        yield i


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor", "protobuf"])
def test_an_asyncio_client_sends_iterators_of_both_kinds(uri, encoding):
    async def program(c: wirecall.AsyncClient) -> list[Any]:
        return await asyncio.gather(
            c.sum_all(_input=numbers(500)),
            c.sum_async(_input=range(500)),
            c.sum_all(_input=[]),
            c.join("-", _input=["a", "b"]),
        )

    assert run(uri, program, encoding=encoding) == [124_750, 124_750, 0, "a-b"]


@pytest.mark.parametrize("method", ["running_sum", "running_async"])
def test_an_asyncio_client_sends_what_depends_on_what_comes(uri, method):
    async def program(c: wirecall.AsyncClient) -> list[int]:
        came: asyncio.Queue[int] = asyncio.Queue()

        async def ping_pong() -> AsyncIterator[int]:
            yield 1
            while (last := await came.get()) < 100:
                yield last

        sums = []
        async for total in c[method].stream(_input=ping_pong()):
            sums.append(total)
            came.put_nowait(total)
        return sums

    assert run(uri, program) == [1, 2, 4, 8, 16, 32, 64, 128]


def test_an_answer_before_the_end_closes_an_asynchronous_generator(uri):
    closed = asyncio.Event()

    async def program(c: wirecall.AsyncClient) -> int:
        async def endless() -> AsyncIterator[int]:
            try:
                for i in itertools.count():
                    yield i
                    await asyncio.sleep(0)
            finally:
                closed.set()

        result = await c.first(_input=endless())
        await closed.wait()
        return result

    assert run(uri, program) == 0


@pytest.mark.parametrize("handler", ["drain", "drain_async"])
def test_a_cancelled_call_ends_both(uri, handlers, handler):
    async def program(c: wirecall.AsyncClient) -> None:
        closed = asyncio.Event()

        async def waits() -> AsyncIterator[int]:
            try:
                yield 1
                await asyncio.sleep(3600)
            finally:
                closed.set()

        reply = c[handler](_input=waits())
        await asyncio.to_thread(handlers.read.acquire, timeout=WAIT_S)
        reply.cancel()
        await closed.wait()
        assert await asyncio.to_thread(handlers.ended.acquire, timeout=WAIT_S)

    run(uri, program)
    assert isinstance(handlers.raised[0], wirecall.Cancelled | asyncio.CancelledError)


def test_what_an_asynchronous_source_raises_the_call_raises(uri):
    async def program(c: wirecall.AsyncClient) -> None:
        async def torn() -> AsyncIterator[int]:
            yield 1
            raise KeyError("torn")

        with pytest.raises(KeyError, match="torn"):
            await c.sum_all(_input=torn())
        with pytest.raises(KeyError, match="torn"):
            async for _ in c.running_sum.stream(_input=torn()):
                pass
        with pytest.raises(TypeError, match="_input is an iterable"):
            c.sum_all(_input=1)
        assert await c.sum_all(_input=[1, 2]) == 3

    run(uri, program)


# ---- through a broker ----


def test_an_asyncio_client_provides_a_handler(broker):
    async def main() -> None:
        async def sum_all(values: AsyncIterator[int]) -> int:
            return sum([value async for value in values])

        async def running_sum(values: AsyncIterator[int]) -> AsyncIterator[int]:
            total = 0
            async for value in values:
                total += value
                yield total

        def blocks(values: Iterator[int]) -> int:
            return sum(values)

        async with wirecall.aconnect(broker) as provider, wirecall.aconnect(broker) as caller:
            await provider.provide("sum_all", sum_all)
            await provider.provide("running_sum", running_sum)
            with pytest.raises(TypeError, match="hold up the loop"):
                await provider.provide("blocks", blocks)
            assert await caller.sum_all(_input=range(500)) == 124_750
            assert [total async for total in caller.running_sum.stream(_input=numbers(4))] == [0, 1, 3, 6]
            running, whole = (await caller["rpc.discover"]())["methods"]
            assert running["x-input"] == whole["x-input"] == {"schema": whole["result"]["schema"]}

    asyncio.run(asyncio.wait_for(main(), WAIT_S))
