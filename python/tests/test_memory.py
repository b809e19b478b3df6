"""Calls leave nothing behind: references are counted, and memory does not grow."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import enum
import gc
import json
import logging
import os
import re
import subprocess
import sys
import typing
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Optional, TypedDict

import numpy as np
import pydantic
import pytest

import wirecall
from wirecall import _native, _shapes


class Thing:
    """Counted by the collector."""


KEPT = {"list": [1, 2.5, "text", None, True], "key": "a text of the test"}


@pytest.fixture(autouse=True)
def no_log() -> Iterator[None]:
    """Whoever keeps records of a log keeps what is in them."""
    logger = logging.getLogger("wirecall")
    logger.disabled = True
    yield
    logger.disabled = False


@pytest.fixture
def client(app) -> Iterator[wirecall.Client]:
    @app
    def echo(value: Any) -> Any:
        return value

    @app
    def kept() -> Any:
        return KEPT

    @app
    def typed(numbers: list[int], names: dict[str, float], *rest: str, flag: bool = False) -> list[int]:
        return numbers

    @app
    def fails() -> None:
        raise ValueError("a text of the test")

    @app
    def refuses() -> None:
        raise wirecall.Error(7, "no", KEPT)

    @app
    async def later(value: Any, ctx: wirecall.Context) -> Any:
        return value

    @app(blocking=True)
    def off_loop(value: Any, ctx: wirecall.Context) -> Any:
        return value

    @app
    def count(n: int) -> Iterator[Any]:
        for _ in range(n):
            yield KEPT

    @app
    async def count_async(n: int) -> AsyncIterator[Any]:
        for _ in range(n):
            yield KEPT

    @app
    def array(x: np.ndarray) -> np.ndarray:
        return x

    with app.serving() as uri, wirecall.connect(uri) as c:
        yield c


def failing(call: Callable[[], Any]) -> Callable[[], None]:
    def act() -> None:
        with pytest.raises(wirecall.Error):
            call()

    return act


def batch(c: wirecall.Client) -> None:
    with c.batch() as b:
        outcomes = [b.echo(KEPT), b.fails(), b.nothing()]
    assert outcomes[0].result() == KEPT


WAYS: dict[str, Callable[[wirecall.Client], Any]] = {
    "echo": lambda c: c.echo(KEPT),
    "kept": lambda c: c.kept(),
    "typed": lambda c: c.typed([1, 2], {"a": 1.5}, "x", "y"),
    "named": lambda c: c.typed(numbers=[1], names={}, flag=True),
    "wrong": lambda c: failing(lambda: c.typed([1, "x"], {}))(),
    "unknown": lambda c: failing(lambda: c.nothing(KEPT))(),
    "fails": lambda c: failing(c.fails)(),
    "refuses": lambda c: failing(c.refuses)(),
    "later": lambda c: c.later(KEPT),
    "off_loop": lambda c: c.off_loop(KEPT),
    "streams": lambda c: (list(c.count.stream(3)), list(c.count_async.stream(3))),
    "half a stream": lambda c: next(c.count.stream(100)),
    "batch": batch,
    "array": lambda c: c.array(np.arange(3)),
    "notification": lambda c: c.notify("echo", KEPT),
}


def counted() -> list[int]:
    """References to what calls have to do with, and how many objects there are."""
    gc.collect()
    of = [KEPT, KEPT["list"], KEPT["key"], wirecall.Error, dict, list, str, int, Any]
    return [*(sys.getrefcount(one) for one in of), len(gc.get_objects())]


@pytest.mark.parametrize("way", WAYS)
def test_references_are_given_back(client, way):
    act = WAYS[way]
    for _ in range(50):
        act(client)
    client.echo(1)  # what was still on its way has ended
    before = counted()
    for _ in range(500):
        act(client)
    client.echo(1)
    after = counted()
    # A call that leaves one behind leaves 500; a few come and go with other threads.
    assert [there - here for here, there in zip(before, after, strict=True) if there - here > 100] == []


def test_references_of_the_asyncio_client(app):
    @app
    async def echo(value: Any) -> Any:
        return value

    async def main(uri: str) -> None:
        async with wirecall.aconnect(uri) as c:

            async def act() -> None:
                await asyncio.gather(*(c.echo(KEPT) for _ in range(20)))
                cancelled = c.echo(KEPT)
                cancelled.cancel()
                await asyncio.gather(cancelled, return_exceptions=True)
                async with c.batch() as b:
                    b.echo(KEPT)

            for _ in range(10):
                await act()
            before = counted()
            for _ in range(100):
                await act()
            after = counted()
            assert [there - here for here, there in zip(before, after, strict=True) if there - here > 100] == []

    with app.serving() as uri:
        asyncio.run(main(uri))


SERVER = """
import json, sys, wirecall
app = wirecall.Server()

