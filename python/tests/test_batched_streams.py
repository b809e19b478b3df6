"""Generators that are called once for many calls, each of which has a stream of its own. Nothing here waits for a time:
batches leave when they are full, and what has to wait for something waits for a gate."""

import asyncio
import contextlib
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import pytest

import wirecall
from wirecall import Shared
from wirecall._batched_streams import provided_stream, stream_of_one
from wirecall._methods import LEAVE

NEVER_MS = 60_000


async def items_of(c: wirecall.AsyncClient, method: str, *args: Any, **options: Any) -> Any:
    """The items of a stream, or the items and the error by which it ended."""
    items: list[Any] = []
    try:
        async for item in c[method].stream(*args, **options):
            items.append(item)
    except wirecall.Error as error:
        return items, error
    return items


async def together(c: wirecall.AsyncClient, method: str, *calls: Any) -> list[Any]:
    """Streams of one method at once. Several arguments stand in a tuple."""
    return await asyncio.gather(
        *(items_of(c, method, *(call if isinstance(call, tuple) else (call,))) for call in calls)
    )


def serve(app: wirecall.Server, main: Callable[[wirecall.AsyncClient], Awaitable[None]]) -> None:
    async def with_client(uri: str) -> None:
        async with wirecall.aconnect(uri) as c:
            await main(c)

    with app.serving() as uri:
        asyncio.run(with_client(uri))


class Gates:
    """Gates in the event loop of a server, which its methods `open` and `passed` open and wait for."""

    def __init__(self, app: wirecall.Server) -> None:
        self._gates: dict[str, asyncio.Event] = {}
        app.add(self._open, name="open")
        app.add(self.passed, name="passed")

    def open(self, name: str) -> None:
        self._gates.setdefault(name, asyncio.Event()).set()

    async def _open(self, name: str) -> None:
        self.open(name)

    async def passed(self, name: str) -> None:
        await self._gates.setdefault(name, asyncio.Event()).wait()


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


def test_a_deadline_ends_one_stream():
    app = wirecall.Server()
    gates = Gates(app)
    batches: list[list[int]] = []

    @app(batch=2, wait_ms=NEVER_MS)
    async def count(numbers: list[int]) -> AsyncIterator[list[int]]:
        batches.append(numbers)
        yield numbers
        await gates.passed("go on")
        yield numbers

    async def main(c: wirecall.AsyncClient) -> None:
        async def late() -> None:
            while not batches:  # it may pass before the batch begins
                _, error = await items_of(c, "count", 1, _timeout=0.05)
                assert isinstance(error, wirecall.Timeout)
            await c.open("go on")

        _, in_time = await asyncio.gather(late(), items_of(c, "count", 2))
        assert in_time == [2, 2]

    serve(app, main)
    assert sorted(batches[0]) == [1, 2]


