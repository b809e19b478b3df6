"""Functions whose results are kept."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest

import wirecall


def test_a_function_runs_once_for_equal_arguments(app: wirecall.Server) -> None:
    calls: list[Any] = []

    @app(cache=100)
    def add(a: int, b: int = 5) -> int:
        calls.append((a, b))
        return a + b

    @app(cache={"entries": 10, "bytes": 10_000, "ttl": 60})
    def size(value: Any) -> int:
        calls.append(value)
        return len(value)

    with app.serving() as uri, wirecall.connect(uri) as client:
        assert [client.add(1, 2), client.add(b=2, a=1), client.add(1, 2)] == [3, 3, 3]
        assert client.add(2, 2) == 4
        assert calls == [(1, 2), (2, 2)]
        calls.clear()
        assert [client.size({"x": 1, "y": [2]}), client.size({"y": [2], "x": 1})] == [2, 2]
        assert calls == [{"x": 1, "y": [2]}]


def test_a_function_that_can_tell_a_float_from_an_int_is_called_for_both(app: wirecall.Server) -> None:
    @app(cache=10)
    def half(x: Any) -> Any:
        return x // 2 if isinstance(x, int) else x / 2

    calls: list[int] = []

    @app(cache=10)
    def integer(x: int) -> int:
        calls.append(x)
        return x

    with app.serving() as uri, wirecall.connect(uri) as client:
        assert [client.half(3.0), client.half(3)] == [1.5, 1]
        assert [client.integer(3.0), client.integer(3)] == [3, 3]
    assert calls == [3]


def test_what_stands_for_bytes_in_json_is_no_argument_of_binary_callers(app: wirecall.Server) -> None:
    @app(cache=10)
    def kind(x: Any) -> str:
        return type(x).__name__

    @app(cache=10)
    def names(x: dict[str, Any]) -> list[str]:
        return sorted(x)

    with app.serving() as uri, wirecall.connect(uri) as json, wirecall.connect(uri, encoding="cbor") as cbor:
        for client, other in (json, cbor), (cbor, json):
            assert client.kind({"$bytes": "QUI="}) == "dict"
            assert other.kind(b"AB") == "bytes"
            assert client.kind([{"$npy": "QUI="}]) == "list"
            assert other.kind({"$bytes": "QUI="}) == "dict"
            assert client.kind(b"AB") == "bytes"
            assert client.names({"$": {"a": 1}}) == ["$"]
            assert other.names({"a": 1}) == ["a"]
            assert client.names({"a": 1}) == ["a"]


def test_errors_are_not_kept(app: wirecall.Server) -> None:
    calls = []

    @app(cache=100)
    def fail(n: int) -> int:
        calls.append(n)
        raise wirecall.Error(7, "no")

    with app.serving() as uri, wirecall.connect(uri) as client:
        for _ in range(2):
            with pytest.raises(wirecall.Error):
                client.fail(1)
    assert calls == [1, 1]


def test_equal_calls_in_progress_are_one(app: wirecall.Server) -> None:
    calls = []
    go_on = threading.Event()

    @app(cache=100)
    async def slow(n: int) -> int:
        calls.append(n)
        while not go_on.is_set():
            await asyncio.sleep(0.001)
        return n

    @app(cache=100, blocking=True)
    def blocks(n: int) -> int:
        calls.append(-n)
        return n

    with app.serving() as uri:

        async def ask() -> list[Any]:
            async with wirecall.aconnect(uri) as client, wirecall.aconnect(uri) as other:
                answers = [asyncio.ensure_future(one.slow(5)) for one in (client, other, client)]
                while not calls:
                    await asyncio.sleep(0.001)
                await other.blocks(1)  # behind its call of slow
                await client.blocks(1)
                go_on.set()
                return [await answer for answer in answers]

        assert asyncio.run(ask()) == [5, 5, 5]
    assert calls == [5, -1]


def test_what_cannot_be_cached_is_refused(app: wirecall.Server) -> None:
    with pytest.raises(TypeError, match="cannot take a Context"):

        @app(cache=100)
        def one(context: wirecall.Context, n: int) -> int:
            return n

    with pytest.raises(TypeError, match="generator"):

        @app(cache=100)
        async def many(n: int) -> Any:
            yield n


@pytest.mark.parametrize(
    ("cache", "error", "text"),
    [
        ({"entries": 5, "kb": 1}, TypeError, "@app(cache={'kb': 1}): cache has entries, bytes and ttl, and no kb"),
        (True, TypeError, "@app(cache=True): give a number of entries, or a dict"),
        ("10", TypeError, "@app(cache='10'): give a number"),
        ({"entries": 5, "ttl": "1"}, TypeError, "@app(cache={'ttl': '1'}): give a number"),
        ({"ttl": 60}, TypeError, "@app(cache={'ttl': 60}): say how many results are kept: entries"),
        (0, ValueError, "@app(cache=0): give 1 or more for entries"),
        (float("nan"), ValueError, "@app(cache=nan): give 1 or more for entries"),
        ({"entries": 5, "bytes": 0}, ValueError, "@app(cache={'bytes': 0}): give 1 or more for bytes"),
        ({"entries": 5, "ttl": 0}, ValueError, "@app(cache={'ttl': 0}): give 0.001 seconds or more for ttl"),
        ({"entries": 5, "ttl": float("inf")}, ValueError, "@app(cache={'ttl': inf}): give 0.001"),
    ],
)
def test_a_refused_cache_names_the_option_and_the_method(
    app: wirecall.Server, cache: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(f"wirecall: calc.fib: {text}")):
        app(cache=cache, name="calc.fib")(lambda: 1)
