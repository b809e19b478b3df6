"""encoding="packed": params and results go in packed form where a method takes them so (docs/packed.md)."""

from __future__ import annotations

import asyncio
import datetime
import math
import pathlib
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import wirecall
from wirecall import _native

TOOL = str(pathlib.Path(sys.executable).with_name("wirecall"))


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    """A server whose `subtract` takes packed params."""
    with subprocess.Popen([TOOL, "serve", "--demo", "--port", "0"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        # The banner has the endpoint; what ends before has none.
        lines = iter(process.stderr.readline, "")
        found = next(filter(None, (re.search(r"tcp://[^\s,]+", line) for line in lines)), None)
        try:
            assert found is not None
            yield found[0]
        finally:
            process.kill()


def packed_method(params: str, result: str = "null", *names: str) -> Any:
    layouts = {"x-packed": {"params": params, "result": result}}
    described = {"name": "f", "params": [{"name": name} for name in names], "result": layouts}
    return _native.method_packing(_native.dumps(described, "msgpack"))


def fnv(text: str) -> bytes:
    hash = 0xCBF29CE484222325
    for byte in text.encode():
        hash = (hash ^ byte) * 0x100000001B3 % 2**64
    return struct.pack("<Q", hash)


def test_calls_of_a_packed_method(demo):
    with wirecall.connect(demo, encoding="packed") as c:
        assert c.subtract(42, 23) == 19
        assert c.subtract(subtrahend=23, minuend=42) == 19
        assert c.subtract(1, 2, _timeout=30) == -1
        with pytest.raises(wirecall.InvalidParams) as refused:
            c.subtract(1, "two")
        assert refused.value.data["loc"] == ["subtrahend"]
        with pytest.raises(wirecall.InvalidParams):
            c.subtract(1)
        with pytest.raises(wirecall.Error, match="does not fit 64 bits"):
            c.subtract(-(2**63), 1)
        with pytest.raises(TypeError, match="by position or by name"):
            c.subtract(1, subtrahend=2)


def test_what_is_not_packed_goes_as_it_is(demo):
    with wirecall.connect(demo, encoding="packed") as c:
        assert c.sum(1, 2.5) == 3.5
        assert c.echo({"a": [b"\x00", None]}) == {"a": [b"\x00", None]}
        assert list(c.count.stream(3)) == [0, 1, 2]
        with c.batch() as b:
            nineteen = b.subtract(42, 23)
        assert nineteen.result() == 19
        with pytest.raises(wirecall.MethodNotFound):
            c.nowhere(1)
        assert "methods" in c.rpc.discover()


def test_the_params_are_packed(demo, app):
    seen = []

    @app
    def f(value: Any) -> Any:
        seen.append(value)
        return value

    with app.serving() as uri, wirecall.connect(uri, encoding="packed") as c:
        layout = {"params": "(i32)", "result": "(i32)"}
        c._layouts.learn({"methods": [{"name": "f", "params": [{"name": "x"}], "result": {"x-packed": layout}}]})
        assert c.f(7) == [7]  # what it has been given is what it returns
    assert seen == [wirecall.Packed(fnv("(i32)") + struct.pack("<i", 7))]


def test_another_layout_is_learned_anew(demo):
    def older() -> dict[str, Any]:
        params = [{"name": name} for name in ("minuend", "subtrahend")]
        result = {"x-packed": {"params": "(i32,i32)", "result": "i64"}}
        return {"methods": [{"name": "subtract", "params": params, "result": result}]}

    with wirecall.connect(demo, encoding="packed") as c:
        c._layouts.learn(older())
        assert c.subtract(42, 23) == 19

    async def call() -> int:
        async with wirecall.aconnect(demo, encoding="packed") as c:
            c._layouts.learn(older())
            return await c.subtract(42, 23)

    assert asyncio.run(call()) == 19


def test_a_call_is_not_repeated_where_its_handler_refuses(app):
    calls = []

    @app
    def f(value: Any) -> None:
        calls.append(value)
        raise wirecall.InvalidParams(data={"layout": "(i8)"})

    layout = {"params": "(i8)", "result": "null"}
    packed = {"methods": [{"name": "f", "params": [{"name": "x"}], "result": {"x-packed": layout}}]}
    with app.serving() as uri, wirecall.connect(uri, encoding="packed") as c:
        with pytest.raises(wirecall.InvalidParams):
            c.f(1)  # as it is
        assert len(calls) == 1
        c._layouts.learn(packed)
        with pytest.raises(wirecall.InvalidParams):
            c.f(1)
        assert len(calls) == 2


def test_a_call_is_not_repeated_where_the_method_has_no_other_layout(app):
    calls = []

    @app
    def f(value: Any) -> None:
        calls.append(value)
        raise wirecall.InvalidParams(data={"layout": "(i16)"})  # of a method that it has called, perhaps

    layout = {"params": "(i8)", "result": "null"}
    packed = {"methods": [{"name": "f", "params": [{"name": "x"}], "result": {"x-packed": layout}}]}
    with app.serving() as uri, wirecall.connect(uri, encoding="packed") as c:
        c._layouts.learn(packed)
        with pytest.raises(wirecall.InvalidParams) as refused:
            c.f(1)
        assert len(calls) == 1
        assert refused.value.data == {"layout": "(i16)", "own": "(i8)"}


def test_a_method_that_is_packed_no_more_is_refused_once(app):
    @app
    def f(value: int) -> int:
        return value

    layout = {"params": "(i8)", "result": "null"}
    packed = {"methods": [{"name": "f", "params": [{"name": "x"}], "result": {"x-packed": layout}}]}
    with app.serving() as uri, wirecall.connect(uri, encoding="packed") as c:
        c._layouts.kept_for = 0.0
        c._layouts.learn(packed)
        with pytest.raises(wirecall.InvalidParams):
            c.f(1)
        assert c.f(1) == 1
        c._layouts.learn(packed)
        with pytest.raises(wirecall.InvalidParams):
            c.f(300)  # which does not fit the layout that it had
        assert c.f(300) == 300


def test_layouts_that_are_not_understood_are_errors_of_the_caller(app):
    from wirecall._packing import Layouts

    for document in (None, [], {}, {"methods": 5}):
        with pytest.raises(wirecall.LocalError):
            Layouts().learn(document)
    layouts = Layouts()
    layouts.learn({"methods": [None, {}, {"name": [], "params": 5}, {"name": "f", "result": {"x-packed": {}}}]})
    assert layouts.packing_of("g") is None
    with pytest.raises(wirecall.LocalError, match="f: a layout has"):
        layouts.packing_of("f")


def test_methods_that_come_later_are_asked_for_again():
    from wirecall._packing import DISCOVER, Layouts, call_steps

    layout = {"params": "(i8)", "result": "i8"}
    with_f = {"methods": [{"name": "f", "params": [{"name": "x"}], "result": {"x-packed": layout}}]}
    layouts = Layouts()
    layouts.learn({"methods": []})
    assert next(call_steps(layouts, "f", (1,), {})) == ("f", (1,), {})  # it has been asked just now
    layouts.kept_for = 0.0
    steps = call_steps(layouts, "f", (1,), {})
    assert next(steps) == DISCOVER
    params = (wirecall.Packed(fnv("(i8)") + b"\x01"),)
    assert steps.send(with_f) == ("f", params, {})
    assert next(call_steps(layouts, "f", (1,), {})) == ("f", params, {})
    packing = layouts.packing_of("f")
    layouts.learn(with_f)  # as further calls that have asked together
    assert layouts.packing_of("f") is packing


def test_defaults_are_those_of_the_description():
    params = [{"name": "x"}, {"name": "y", "schema": {"default": b"\x00"}}]
    described = {"params": params, "result": {"x-packed": {"params": "(i8,bytes)", "result": "null"}}}
    method = _native.method_packing(_native.dumps(described, "msgpack"))
    assert method.pack((1,), {}) == fnv("(i8,bytes)") + b"\x01\x01\x00"


def test_calls_from_asyncio(demo):
    async def call() -> None:
        async with wirecall.aconnect(demo, encoding="packed") as c:
            assert await asyncio.gather(*(c.subtract(n, 1) for n in range(50))) == list(range(-1, 49))
            assert await c.subtract(minuend=5, subtrahend=3) == 2
            assert await c.sum(1, 2) == 3
            with pytest.raises(wirecall.InvalidParams):
                await c.subtract(1, 2, 3)
            with pytest.raises(wirecall.Timeout):
                await c.sleep(60_000, _timeout=0.01)
            for turns in range(3):
                waiting = c.sleep(60_000)
                for _ in range(turns):
                    await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            assert await c.subtract(2, 1) == 1

    asyncio.run(call())


@pytest.mark.parametrize(
    ("layout", "value", "packed"),
    [
        ("bool", True, b"\x01"),
        ("i8", -1, b"\xff"),
        ("u64", 2**64 - 1, b"\xff" * 8),
        ("f32", 0.1, struct.pack("<f", 0.1)),
        ("f64", 1.5, struct.pack("<d", 1.5)),
        ("str", "é", b"\x02\xc3\xa9"),
        ("bytes", b"\x00\xff", b"\x02\x00\xff"),
        ("bytes[2]", b"\x00\xff", b"\x00\xff"),
        ("optional<i8>", None, b"\x00"),
        ("optional<i8>", 3, b"\x01\x03"),
        ("[i16]", [1, 2], b"\x02\x01\x00\x02\x00"),
        ("[i8][2]", [1, 2], b"\x01\x02"),
        ("(i8,str)", [1, "a"], b"\x01\x01a"),
        ("map<str,i8>", {"a": 1}, b"\x01\x01a\x01"),
        ("map<i8,bool>", {"-1": True}, b"\x01\xff\x01"),
        ("{x:i8,y:optional<i8>}", {"x": 1}, b"\x01\x00"),
        ("enum:u8<red=0,green=5>", "green", b"\x05"),
        ("one_of<null,i8,str>", "a", b"\x02\x01a"),
        ("duration:i64<1/1000>", 1500, struct.pack("<q", 1500)),
        ("any", {"a": [1, None]}, b"\x06\x81\xa1a\x92\x01\xc0"),
        ("null", None, b"\x00"),
    ],
)
def test_values_there_and_back(layout, value, packed):
    method = packed_method(f"({layout})", layout, "x")
    assert method.pack((value,), {}) == fnv(f"({layout})") + packed
    assert method.pack((), {"x": value}) == fnv(f"({layout})") + packed
    back = method.unpack(fnv(layout) + packed)
    assert math.isclose(back, value, rel_tol=1e-6) if isinstance(value, float) else back == value
    for cut in range(8 + len(packed)):
        with pytest.raises(wirecall.LocalError):
            method.unpack((fnv(layout) + packed)[:cut])


def test_points_in_time_not_a_number_and_infinities():
    layout = "time:i64<1/1000>"
    at = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=datetime.UTC)
    ticks = struct.pack("<q", round(at.timestamp() * 1000))
    method = packed_method(f"({layout})", layout, "x")
    assert method.pack((at,), {}) == fnv(f"({layout})") + ticks
    assert method.unpack(fnv(layout) + ticks) == "2024-05-06T07:08:09.123Z"
    method = packed_method("(f64)", "f64", "x")
    assert method.pack((math.inf,), {}) == fnv("(f64)") + struct.pack("<d", math.inf)
    assert math.isnan(method.unpack(fnv("f64") + struct.pack("<d", math.nan)))


def test_results_of_another_layout_are_errors_of_the_caller():
    with pytest.raises(wirecall.LocalError) as refused:
        packed_method("()", "i64").unpack(fnv("i32") + b"\x00" * 4)
    assert refused.value.code == -32603
    assert refused.value.data == {"layout": "i64"}


def test_layouts_that_are_none_are_refused():
    for layout in ("", "(i9)", "(" * 100_000, "(#0)"):
        with pytest.raises(ValueError):
            packed_method(layout, "null")
    with pytest.raises(ValueError, match="another number"):
        packed_method("(i8)", "null")
