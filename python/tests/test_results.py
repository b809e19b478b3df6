"""What a method returns is what it declares, or an error: schema and OpenRPC promise it."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import typing
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import annotated_types
import msgspec
import numpy as np
import pydantic
import pytest
from numpy.typing import NDArray
from PIL import Image

import wirecall


@dataclasses.dataclass
class Item:
    name: str
    count: int
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Other:
    title: str


@dataclasses.dataclass
class Node:
    value: int
    next: Node | None = None


class Row(TypedDict):
    name: str
    count: NotRequired[int]


class Sparse(TypedDict):
    a: int
    b: NotRequired[int]
    c: int
    d: NotRequired[int]


Wide = dataclasses.make_dataclass("Wide", [(f"m{i}", int) for i in range(70)])
WIDE = {f"m{i}": i for i in range(70)}


class Left(TypedDict):
    child: Left | Right | int


class Right(TypedDict):
    child: Left | Right | int


class Pair(NamedTuple):
    x: int
    y: str


class Color(enum.Enum):
    red = "r"
    blue = "b"


class Level(enum.IntEnum):
    low = 1


class Model(pydantic.BaseModel):
    name: str
    count: int = 0


class Struct(msgspec.Struct):
    name: str


TODAY = datetime.date(2026, 5, 4)
NOW = datetime.datetime(2026, 5, 4, 10, 11)


def answer(hint: Any, value: Any, **options: Any) -> dict[str, Any]:
    app = wirecall.Server()

    def get():
        return value

    get.__annotations__["return"] = hint
    app.add(get, **options)
    return json.loads(app.handle('{"jsonrpc":"2.0","method":"get","id":1}'))


GOOD = [
    (int, 7, 7),
    (int, 2**80, 2**80),
    (int, Level.low, 1),
    (int, np.int64(7), 7),
    (float, 7.5, 7.5),
    (float, 7, 7),
    (float, np.float64(7.5), 7.5),
    (float, np.float32(7.5), 7.5),
    (bool, True, True),
    (bool, np.bool_(True), True),
    (str, "x", "x"),
    (str, Color.red, "r"),
    (None, None, None),
    (bytes, b"x", {"$bytes": "eA=="}),
    (bytes, bytearray(b"x"), {"$bytes": "eA=="}),
    (bytearray, bytearray(b"x"), {"$bytes": "eA=="}),
    (list[int], [1, 2], [1, 2]),
    (list[int], (1, 2), [1, 2]),
    (list[int], {1}, [1]),
    (Sequence[int], range(3), [0, 1, 2]),
    (Iterable[int], {1: 2}.values(), [2]),
    (set[int], {1}, [1]),
    (frozenset[str], frozenset({"a"}), ["a"]),
    (tuple[int, str], (1, "a"), [1, "a"]),
    (tuple[int, str], [1, "a"], [1, "a"]),
    (tuple[int, ...], (1, 2, 3), [1, 2, 3]),
    (list, [1, "a"], [1, "a"]),
    (dict, {"a": 1}, {"a": 1}),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (dict[str, int], {}, {}),
    (dict[int, str], {1: "a"}, {"1": "a"}),
    (dict[uuid.UUID, int], {uuid.UUID(int=1): 1}, {str(uuid.UUID(int=1)): 1}),
    (Mapping[str, int], {"a": 1}, {"a": 1}),
    (Item, Item("a", 1, ["b"]), {"name": "a", "count": 1, "tags": ["b"]}),
    (Item, {"name": "a", "count": 1}, {"name": "a", "count": 1}),
    (list[Item], [Item("a", 1)], [{"name": "a", "count": 1, "tags": []}]),
    (dict[str, Any], Item("a", 1), {"name": "a", "count": 1, "tags": []}),
    (Node, Node(1, Node(2)), {"value": 1, "next": {"value": 2, "next": None}}),
    (Row, {"name": "a"}, {"name": "a"}),
    (Row, {"count": 1, "name": "a", "more": None}, {"count": 1, "name": "a", "more": None}),
    (Sparse, {"a": 1, "b": 2, "c": 3, "d": 4}, {"a": 1, "b": 2, "c": 3, "d": 4}),
    (Sparse, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "c": 3}),
    (Sparse, {"a": 1, "c": 3, "d": 4}, {"a": 1, "c": 3, "d": 4}),
    (Sparse, {"d": 4, "c": 3, "a": 1}, {"a": 1, "c": 3, "d": 4}),
    (Sparse, {"more": None, "c": 3, "a": 1}, {"a": 1, "c": 3, "more": None}),
    (Wide, Wide(**WIDE), WIDE),
    (Wide, dict(reversed(WIDE.items())), WIDE),
    (list[int], [2**80, -1, Level.low, np.int64(7), 2**63], [2**80, -1, 1, 7, 2**63]),
    (list[float], [1.5, 2, np.float32(1.5)], [1.5, 2, 1.5]),
    (list[str], ["a", Color.red, ""], ["a", "r", ""]),
    (tuple[str, ...], ("a", Color.red), ["a", "r"]),
    (Pair, Pair(1, "a"), [1, "a"]),
    (Color, Color.red, "r"),
    (Color, "r", "r"),
    (Literal["a", 1], "a", "a"),
    (Literal["a", 1], 1, 1),
    (int | None, None, None),
    (int | None, 7, 7),
    (int | str, "a", "a"),
    (float | int, 7, 7),
    (list[int] | dict[str, int], {"a": 1}, {"a": 1}),
    (list[int] | list[str], ["a"], ["a"]),
    (Item | Other, Other("t"), {"title": "t"}),
    (Item | Other, {"title": "t"}, {"title": "t"}),
    (list[Item | None], [None, Item("a", 1)], [None, {"name": "a", "count": 1, "tags": []}]),
    (datetime.date, TODAY, "2026-05-04"),
    (datetime.date, "2026-05-04", "2026-05-04"),
    (datetime.datetime, NOW, "2026-05-04T10:11:00"),
    (datetime.timedelta, datetime.timedelta(seconds=1), "PT1S"),
    (decimal.Decimal, decimal.Decimal("1.50"), "1.50"),
    (uuid.UUID, uuid.UUID(int=1), str(uuid.UUID(int=1))),
    (pathlib.Path, pathlib.Path("/a"), "/a"),
    (datetime.date | str, TODAY, "2026-05-04"),
    (datetime.date | str, "no date", "no date"),
    (Annotated[int, annotated_types.Ge(0)], 0, 0),
    (Annotated[list[int], annotated_types.MaxLen(2)], [1, 2], [1, 2]),
    (Annotated[datetime.date, annotated_types.Ge(TODAY)], TODAY, "2026-05-04"),
    (Model, Model(name="a"), {"name": "a", "count": 0}),
    (Model, {"name": "a"}, {"name": "a"}),
    (list[Model], [Model(name="a")], [{"name": "a", "count": 0}]),
    (dict[str, Any], Model(name="a"), {"name": "a", "count": 0}),
    (Annotated[int, pydantic.Field(strict=True, ge=1)], 1, 1),
    (Struct, Struct("a"), {"name": "a"}),
    (Struct, {"name": "a"}, {"name": "a"}),
    (np.float32, np.float32(1.5), 1.5),
    (Any, {"x": [1]}, {"x": [1]}),
    (object, [1], [1]),
    (typing.NoReturn, 1, 1),
]


@pytest.mark.parametrize(("hint", "value", "expected"), GOOD)
def test_what_is_declared_goes_out(hint, value, expected):
    assert answer(hint, value) == {"jsonrpc": "2.0", "result": expected, "id": 1}


BAD = [
    (int, "three", 'expected integer, got "three"'),
    (int, 1.0, "expected integer, got 1.0"),
    (int, True, "expected integer, got true"),
    (int, None, "expected integer, got null"),
    (int, [1], "expected integer, got list"),
    (int, Item("a", 1), "expected integer, got Item"),
    (float, "1", 'expected number, got "1"'),
    (float, True, "expected number, got true"),
    (bool, 1, "expected boolean, got 1"),
    (str, 1, "expected string, got 1"),
    (str, b"a", "expected string, got bytes"),
    (None, 1, "expected null, got 1"),
    (bytes, "a", 'expected {"$bytes":"<base64>"}, got "a"'),
    (list[int], "abc", 'expected array of integer, got "abc"'),
    (list[int], {"a": 1}, "expected array of integer, got dict"),
    (list[int], [1, "two"], 'at 1: expected integer, got "two"'),
    (list[int], np.array([1]), "expected array of integer, got ndarray"),
    (set[int], {"a"}, 'at 0: expected integer, got "a"'),
    (tuple[int, str], (1, 2), "at 1: expected string, got 2"),
    (tuple[int, str], (1,), "at 1: expected string, got nothing"),
    (tuple[int, str], (1, "a", 3), "at 2: expected nothing, got a value"),
    (dict[str, int], {"a": "b"}, 'at a: expected integer, got "b"'),
    (dict[int, str], {"a": "b"}, 'expected integer, got "a"'),
    (dict[str, int], [1], "expected object of integer, got list"),
    (Item, {"name": "a"}, "at count: expected integer, got nothing"),
    (Item, Item("a", "b"), 'at count: expected integer, got "b"'),  # type: ignore[arg-type]
    (Item, Other("t"), "at name: expected string, got nothing"),
    (Item, [1], "expected object, got list"),
    (list[Item], [Item("a", 1), Item("a", 1, [2])], "at 1.tags.0: expected string, got 2"),  # type: ignore[list-item]
    (Node, Node(1, Node("x")), 'at next.value: expected integer, got "x"'),  # type: ignore[arg-type]
    (Row, {"count": 1}, "at name: expected string, got nothing"),
    (Row, {"name": "a", "count": "b"}, 'at count: expected integer, got "b"'),
    (Sparse, {"a": 1}, "at c: expected integer, got nothing"),
    (Sparse, {"b": 1, "d": 4, "c": 2}, "at a: expected integer, got nothing"),
    (Sparse, {"a": 1, "d": 4, "b": 2}, "at c: expected integer, got nothing"),
    (Sparse, {"d": 4, "a": 1, "c": "x"}, 'at c: expected integer, got "x"'),
    (Wide, {key: at for key, at in WIDE.items() if at != 69}, "at m69: expected integer, got nothing"),
    (Wide, {key: at for key, at in reversed(WIDE.items()) if at != 1}, "at m1: expected integer, got nothing"),
    (Wide, {key: at for key, at in reversed(WIDE.items()) if at != 69}, "at m69: expected integer, got nothing"),
    (list[int], [1, 2, 3.0], "at 2: expected integer, got 3.0"),
    (list[int], [1, True], "at 1: expected integer, got true"),
    (list[float], [1.5, "x"], 'at 1: expected number, got "x"'),
    (list[str], ["a", 1], "at 1: expected string, got 1"),
    (tuple[str, ...], ("a", 1), "at 1: expected string, got 1"),
    (Pair, Pair("a", "b"), 'at 0: expected integer, got "a"'),  # type: ignore[arg-type]
    (Color, "x", 'expected one of r, b, got "x"'),
    (Literal["a"], "b", 'expected a, got "b"'),
    (Literal[1, 2], 3, "expected one of 1, 2, got 3"),
    (Literal["a"], ["a"], "expected a, got list"),
    (int | None, "a", 'expected integer or null, got "a"'),
    (list[int | None], [1, "a"], 'at 1: expected integer or null, got "a"'),
    (Item | None, {"name": "a"}, "at count: expected integer, got nothing"),
    (Annotated[int, annotated_types.Ge(0)] | None, -1, "expected at least 0, got -1"),
    (int | str, None, "expected integer or string, got null"),
    (list[int] | None, [1, None], "at 1: expected integer, got null"),
    (list[int] | list[str], [1, "a"], "expected array of integer or array of string, got list"),
    (datetime.date, "no date", 'expected date, got "no date"'),
    (datetime.date, NOW, 'expected date, got "2026-05-04T10:11:00"'),
    (datetime.date, 5, "expected date, got 5"),
    (uuid.UUID, "a", 'expected uuid, got "a"'),
    (Annotated[int, annotated_types.Ge(0)], -1, "expected at least 0, got -1"),
    (Annotated[int, annotated_types.Ge(0)], "a", 'expected integer, got "a"'),
    (Annotated[list[int], annotated_types.MaxLen(2)], [1, 2, 3], "expected a length of at most 2, got list"),
    (Model, {"name": 1}, "expected "),
    (list[Model], [Model(name="a"), 1], "at 1: expected "),
    (Annotated[int, pydantic.Field(strict=True, ge=1)], 0, "expected "),
    (Struct, {"name": 1}, "expected "),
    (np.ndarray, 1, "expected an array, got 1"),
    (NDArray[np.float32], np.zeros(2), "expected an array of float32, not of float64, got ndarray"),
    (Image.Image, b"a", "expected an image, got bytes"),
]


@pytest.mark.parametrize(("hint", "value", "words"), BAD)
def test_what_is_something_else_is_an_internal_error_and_the_log_says_where(hint, value, words, capfd):
    assert answer(hint, value) == {
        "jsonrpc": "2.0", "error": {"code": -32603, "message": "Internal error"}, "id": 1,
    }  # fmt: skip
    logged = capfd.readouterr().err
    assert "method=get" in logged
    assert "the result is not of the declared type: " in logged
    assert words in logged


@pytest.mark.parametrize(
    ("hint", "value", "words"),
    [
        (int, object(), "builtins.object has no form on the wire"),
        (list[Item], [object()], "at 0: builtins.object has no form on the wire"),
        (list[float], [1.0, float("nan")], "at 1: a float that is not finite has no JSON form"),
        (Any, object(), "builtins.object has no form on the wire"),
    ],
)
def test_what_nothing_can_encode_is_said_so_whatever_is_declared(hint, value, words, capfd):
    assert answer(hint, value)["error"]["code"] == -32603
    assert f"the result cannot be encoded: {words}" in capfd.readouterr().err


def test_a_method_on_a_thread_of_the_pool_that_misses_its_type(app, capfd):
    @app(blocking=True)
    def size() -> int:
        return "large"  # type: ignore[return-value]

    with app.serving() as uri, wirecall.connect(uri) as c, pytest.raises(wirecall.InternalError):
        c.size()
    assert 'the result is not of the declared type: expected integer, got "large"' in capfd.readouterr().err


@pytest.mark.parametrize(("hint", "value", "words"), BAD)
def test_the_check_can_be_turned_off(hint, value, words):
    assert "error" not in answer(hint, value, check_results=False)


@pytest.mark.parametrize("check_results", [True, False])
@pytest.mark.parametrize("change", [list.pop, list.clear, lambda items: items.append(1)])
def test_a_list_that_changes_its_size_while_it_is_written_is_an_internal_error(change, check_results, capfd):
    @dataclasses.dataclass
    class Changing:
        name: str

        def __getattribute__(self, name: str) -> Any:
            if name == "name":
                change(items)
            return super().__getattribute__(name)

    items: list[Any] = [Changing("a"), 2]
    answered = answer(list[Changing | int], items, check_results=check_results)
    assert answered["error"]["code"] == -32603
    assert "changed its size while it was written" in capfd.readouterr().err


def test_the_check_is_turned_off_for_a_server_and_on_for_a_method():
    app = wirecall.Server(check_results=False)

    @app
    def free() -> int:
        return "x"  # type: ignore[return-value]

    @app(check_results=True)
    def held() -> int:
        return "x"  # type: ignore[return-value]

    assert json.loads(app.handle('{"jsonrpc":"2.0","method":"free","id":1}'))["result"] == "x"
    assert json.loads(app.handle('{"jsonrpc":"2.0","method":"held","id":1}'))["error"]["code"] == -32603


def test_arrays_and_images_go_as_they_are():
    app = wirecall.Server()

    @app
    def array() -> np.ndarray:
        return np.array([1.5])

    @app
    def typed() -> NDArray[np.float32]:
        return np.array([1.5], np.float32)

    @app
    def image() -> Image.Image:
        return Image.new("L", (1, 1))

    @app
    def listed() -> np.ndarray:
        return [1, 2]  # type: ignore[return-value]

    with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c:
        assert c.array() == [1.5]
        assert c.typed().dtype == np.float32
        assert c.image().size == (1, 1)
        assert c.listed() == [1, 2]


def test_the_same_by_messagepack_and_beside_good_ones_in_a_batch(app):
    @app
    def get(x: int) -> int:
        return "x" if x == 2 else x  # type: ignore[return-value]

    with app.serving() as uri, wirecall.connect(uri, encoding="msgpack") as c, c.batch() as b:
        one, two, three = b.get(1), b.get(2), b.get(3)
    assert (one.result(), three.result()) == (1, 3)
    with pytest.raises(wirecall.InternalError):
        two.result()


def test_async_handlers_and_those_on_the_pool(app):
    @app
    async def waits() -> int:
        await asyncio.sleep(0)
        return "x"  # type: ignore[return-value]

    @app(blocking=True)
    def blocks() -> list[int]:
        return [1, None]  # type: ignore[list-item]

    @app
    async def good() -> list[int]:
        return [1]

    with app.serving() as uri, wirecall.connect(uri) as c:
        for method in (c.waits, c.blocks):
            with pytest.raises(wirecall.InternalError):
                method()
        assert c.good() == [1]


def test_items_of_streams(app, caplog):
    @app
    async def ticks() -> AsyncIterator[int]:
        yield 1
        yield "two"  # type: ignore[misc]

    @app
    def lines() -> Iterator[Item]:
        yield Item("a", 1)
        yield Item("a", None)  # type: ignore[arg-type]

    @app
    def any_lines():
        yield "x"

    with app.serving() as uri, wirecall.connect(uri) as c:
        items = []
        with pytest.raises(wirecall.InternalError):
            for item in c.ticks.stream():
                items.append(item)
        assert items == [1]
        with pytest.raises(wirecall.InternalError):
            list(c.lines.stream())
        assert list(c.any_lines.stream()) == ["x"]
    assert 'an item of the stream is not of the declared type: expected integer, got "two"' in caplog.text
    assert "an item of the stream is not of the declared type: at count: expected integer, got null" in caplog.text


def test_methods_that_clients_provide_and_offer(broker):
    def wrong() -> int:
        return "x"  # type: ignore[return-value]

    async def provide() -> None:
        async with wirecall.aconnect(broker) as provider, wirecall.aconnect(broker) as c:
            await provider.provide("wrong", wrong)
            await provider.provide("free", wrong, check_results=False)
            with pytest.raises(wirecall.InternalError):
                await c.wrong()
            assert await c.free() == "x"

    asyncio.run(provide())


def test_unions_that_hold_themselves_take_a_bounded_number_of_trials():
    # Each level could be of either type, and only the innermost one says that it is of neither.
    value: Any = {"child": "none of these"}
    for _ in range(60):
        value = {"child": value}
    assert "result" in answer(Left | Right, value)  # which nobody has looked at to its end
    assert "error" in answer(Left | Right, {"child": {"child": "none of these"}})
    assert "result" in answer(Left | Right, {"child": {"child": 1}})
