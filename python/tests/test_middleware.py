"""Middleware: generators that run around each call of a method."""

import asyncio
import dataclasses
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest

import wirecall
from wirecall import Depends

events: list[Any] = []


@pytest.fixture(autouse=True)
def _no_events():
    events.clear()


def noting(call: wirecall.MethodCall) -> Iterator[None]:
    events.append(("begin", call.method, call.params))
    try:
        yield
    except wirecall.Error as error:
        events.append(("error", error.code))
        raise
    events.append(("end", call.result))


def served(middleware: Any = noting) -> wirecall.Server:
    app = wirecall.Server()
    app.middleware(middleware)

    @app
    def add(a: int, b: int = 1) -> int:
        return a + b

    @app
    async def later(a: int, ctx: wirecall.Context) -> str:
        await asyncio.sleep(0)
        if a < 0:
            raise wirecall.Error(5, "negative")
        return f"{ctx.method} {a}"

    @app(blocking=True)
    def waits(*values: int, **more: int) -> int:
        return sum(values) + sum(more.values())

    @app
    def rows(count: int) -> Iterator[int]:
        yield from range(count)

    @app
    async def later_rows(count: int) -> AsyncIterator[int]:
        for i in range(count):
            yield i

    @app
    def fails() -> Iterator[int]:
        yield 1
        raise wirecall.Error(5, "no more")

    return app


def test_it_sees_each_kind_of_method_and_what_comes_of_it():
    with served().serving() as uri, wirecall.connect(uri) as c:
        assert (c.add(2), c.add(a=2, b=5)) == (3, 7)
        assert c.later(4) == "later 4"
        assert (c.waits(1, 2), c.waits(x=3)) == (3, 3)
        with pytest.raises(wirecall.Error, match="negative"):
            c.later(-1)
        assert list(c.rows.stream(2)) == list(c.later_rows.stream(2)) == [0, 1]
        with pytest.raises(wirecall.InvalidParams):
            c.add("x")
    assert events == [
        ("begin", "add", {"a": 2, "b": 1}), ("end", 3),
        ("begin", "add", {"a": 2, "b": 5}), ("end", 7),
        ("begin", "later", {"a": 4}), ("end", "later 4"),
        ("begin", "waits", {"values": (1, 2)}), ("end", 3),
        ("begin", "waits", {"values": (), "x": 3}), ("end", 3),
        ("begin", "later", {"a": -1}), ("error", 5),
        ("begin", "rows", {"count": 2}), ("end", None),
        ("begin", "later_rows", {"count": 2}), ("end", None),
    ]  # fmt: skip


def test_it_may_answer_refuse_and_replace():
    def decides(call: wirecall.MethodCall) -> Iterator[None]:
        kind = call.params.get("a")
        if kind == 1:
            call.result = 100
            return
        if kind == 2:
            raise wirecall.Forbidden("no")
        try:
            yield
        except wirecall.Error:
            call.result = "forgiven"
        if kind == 3:
            call.result *= 2

    with served(decides).serving() as uri, wirecall.connect(uri) as c:
        assert c.add(1) == 100
        with pytest.raises(wirecall.Forbidden):
            c.add(2)
        assert (c.add(3), c.add(4)) == (8, 5)
        assert c.later(-1) == "forgiven"


def test_classes_and_iterators_are_methods_within_it():
    app = wirecall.Server()
    app.middleware(noting)

    @dataclasses.dataclass
    class Point:
        x: int

    class Items:
        def __init__(self, count: int) -> None:
            self.left = count

        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> int:
            if self.left == 0:
                raise StopAsyncIteration
            self.left -= 1
            return self.left

    async def items(count: int) -> AsyncIterator[int]:
        yield count

    @functools.wraps(items)
    def iterator(count: int) -> Any:
        return Items(count)

    app.add(Point, name="point")
    app.add(iterator, name="items")
    with app.serving() as uri, wirecall.connect(uri) as c:
        assert c.point(1) == {"x": 1}
        assert list(c.items.stream(3)) == [2, 1, 0]


