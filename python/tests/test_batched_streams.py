"""Generators that are called once for many calls, each of which has a stream of its own. Nothing here waits for a time:
batches leave when they are full, and what has to wait for something waits for a gate."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import pytest
from batched_streams import NEVER_MS, Gates, items_of, serve, together

import wirecall
from wirecall import Shared
from wirecall._batched_streams import provided_stream, stream_of_one
from wirecall._methods import LEAVE


def test_calls_of_different_connections_go_together_and_each_gets_its_own_items_in_order():
    app = wirecall.Server()
    batches: list[list[str]] = []

    @app(batch=3, wait_ms=NEVER_MS)
    async def spell(words: list[str]) -> AsyncIterator[list[str | None]]:
        batches.append(words)
        for i in range(max(map(len, words))):
            yield [word[i] if i < len(word) else None for word in words]

    async def main(uri: str) -> None:
        async with wirecall.aconnect(uri) as a, wirecall.aconnect(uri) as b, wirecall.aconnect(uri) as c:
            streams = zip([a, b, c], ["one", "three", ""], strict=True)
            assert await asyncio.gather(*(items_of(one, "spell", word) for one, word in streams)) == [
                list("one"), list("three"), [],
            ]  # fmt: skip

    with app.serving() as uri:
        asyncio.run(main(uri))
    assert sorted(batches[0]) == ["", "one", "three"]
    assert len(batches) == 1


def test_a_call_without_a_stream_is_answered_with_all_its_items():
    app = wirecall.Server()

    @app(batch=2, wait_ms=NEVER_MS)
    async def count(numbers: list[int]) -> AsyncIterator[list[int]]:
        yield numbers
        yield [number + 1 for number in numbers]

    async def main(c: wirecall.AsyncClient) -> None:
        assert await asyncio.gather(c.count(1), c.count(numbers=5)) == [[1, 2], [5, 6]]

    serve(app, main)


@pytest.mark.parametrize("behind", ["nothing", "middleware"])
def test_streams_that_wait_for_others_leave_when_their_server_stops(behind: str):
    app = wirecall.Server()
    if behind == "middleware":

        @app.middleware
        def passing(call: wirecall.MethodCall) -> Iterator[None]:
            yield

    @app
    async def there() -> None: ...

    @app(batch=3, wait_ms=NEVER_MS)
    async def count(numbers: list[int]) -> AsyncIterator[list[int]]:
        yield numbers
        yield [number + 1 for number in numbers]

    with app.serving() as uri, ThreadPoolExecutor() as threads:
        asked = threading.Event()

        async def ask() -> Any:
            async with wirecall.aconnect(uri) as c:
                calls = [asyncio.ensure_future(items_of(c, "count", number)) for number in (1, 5)]
                await asyncio.sleep(0)
                await c.there()
                asked.set()
                return await asyncio.gather(*calls)

        answers = threads.submit(asyncio.run, ask())
        asked.wait()
        app.stop()
        assert answers.result() == [[1, 2], [5, 6]]


def test_a_client_whose_broker_stops_goes_on_to_gather_calls():
    batches: list[list[int]] = []

    async def echo(numbers: list[int]) -> AsyncIterator[list[int]]:
        batches.append(numbers)
        yield numbers

    one: Any = provided_stream(echo, "echo", {"batch": 2, "wait_ms": NEVER_MS})

    async def items(number: int) -> list[int]:
        return [item async for item in one(number)]

    async def main() -> None:
        waits = asyncio.ensure_future(items(1))
        await asyncio.sleep(0)
        getattr(one, LEAVE)()
        assert await waits == [1]
        assert await asyncio.gather(items(2), items(3)) == [[2], [3]]

    asyncio.run(main())
    assert batches == [[1], [2, 3]]


def test_a_server_that_runs_again_begins_without_the_calls_of_before():
    app = wirecall.Server()
    batches: list[list[int]] = []

    @app
    async def there() -> None: ...

    @app(batch=2, wait_ms=NEVER_MS)
    async def echo(numbers: list[int]) -> AsyncIterator[list[int]]:
        batches.append(numbers)
        yield numbers

    async def leave_one(c: wirecall.AsyncClient) -> None:
        left = asyncio.create_task(items_of(c, "echo", 0))
        await asyncio.sleep(0)  # in which it is sent
        await c.there()  # and with this it waits for a second one
        left.cancel()

    async def main(c: wirecall.AsyncClient) -> None:
        assert await together(c, "echo", 1, 2) == [[1], [2]]

    serve(app, leave_one)
    serve(app, main)
    assert batches == [[1, 2]]


def test_what_comes_while_the_generator_is_at_work_goes_together_without_a_wait():
    app = wirecall.Server()
    gates = Gates(app)
    batches: list[list[int]] = []

    @app(batch=8)
    async def echo(numbers: list[int]) -> AsyncIterator[list[int]]:
        batches.append(numbers)
        if numbers == [0]:
            gates.open("begun")
            await gates.passed("go on")
        yield numbers

    async def main(c: wirecall.AsyncClient) -> None:
        first = asyncio.create_task(items_of(c, "echo", 0))
        await c.passed("begun")
        others = asyncio.gather(*(items_of(c, "echo", number) for number in [1, 2, 3]))
        await asyncio.sleep(0)  # in which they are sent
        await c.open("go on")
        assert await first == [0]
        assert await others == [[1], [2], [3]]

    serve(app, main)
    assert batches == [[0], [1, 2, 3]]


def test_who_leaves_does_not_hold_up_the_others():
    app = wirecall.Server()
    gates = Gates(app)
    sizes: list[int] = []

    @app(batch=3, wait_ms=NEVER_MS)
    async def count(numbers: list[int]) -> AsyncIterator[list[int]]:
        yield numbers
        await gates.passed("go on")
        for i in range(1000):  # more than wait for a caller that does not read
            sizes.append(len(numbers))
            yield [number + i for number in numbers]

    async def main(c: wirecall.AsyncClient) -> None:
        async def leave() -> None:
            stream = c.count.stream(-1)
            assert await anext(stream) == -1
            await stream.aclose()
            await c.open("go on")

        _, one, two = await asyncio.gather(leave(), items_of(c, "count", 1), items_of(c, "count", 2))
        assert one == [1, *range(1, 1001)]
        assert two == [2, *range(2, 1002)]

    serve(app, main)
    assert sizes == [3] * 1000, "its place stays until the batch ends"


@pytest.mark.parametrize("where", ["at its yield", "where it awaits", "although it never awaits", "against its will"])
def test_the_generator_is_closed_when_all_its_callers_have_left(where: str):
    app = wirecall.Server()
    gates = Gates(app)

    @app(batch=2, wait_ms=NEVER_MS)
    async def endless(numbers: list[int]) -> AsyncIterator[list[int | None]]:
        try:
            yield list(numbers)
            while True:
                if where == "where it awaits":
                    await asyncio.Event().wait()
                if where == "against its will":
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.Event().wait()
                yield [number if where == "at its yield" else None for number in numbers]
        finally:
            gates.open("closed")

    async def main(c: wirecall.AsyncClient) -> None:
        async def leave(number: int) -> None:
            stream = c.endless.stream(number)
            assert await anext(stream) == number
            await stream.aclose()

        await asyncio.gather(leave(1), leave(2))
        await c.passed("closed")

    serve(app, main)


def test_who_leaves_while_it_waits_is_in_no_batch():
    app = wirecall.Server()
    batches: list[list[int]] = []

    @app
    async def there() -> None: ...

    @app(batch=2, wait_ms=NEVER_MS)
    async def echo(numbers: list[int]) -> AsyncIterator[list[int]]:
        batches.append(numbers)
        yield numbers

    async def main(c: wirecall.AsyncClient) -> None:
        gone = asyncio.create_task(items_of(c, "echo", 0))
        await asyncio.sleep(0)  # in which it is sent
        await c.there()  # and with this it waits for a second one
        gone.cancel()
        await asyncio.wait([gone])
        del gone  # and its traceback, which has the stream
        await c.there()
        assert await together(c, "echo", 1, 2) == [[1], [2]]

    serve(app, main)
    assert batches == [[1, 2]]


def test_a_batch_whose_callers_leave_before_it_begins_makes_room_for_the_next():
    async def echo(numbers: list[int]) -> AsyncIterator[list[int]]:
        yield numbers

    async def main() -> None:
        one = stream_of_one(echo, "echo", {"batch": 2})
        gone = asyncio.create_task(anext(one(1)))
        await asyncio.sleep(0)  # in which it begins to wait
        await asyncio.sleep(0)  # after which its batch is due
        gone.cancel()
        await asyncio.wait([gone])
        async with asyncio.timeout(10):
            assert await anext(one(2)) == 2

    asyncio.run(main())


# What waits between the generator and a caller: at the server, on the way, at the client.
STEPS_AHEAD = 256


def test_the_generator_is_as_slow_as_its_slowest_reader():
    app = wirecall.Server()
    steps = [0]

    @app(batch=2, wait_ms=NEVER_MS)
    async def count(numbers: list[int]) -> AsyncIterator[list[int]]:
        for step in range(8 * STEPS_AHEAD):
            steps[0] = step
            yield [step for _ in numbers]

    async def main(c: wirecall.AsyncClient) -> None:
        slow = c.count.stream(1)
        fast = c.count.stream(2)
        await asyncio.gather(anext(slow), anext(fast))

        async def drain() -> int:
            return len([item async for item in fast])

        quick = asyncio.create_task(drain())
        async for item in slow:
            assert steps[0] - item <= STEPS_AHEAD
        assert await quick == 8 * STEPS_AHEAD - 1

    serve(app, main)


def test_a_plain_generator_steps_on_threads_while_the_loop_goes_on():
    app = wirecall.Server()
    go_on = threading.Event()
    threads: set[int] = set()
    loop_threads: set[int] = set()

    @app
    async def release() -> None:
        loop_threads.add(threading.get_ident())
        go_on.set()

    @app(batch=2, wait_ms=NEVER_MS, stream=True)
    def count(numbers: list[int]) -> Iterator[list[int | None]]:
        threads.add(threading.get_ident())
        yield list(numbers)
        go_on.wait()
        yield [number + 1 if number > 0 else None for number in numbers]

    async def main(c: wirecall.AsyncClient) -> None:
        one = c.count.stream(1)
        two = asyncio.create_task(items_of(c, "count", -1))
        assert await anext(one) == 1
        await c.release()
        assert [item async for item in one] == [2]
        assert await two == [-1]

    serve(app, main)
    assert not threads & loop_threads


def test_a_plain_generator_is_closed_after_its_step_when_its_callers_have_left():
    app = wirecall.Server()
    gates = {name: threading.Event() for name in ["begun", "go on", "closed"]}

    @app(blocking=True)
    def passed(name: str) -> None:
        gates[name].wait()

    @app
    def go_on() -> None:
        gates["go on"].set()

    @app(batch=1, stream=True)
    def count(numbers: list[int]) -> Iterator[list[int]]:
        try:
            yield numbers
            gates["begun"].set()
            gates["go on"].wait()
            yield numbers
        except GeneratorExit:
            gates["closed"].set()
            raise

    async def main(c: wirecall.AsyncClient) -> None:
        stream = c.count.stream(1)
        assert await anext(stream) == 1
        await c.passed("begun")
        await stream.aclose()
        await c.go_on()
        await c.passed("closed")

    serve(app, main)


def test_middleware_is_around_each_stream():
    app = wirecall.Server()
    seen: list[Any] = []

    @app.middleware
    def watch(call: wirecall.MethodCall) -> Iterator[None]:
        yield
        seen.append((call.method, call.params))

    @app(batch=2, wait_ms=NEVER_MS)
    async def echo(numbers: list[int]) -> AsyncIterator[list[int]]:
        yield numbers

    async def main(c: wirecall.AsyncClient) -> None:
        assert await together(c, "echo", 1, 2) == [[1], [2]]

    serve(app, main)
    assert sorted(call["numbers"] for _, call in seen) == [1, 2]


def test_a_mounted_server_has_them():
    inner = wirecall.Server()

    @inner(batch=2, wait_ms=NEVER_MS)
    async def echo(numbers: list[int]) -> AsyncIterator[list[int]]:
        yield numbers

    app = wirecall.Server()
    app.mount("inner", inner)

    async def main(c: wirecall.AsyncClient) -> None:
        assert await together(c, "inner.echo", 1, 2) == [[1], [2]]

    serve(app, main)


def test_clients_in_asyncio_provide_them_at_a_broker():
    batches: list[list[int]] = []

    async def echo(numbers: list[int]) -> AsyncIterator[list[int]]:
        batches.append(numbers)
        yield numbers
        yield numbers

    async def main(uri: str) -> None:
        async with wirecall.aconnect(uri) as worker, wirecall.aconnect(uri) as caller:
            await worker.provide("echo", echo, batch=3, wait_ms=NEVER_MS)
            assert await together(caller, "echo", 1, 2, 3) == [[1, 1], [2, 2], [3, 3]]

    with wirecall.Server(broker=True).serving() as uri:
        asyncio.run(main(uri))
        with wirecall.connect(uri) as blocking, pytest.raises(TypeError, match="aconnect"):
            blocking.provide("echo", echo, batch=3)
    assert batches == [[1, 2, 3]]


def test_the_document_shows_the_stream_of_one_call():
    app = wirecall.Server()

    @app(batch=2)
    async def spell(
        words: Annotated[list[str], "what"], language: Shared[str] = "de"
    ) -> AsyncIterator[list[str | Exception | None]]:
        """Spells a word"""
        yield list(words)

    with app.serving() as uri, wirecall.connect(uri) as c:
        (method,) = [one for one in c.rpc.discover()["methods"] if one["name"] == "spell"]
    assert [(one["name"], one["schema"]["type"]) for one in method["params"]] == [
        ("words", "string"),
        ("language", "string"),
    ]
    assert method["result"]["schema"] == {"type": "array", "items": {"type": "string"}}
    assert method["summary"] == "Spells a word"


async def _steps(texts: list[str]) -> AsyncIterator[list[str]]:
    yield texts


async def _items(texts: list[str]) -> AsyncIterator[str]:
    yield texts[0]


async def _nothing(texts: list[str]) -> AsyncIterator[list[None]]:
    yield [None]


async def _list(texts: list[str]) -> list[str]:  # type: ignore[misc]
    yield texts


def _results(texts: list[str]) -> Iterator[str]:
    yield from texts


def _returns(texts: list[str]) -> list[str]:
    return texts


def test_what_says_nothing_of_streams_is_refused():
    app = wirecall.Server()
    for function, options, words in [
        (_items, {}, "returns list"),
        (_nothing, {}, "an item for each call"),
        (_list, {}, r"AsyncIterator\[list"),
        (_steps, {"wait_ms": "auto"}, "give a number"),
        (_steps, {"batch_bytes": 1000}, "give pad=True"),
        (_steps, {"batch_rows": 8}, "batch_rows is for functions that return results"),
        (_steps, {"batch_priority": len}, "batch_priority is for functions"),
        (_steps, {"batch_queue_bytes": 1 << 30}, "batch_queue_bytes is for functions"),
        (_steps, {"stream": False}, "leave stream=False away"),
        (_steps, {"stream": 1}, "give True or False"),
        (_returns, {"stream": True}, "does not yield"),
        (_results, {"stream": True}, "returns list"),
        (_steps, {"cache": 10}, "neither cached"),
    ]:
        with pytest.raises(TypeError, match=words):
            app.add(function, name="x", batch=2, **options)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="give batch as well"):
        app.add(_steps, name="x", stream=True)
    with pytest.raises(ValueError, match="give a number"):
        app.add(_steps, name="x", batch=0)
