"""How streams of a batch end: by a deadline, an error in their place, an exception, an item of another type."""

import asyncio
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest
from batched_streams import NEVER_MS, Gates, items_of, serve, together

import wirecall


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