def test_what_it_keeps_to_itself_is_no_result():
    def keeps(call: wirecall.MethodCall) -> Iterator[None]:
        try:
            yield
        except wirecall.Error:
            return

    def returns(call: wirecall.MethodCall) -> Iterator[None]:
        return
        yield

    def yields_twice(call: wirecall.MethodCall) -> Iterator[None]:
        yield
        yield

    with served(keeps).serving() as uri, wirecall.connect(uri) as c, pytest.raises(wirecall.InternalError):
        c.later(-1)
    with served(keeps).serving() as uri, wirecall.connect(uri) as c, pytest.raises(wirecall.InternalError):
        list(c.fails.stream())
    with served(returns).serving() as uri, wirecall.connect(uri) as c, pytest.raises(wirecall.InternalError):
        c.add(1)
    with served(yields_twice).serving() as uri, wirecall.connect(uri) as c, pytest.raises(wirecall.InternalError):
        c.add(1)


def test_async_middleware_is_around_async_functions():
    app = wirecall.Server()

    @app.middleware
    async def waits(call: wirecall.MethodCall) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        try:
            yield
        except wirecall.Error as error:
            events.append(error.code)
            raise
        await asyncio.sleep(0)
        events.append(call.result)

    @app
    async def later(a: int) -> int:
        if a < 0:
            raise wirecall.Error(5, "negative")
        return a

    with pytest.raises(TypeError, match="waits as `def`"):
        app.add(lambda: 1, name="plain")
    with app.serving() as uri, wirecall.connect(uri) as c:
        assert c.later(3) == 3
        with pytest.raises(wirecall.Error, match="negative"):
            c.later(-3)
    assert events == [3, 5]


def test_the_first_is_outermost_and_dependencies_are_within():
    def named(name: str) -> Any:
        def middleware(call: wirecall.MethodCall) -> Iterator[None]:
            events.append(name)
            yield
            events.append(f"/{name}")

        return middleware

    def resource() -> Iterator[int]:
        events.append("resource")
        yield 1
        events.append("/resource")

    inner, app = wirecall.Server(), wirecall.Server()
    inner.middleware(named("inner"))

    @inner
    def use(one: Annotated[int, Depends(resource)]) -> int:
        return one

    app.middleware(named("first"))
    app.middleware(named("second"))
    app.mount("x", inner)
    with app.serving() as uri, wirecall.connect(uri) as c:
        assert c.x.use() == 1
    around = ["first", "second", "inner", "resource"]
    assert events == [*around, *(f"/{name}" for name in reversed(around))]


def test_it_knows_who_calls(tmp_path):
    principals = tmp_path / "principals.json"
    principals.write_text('[{"name":"ops","tokens":["secret"],"call":["*"]}]')
    app = wirecall.Server(principals_file=str(principals))

    @app.middleware
    def who(call: wirecall.MethodCall) -> Iterator[None]:
        events.append(call.principal)
        yield

    @app
    def name(ctx: wirecall.Context) -> str | None:
        return ctx.principal

    with app.serving() as uri, wirecall.connect(uri, token="secret") as c:
        assert c.name() == "ops"
    assert events == ["ops"]
    open_to_all = wirecall.Server()
    open_to_all.add(name)
    with open_to_all.serving() as uri, wirecall.connect(uri) as c:
        assert c.name() is None


def test_what_makes_no_sense_is_refused():
    app = wirecall.Server()
    with pytest.raises(TypeError, match="does not yield"):
        app.middleware(lambda call: None)
    app.middleware(noting)
    with pytest.raises(TypeError, match="a batched function runs for many"):
        app.add(_batched, batch=2)
    with pytest.raises(TypeError, match="a cached function"):
        app.add(lambda: 1, name="cached", cache=10)
    app.add(lambda: 1, name="one")
    with pytest.raises(TypeError, match="add it first"):
        app.middleware(noting)


def _batched(numbers: list[int]) -> list[int]:
    return numbers