@app
def echo(value: dict[str, list[int]]) -> dict[str, list[int]]:
    return value

@app(batch=64)
def batched(numbers: list[int], names: list[str]) -> list[str]:
    return [wirecall.Error(7, name) if number < 0 else name for number, name in zip(numbers, names)]

@app(batch=64, wait_ms="auto", max_concurrent_batches=2)
async def batched_async(numbers: list[int], names: list[str]) -> list[str]:
    return batched(numbers, names)

print(app.listen("tcp://127.0.0.1:0"), flush=True)
app.run(quiet=True)
"""


def made_types() -> list[type]:
    """As a function makes them that defines them within."""

    @dataclasses.dataclass
    class Plain:
        x: int = 1

    @dataclasses.dataclass
    class Node:
        next: Any = None

    Node.__annotations__["next"] = Optional[Node]  # noqa: UP045
    Node.__dataclass_fields__["next"].type = Optional[Node]  # noqa: UP045

    class Model(pydantic.BaseModel):
        x: int = 1

    class Level(enum.IntEnum):
        LOW = 1

    class Dict(TypedDict, total=False):
        x: int

    return [Plain, Node, Model, Level, Dict]


def test_types_end_with_who_has_made_them():
    kept: list[weakref.ref[type]] = []
    for _ in range(20):
        for kind in made_types():
            kept.append(weakref.ref(kind))
            shape = _shapes.shape_of(list[kind])  # type: ignore[valid-type]
            if not issubclass(kind, enum.Enum):
                value = _native.loads(_native.dumps([kind()]), shape)
                assert len(_native.dumps(value)) > 2
            _native.dumps(list(kind) if issubclass(kind, enum.Enum) else [])
            del kind, shape
    value = None
    gc.collect()
    # Python itself keeps what it has made of some of the last hints.
    for cleanup in typing._cleanups:  # type: ignore[attr-defined]
        cleanup()
    gc.collect()
    assert [reference() for reference in kept if reference() is not None] == []


def resident_kib(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1])


@contextlib.contextmanager
def server() -> Iterator[tuple[str, int]]:
    """A server as a process of its own: where it listens, and its id."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


def test_memory_does_not_grow():
    with server() as (uri, pid):

        async def calls(count: int) -> None:
            async with wirecall.aconnect(uri) as c:
                for _ in range(count // 500):
                    await asyncio.gather(*(c.echo({"a": [1, 2, 3]}) for _ in range(500)))

        asyncio.run(calls(20_000))
        before = resident_kib(pid)
        asyncio.run(calls(60_000))
        assert resident_kib(pid) - before < 1024, json.dumps({"before_kib": before})


@pytest.mark.parametrize("method", ["batched", "batched_async"])
def test_memory_does_not_grow_with_batched_calls(method):
    """WIRECALL_BATCHED_CALLS says how many, 25,000 unless said. Some fail, some are cancelled, and callers leave."""
    with server() as (uri, pid):

        async def calls(count: int) -> None:
            async with wirecall.aconnect(uri) as c:
                made = [c[method](number, "a text of the test") for number in range(-5, count - 5)]
                made[-1].cancel()
                outcomes = await asyncio.gather(*made, return_exceptions=True)
                assert outcomes[5:-1] == ["a text of the test"] * (count - 6)
                c[method](7, "nobody waits for this")

        for _ in range(20):
            asyncio.run(calls(500))
        before = resident_kib(pid)
        for _ in range(int(os.environ.get("WIRECALL_BATCHED_CALLS", "25000")) // 500):
            asyncio.run(calls(500))
        assert resident_kib(pid) - before < 1024, json.dumps({"before_kib": before})