def test_an_exception_in_its_place_ends_one_stream_by_an_error_or_as_its_end():
    app = wirecall.Server()

    @app(batch=3, wait_ms=NEVER_MS)
    async def divide(numbers: list[int]) -> AsyncIterator[list[int | Exception | None]]:
        yield [12 for _ in numbers]
        yield [wirecall.Error(7, "zero") if number == 0 else 12 // number for number in numbers]
        yield [StopIteration() if number == 1 else 0 for number in numbers]
        yield [1 for _ in numbers]

    async def main(c: wirecall.AsyncClient) -> None:
        zero, one, two = await together(c, "divide", 0, 1, 2)
        assert (zero[0], zero[1].code, zero[1].message) == ([12], 7, "zero")
        assert one == [12, 12]
        assert two == [12, 6, 0, 1]

    serve(app, main)


def test_an_error_that_is_given_again_and_again_keeps_nothing_of_the_calls():
    app = wirecall.Server()
    gone = wirecall.Error(7, "gone")

    @app(batch=2)
    async def read(numbers: list[int]) -> AsyncIterator[list[int | Exception]]:
        yield [number if number else gone for number in numbers]
        yield [gone for _ in numbers]

    def depth() -> int:
        return sum(1 for _ in traceback.walk_tb(gone.__traceback__))

    async def main(c: wirecall.AsyncClient) -> None:
        await together(c, "read", 0, 1)
        first = depth()
        for _ in range(3):
            await together(c, "read", 0, 1)
        assert depth() == first

    serve(app, main)


def test_the_generator_is_closed_when_the_last_stream_has_ended():
    app = wirecall.Server()
    gates = Gates(app)

    @app(batch=2, wait_ms=NEVER_MS)
    async def endless(numbers: list[int]) -> AsyncIterator[list[int | Exception]]:
        try:
            yield [StopIteration(), 1]
            yield [2, wirecall.Error(7, "no more")]
            await asyncio.Event().wait()
        finally:
            gates.open("closed")

    async def main(c: wirecall.AsyncClient) -> None:
        ended, (items, error) = sorted(await together(c, "endless", 1, 2), key=len)
        assert (ended, items, error.code) == ([], [1], 7)
        await c.passed("closed")

    serve(app, main)


def test_what_is_raised_ends_all_streams_and_is_logged_once(caplog: pytest.LogCaptureFixture):
    app = wirecall.Server()

    @app(batch=3, wait_ms=NEVER_MS)
    async def fail(codes: list[int]) -> AsyncIterator[list[int | Exception]]:
        yield codes  # type: ignore[misc]
        yield [StopIteration() if code == 0 else code for code in codes]
        if max(codes) == 9:
            raise wirecall.Error(9, "nine")
        raise ValueError("secret")

    async def main(c: wirecall.AsyncClient) -> None:
        ended, (one, first), (nine, second) = await together(c, "fail", 0, 1, 9)
        assert (ended, one, nine) == ([0], [1, 1], [9, 9])
        assert [(error.code, error.message) for error in (first, second)] == [(9, "nine")] * 2
        ended, (one, first), (two, second) = await together(c, "fail", 0, 1, 2)
        assert (ended, one, two) == ([0], [1, 1], [2, 2])
        assert [error.code for error in (first, second)] == [-32603, -32603]

    serve(app, main)
    assert len([record for record in caplog.records if "secret" in record.getMessage()]) == 1


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ([1], "a batch of 2 calls has 1 results"),
        ([1, 2, 3], "a batch of 2 calls has more results"),
        ("ab", "returns a list"),
        (None, "returns a list"),
    ],
)
def test_a_step_has_an_item_for_each_call(step: Any, words: str, caplog: pytest.LogCaptureFixture):
    app = wirecall.Server()

    @app(batch=2, wait_ms=NEVER_MS)
    async def wrong(numbers: list[int]) -> Any:
        yield numbers
        yield step

    async def main(c: wirecall.AsyncClient) -> None:
        (one, first), (two, second) = await together(c, "wrong", 1, 2)
        assert (one, two, first.code, second.code) == ([1], [2], -32603, -32603)

    serve(app, main)
    assert words in caplog.text


def test_an_item_of_another_type_ends_the_stream_it_is_for():
    app = wirecall.Server()

    @app(batch=2, wait_ms=NEVER_MS)
    async def double(numbers: list[int]) -> AsyncIterator[list[int]]:
        for _ in range(2):
            yield ["x" if number == 0 else number for number in numbers]  # type: ignore[misc]

    async def main(c: wirecall.AsyncClient) -> None:
        (items, error), one = await together(c, "double", 0, 1)
        assert (items, error.code, one) == ([], -32603, [1, 1])

    serve(app, main)


def test_a_wrong_call_is_in_no_batch():
    app = wirecall.Server()

    @app(batch=2, wait_ms=NEVER_MS)
    async def echo(numbers: list[int]) -> AsyncIterator[list[int]]:
        yield numbers

    async def main(c: wirecall.AsyncClient) -> None:
        one, (items, error), two = await together(c, "echo", 1, "x", 2)
        assert (one, items, two) == ([1], [], [2])
        assert isinstance(error, wirecall.InvalidParams)
        assert error.data["loc"] == ["numbers"]

    serve(app, main)


def test_only_equal_shared_parameters_go_together_and_what_fails_one_batch_fails_no_other():
    app = wirecall.Server()
    batches: list[tuple[list[str], str]] = []

    @app(batch=4, wait_ms=NEVER_MS)
    async def translate(texts: list[str], *, language: Shared[str] = "de") -> AsyncIterator[list[str]]:
        batches.append((texts, language))
        if language == "xx":
            raise wirecall.Error(9, "no such language")
        yield [f"{language}:{text}" for text in texts]

    async def main(c: wirecall.AsyncClient) -> None:
        a, (_, error), third, fourth = await asyncio.gather(
            items_of(c, "translate", texts="a"),
            items_of(c, "translate", texts="b", language="xx"),
            items_of(c, "translate", texts="c", language="de"),
            items_of(c, "translate", texts="d", language="en"),
        )
        assert (a, error.code, third, fourth) == (["de:a"], 9, ["de:c"], ["en:d"])

    serve(app, main)
    assert batches == [(["a", "c"], "de"), (["b"], "xx"), (["d"], "en")]


