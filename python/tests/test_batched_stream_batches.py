"""Which calls of streams go together, with what parameters, and how many wait."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from batched_streams import NEVER_MS, Gates, items_of, serve, together

import wirecall
from wirecall import Shared


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