def test_arrays_are_stacked_and_padded():
    numpy = pytest.importorskip("numpy")
    from numpy.typing import NDArray

    app = wirecall.Server()

    async def sums(rows: Any, lengths: Any) -> Any:
        yield rows.sum(axis=1)
        yield lengths

    array = NDArray[numpy.int64]
    sums.__annotations__ = {"rows": array, "lengths": array, "return": AsyncIterator[array]}  # type: ignore[valid-type]
    app.add(sums, batch=3, wait_ms=NEVER_MS, pad=True, buckets=[4])

    async def main(uri: str) -> None:
        async with wirecall.aconnect(uri, encoding="msgpack") as c:
            two, three, five = await together(c, "sums", *(numpy.ones(length, numpy.int64) for length in [2, 3, 5]))
            assert (two, three) == ([2, 2], [3, 3])
            assert isinstance(five[1], wirecall.InvalidParams)

    with app.serving() as uri:
        asyncio.run(main(uri))


def test_each_call_has_its_own_context():
    app = wirecall.Server()

    @app(batch=2, wait_ms=NEVER_MS)
    async def left(contexts: list[wirecall.Context], least: list[float]) -> AsyncIterator[list[bool]]:
        yield [
            context.remaining is not None and context.remaining > seconds
            for context, seconds in zip(contexts, least, strict=True)
        ]

    async def main(c: wirecall.AsyncClient) -> None:
        assert await asyncio.gather(
            items_of(c, "left", 1000.0, _timeout=2000), items_of(c, "left", 1000.0, _timeout=500)
        ) == [[True], [False]]  # fmt: skip

    serve(app, main)


def test_contexts_lead_back_to_their_own_callers():
    app = wirecall.Server()

    @app(batch=2, wait_ms=NEVER_MS)
    async def ask(contexts: list[wirecall.Context], numbers: list[int]) -> AsyncIterator[list[int]]:
        yield await asyncio.gather(*(one.call("times", by) for one, by in zip(contexts, numbers, strict=True)))

    async def main(uri: str) -> None:
        async with wirecall.aconnect(uri) as a, wirecall.aconnect(uri) as b:
            a.offer("times", lambda number: 10 * number)
            b.offer("times", lambda number: 100 * number)
            assert await asyncio.gather(items_of(a, "ask", 1), items_of(b, "ask", 2)) == [[10], [200]]

    with app.serving() as uri:
        asyncio.run(main(uri))


def test_more_calls_than_may_wait_are_refused():
    app = wirecall.Server()
    gates = Gates(app)

    @app(batch=1, batch_queue=2)
    async def echo(numbers: list[int]) -> AsyncIterator[list[int]]:
        if numbers == [0]:
            gates.open("begun")
            await gates.passed("go on")
        yield numbers

    async def main(c: wirecall.AsyncClient) -> None:
        first = asyncio.create_task(items_of(c, "echo", 0))
        await c.passed("begun")
        waiting = [asyncio.create_task(items_of(c, "echo", number)) for number in [1, 2]]
        await asyncio.sleep(0)  # in which they are sent
        items, error = await items_of(c, "echo", 3)
        assert items == []
        assert isinstance(error, wirecall.LimitExceeded)
        assert error.data["limit"] == "queue"
        assert error.data["retry_after_ms"] >= 1
        await c.open("go on")
        assert [await one for one in (first, *waiting)] == [[0], [1], [2]]

    serve(app, main)


def test_no_more_batches_run_at_once_than_may():
    app = wirecall.Server()
    gates = Gates(app)
    running = [0]
    most = [0]

    @app(batch=1, max_concurrent_batches=2)
    async def echo(numbers: list[int]) -> AsyncIterator[list[int]]:
        running[0] += 1
        most[0] = max(most[0], running[0])
        gates.open("two" if running[0] == 2 else "one")
        await gates.passed("go on")
        yield numbers
        running[0] -= 1

    async def main(c: wirecall.AsyncClient) -> None:
        streams = [asyncio.create_task(items_of(c, "echo", number)) for number in range(5)]
        await c.passed("two")
        await c.open("go on")
        assert [await one for one in streams] == [[number] for number in range(5)]

    serve(app, main)
    assert most == [2]


def test_groups_of_a_batch_take_turns():
    app = wirecall.Server()
    running: set[str] = set()

    @app(batch=3, wait_ms=NEVER_MS)
    async def alone(numbers: list[int], kind: Shared[str]) -> AsyncIterator[list[int]]:
        running.add(kind)
        await asyncio.sleep(0)
        yield [len(running) for _ in numbers]
        running.remove(kind)

    async def main(c: wirecall.AsyncClient) -> None:
        assert await together(c, "alone", (1, "a"), (2, "b"), (3, "c")) == [[1], [1], [1]]

    serve(app, main)


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
