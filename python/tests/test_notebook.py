"""What notebooks and prompts show of clients, methods and servers: completion, help, HTML, progress bars and frames.

Hints with local types are read at run time, so there is no `from __future__ import annotations` here."""

import asyncio
import copy
import dataclasses
import functools
import html
import inspect
import json
import os
import pydoc
import random
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import pydantic
import pytest

import wirecall


@dataclasses.dataclass
class Item:
    name: str
    size: Literal["small", "large"] = "small"


class Told:
    """Counts how often a server is asked for its methods."""

    def __init__(self, client: Any) -> None:
        self.asked = 0
        self._ask = client._catalogue._ask
        client._catalogue._ask = self

    def __call__(self) -> None:
        self.asked += 1
        self._ask()


@pytest.fixture
def uri(app) -> Iterator[str]:
    @app
    def sum(a: int, b: Annotated[int, "what is added"] = 1) -> int:
        "Add two integers."
        return a + b

    @app(name="math.add")
    def add(a: float, b: float | None = None) -> float:
        return a + (b or 0)

    @app(name="math.deep.max")
    def largest(*values: int) -> int:
        return max(values)

    @app(name="a-b")
    def dashed() -> None: ...

    @app(name="_hidden")
    def hidden() -> str:
        return "found"

    @app
    def count(n: int) -> Iterator[int]:
        yield from range(n)

    @app
    def total(numbers: Iterator[float]) -> float:
        return 0.0

    @app
    def order(items: list[Item], sizes: dict[str, int], raw: bytes, pair: tuple[int, str]) -> Item | None: ...

    with app.serving() as uri:
        yield uri


def remote(names: list[str]) -> list[str]:
    return sorted(set(names) & {"sum", "math", "add", "deep", "max", "count", "total", "order", "a-b", "_hidden"})


# ---- completion ----


def test_dir_has_the_methods_of_the_server(uri):
    with wirecall.connect(uri) as c:
        assert remote(dir(c)) == ["count", "math", "order", "sum", "total"]
        assert {"call_all", "close", "notify"} <= set(dir(c))
        assert remote(dir(c.math)) == ["add", "deep"]
        assert remote(dir(c.math.deep)) == ["max"]
        assert "stream" in dir(c.math.add)
        assert {"a-b", "math.add", "_hidden"} <= set(c._ipython_key_completions_())
        with c.batch() as b:
            assert remote(dir(b)) == ["count", "math", "order", "sum", "total"]


def test_dir_does_not_have_what_was_only_mistyped(uri):
    with wirecall.connect(uri) as c:
        _ = c.smu
        assert "smu" not in dir(c)


def test_the_server_is_asked_once_and_only_where_it_is_needed(uri):
    with wirecall.connect(uri) as c:
        told = Told(c)
        assert c.sum(1) == 2
        copy.copy(c.sum)
        assert repr(c.sum) == "<method sum>"
        for name in ("_repr_svg_", "_ipython_canary_method_should_not_exist_", "__wrapped__", "__array__"):
            assert not hasattr(c, name)
            assert not hasattr(c.sum, name)
        assert told.asked == 0
        for _ in range(3):
            dir(c), dir(c.math), c.sum.__doc__, inspect.signature(c.sum), c._repr_html_()
        assert told.asked == 1


def test_what_is_known_is_asked_for_again_when_it_is_old(app, uri):
    with wirecall.connect(uri) as c:
        told = Told(c)
        c._catalogue.kept_for = 0.0
        dir(c), dir(c)
        assert told.asked == 2


def test_a_name_with_an_underscore_is_no_attribute(uri):
    with wirecall.connect(uri) as c, c.batch() as b:
        for holder in (c, c.math, b):
            with pytest.raises(AttributeError, match=r"no attribute _hidden; .* item, \['_hidden'\]"):
                _ = holder._hidden
        assert c["_hidden"]() == "found"


# ---- help ----


def test_the_signature_is_the_one_of_the_remote_method(uri):
    with wirecall.connect(uri) as c:
        signature = inspect.signature(c.sum)
        assert str(signature) == "(a: int, b: int = 1) -> int"
        assert signature.parameters["a"].annotation is int
        assert signature.bind(2).arguments == {"a": 2}
        assert str(inspect.signature(c.math.add)) == "(a: float, b: float | None = None) -> float"
        assert str(inspect.signature(c.math.deep.max)) == "(*rest: int) -> int"
        assert str(inspect.signature(c.order)) == (
            "(items: list[dict], sizes: dict[str, int], raw: bytes, pair: tuple[int, str]) -> dict | None"
        )
        assert (c.math.add.__name__, c.math.add.__qualname__) == ("add", "math.add")


def test_help_has_signature_and_description(uri):
    with wirecall.connect(uri) as c:
        assert c.sum.__doc__ == "Add two integers.\n\n- `b`: what is added"
        assert c.total.__doc__ == "Takes a stream of float, as `_input=`."
        text = pydoc.plain(pydoc.render_doc(c.sum))
        assert "sum = <method sum(a: int, b: int = 1) -> int>" in text
        assert "Add two integers." in text
        assert "<method math.add(a: float" in pydoc.plain(pydoc.render_doc(c.math.add))


def test_a_wrapper_has_name_signature_and_docs_of_the_method(uri):
    with wirecall.connect(uri) as c:
        method = c.sum

        @functools.wraps(method)
        def wrapper(*args: Any) -> Any:
            return method(*args)

        assert (wrapper.__name__, wrapper.__doc__) == ("sum", method.__doc__)
        assert inspect.signature(wrapper) == inspect.signature(method)


def test_of_an_unknown_method_there_is_what_the_class_says(uri):
    with wirecall.connect(uri) as c:
        dir(c)
        assert c.nowhere.__doc__ == type(c.nowhere).__doc__
        assert "_timeout" in str(inspect.signature(c.nowhere))
        assert repr(c.nowhere) == "<method nowhere>"


def test_packed_clients_tell_the_same(uri):
    with wirecall.connect(uri, encoding="packed") as c:
        assert c.sum(1, 2) == 3
        assert c.math.add(1, 2) == 3
        assert str(inspect.signature(c.math.add)) == "(a: float, b: float | None = None) -> float"
        assert "packed" in repr(c)


def test_in_an_event_loop_the_answer_is_there_the_next_time(uri):
    async def main() -> None:
        async with wirecall.aconnect(uri) as c:
            starts = []
            start = c._start
            c._start = lambda *args: starts.append(start(*args)) or starts[-1]
            assert remote(dir(c)) == []
            assert c.sum.__doc__ == type(c.sum).__doc__
            (reply,) = starts
            await reply
            assert remote(dir(c)) == ["count", "math", "order", "sum", "total"]
            assert c.sum.__doc__.startswith("Add two integers.")
            assert len(starts) == 1

    asyncio.run(main())


def test_outside_of_an_event_loop_a_client_of_asyncio_waits(uri):
    c = wirecall.aconnect(uri)
    assert str(inspect.signature(c.math.add)) == "(a: float, b: float | None = None) -> float"
    asyncio.run(c.close())


# ---- representations ----


def test_a_client_tells_endpoint_encoding_and_state(uri):
    with wirecall.connect([uri, "tcp://127.0.0.1:1"], encoding="msgpack") as c:
        assert repr(c) == f"<wirecall.Client {uri}, tcp://127.0.0.1:1, msgpack, open>"
    assert repr(c) == f"<wirecall.Client {uri}, tcp://127.0.0.1:1, msgpack, closed>"
    a = wirecall.aconnect(uri)
    assert repr(a) == f"<wirecall.AsyncClient {uri}, json, open>"
    asyncio.run(a.close())
    assert repr(a) == f"<wirecall.AsyncClient {uri}, json, closed>"


def test_html_is_a_table_of_methods(uri):
    with wirecall.connect(uri) as c:
        shown = c._repr_html_()
        assert html.escape(repr(c)) in shown
        assert shown.count("<tr>") == len(c.rpc.discover()["methods"])
        assert "<code>sum(a: int, b: int = 1) -&gt; int</code>" in shown
        assert "Add two integers." in shown
        assert "<code>sum(a: int, b: int = 1) -&gt; int</code>" in c.sum._repr_html_()
        assert c.sum._repr_html_().count("<tr>") == 1
        assert c.nowhere._repr_html_() == "<div><code>&lt;method nowhere&gt;</code></div>"


def test_a_server_tells_name_endpoints_and_methods(app, uri):
    assert repr(app) == f"<wirecall.Server 'test', 8 methods, {uri}>"
    assert "<code>sum(a: int, b: int = 1) -&gt; int</code>" in app._repr_html_()
    assert html.escape(uri) in app._repr_html_()
    assert repr(wirecall.Server("a<b")) == "<wirecall.Server 'a<b', 0 methods, not listening>"
    assert "a<b" not in wirecall.Server("a<b")._repr_html_()


# ---- hostile servers ----


def knowing(document: Any) -> Any:
    """A client whose server, which is not there, has answered rpc.discover so."""
    c = wirecall.Client("tcp://127.0.0.1:1")
    c._catalogue._ask = lambda: c._catalogue.learn(document)
    return c


def of_params(*params: Any, **more: Any) -> Any:
    return knowing({"methods": [{"name": "f", "params": list(params), **more}]})


def all_shown(c: Any, name: str = "f") -> list[str]:
    method = c[name]
    texts = [repr(c), repr(method), c._repr_html_(), method._repr_html_(), method.__doc__]
    return [*texts, str(inspect.signature(method)), *dir(c), *dir(method), *c._ipython_key_completions_()]


class Answering:
    """A server that answers one call with `outcome`, or, where that is empty, not at all."""

    def __init__(self, outcome: str) -> None:
        self.outcome = outcome

    def __enter__(self) -> str:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return f"tcp://127.0.0.1:{self.listening.getsockname()[1]}"

    def serve(self) -> None:
        connection, _ = self.listening.accept()
        with connection:
            while asked := connection.recv(65536):
                if self.outcome:
                    text = f'{{"jsonrpc":"2.0",{self.outcome},"id":{json.loads(asked)["id"]}}}\n'
                    connection.sendall(text.encode())

    def __exit__(self, *failure: object) -> None:
        self.thread.join()
        self.listening.close()


@pytest.mark.parametrize(
    "outcome", ['"result":7', '"error":{"code":-32601,"message":"no"}', '"result":{"methods":{}}', ""]
)
def test_a_server_that_does_not_tell_its_methods_is_no_error(outcome):
    with Answering(outcome) as uri, wirecall.connect(uri) as c:
        c._catalogue.timeout = 0.01
        told = Told(c)
        all_shown(c)
        assert told.asked == 1


def test_a_client_that_is_closed_or_has_no_server_shows_what_it_has(uri):
    with wirecall.connect(uri) as c:
        dir(c)
    c._catalogue.kept_for = 0.0
    assert "sum" in dir(c)
    nowhere = wirecall.Client("tcp://127.0.0.1:1")
    nowhere._catalogue.timeout = 0.01
    assert "sum" not in dir(nowhere)


def test_what_comes_from_the_wire_is_escaped():
    evil = "<script>alert('&')</script>"
    c = knowing(
        {
            "methods": [
                {
                    "name": evil,
                    "summary": evil,
                    "params": [{"name": evil, "description": evil, "schema": {"enum": [evil], "default": evil}}],
                    "result": {"schema": {"const": evil}},
                }
            ]
        }
    )
    for shown in (c._repr_html_(), c[evil]._repr_html_(), c["<b>"]._repr_html_()):
        assert "<script" not in shown
        assert "<b>" not in shown
        assert "'" not in shown
    assert evil not in dir(c)


def test_what_would_control_a_terminal_is_not_shown():
    name = "f\x1b[2J\n\u202e"
    described = {"name": name, "summary": "a\x1b]0;b\x07\nc", "params": [{"name": "x\x1b", "description": "\x9b"}]}
    c = knowing({"methods": [described]})
    for text in all_shown(c, name)[:5]:
        assert all(one.isprintable() or one == "\n" for one in text)
    assert "\n" not in repr(c[name])
    assert "\n" not in repr(c["g\n"])


def test_names_that_python_has_no_keyword_for_are_positional():
    params = [{"name": name, "required": True} for name in ("from", "b-c", "b-c", "", "é", "self")]
    assert str(inspect.signature(of_params(*params).f)) == "(from, b_c, b_c_2, _, /, é, self)"
    twice = [{"name": "a", "required": True}, {"name": "a", "required": True}, {"required": True}, {"name": 7}]
    assert str(inspect.signature(of_params(*twice).f)) == "(a, a_1, _, __3=..., /)"


def test_what_is_required_behind_what_is_not_is_by_keyword():
    params = [{"name": "a", "schema": {"type": "integer", "default": 1}}, {"name": "b", "required": True}]
    assert str(inspect.signature(of_params(*params).f)) == "(a: int = 1, *, b)"
    rest = {"name": "rest", "x-rest": True}
    assert str(inspect.signature(of_params(*params, rest).f)) == "(a: int = 1, *rest, b)"
    params[1]["name"] = "lambda"
    assert str(inspect.signature(of_params(*params).f)) == "(a: int = 1, lambda=..., /)"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": ["integer", "null"]}, "int | None"),
        ({"anyOf": [{"type": "null"}, {"type": "null"}]}, "None"),
        ({"oneOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}]}, "list[float] | str"),
        ({"anyOf": [{"type": "integer"}, {}]}, None),
        ({"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"properties": {"x": {}}}}}, "dict"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "dict[str, bool]"),
        ({"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}, "tuple[int, str]"),
        ({"type": "array", "items": {"$ref": "#/$defs/none"}}, "list[Any]"),
        ({"enum": ["a", 1, None]}, "Literal['a', 1, None]"),
        ({"enum": [[1]]}, None),
        ({"enum": list(range(1000))}, None),
        ({"type": "spaceship"}, None),
        (7, None),
    ],
)
def test_the_type_of_a_schema(schema, text):
    signature = inspect.signature(of_params(result={"schema": schema}).f)
    if text is None:
        assert signature.return_annotation is signature.empty
    else:
        assert str(signature).replace("typing.", "") == f"() -> {text}"


def test_an_array_of_numpy_is_told_where_the_schema_tells_it():
    numpy = pytest.importorskip("numpy")
    schema = {"type": "object", "properties": {"$npy": {}, "$image": {}}}
    assert inspect.signature(of_params(result={"schema": schema}).f).return_annotation is numpy.ndarray


def test_schemas_without_end_end():
    itself = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}}}
    assert "list[list[" in str(inspect.signature(of_params(result={"schema": itself}).f))
    wide: Any = {"type": "integer"}
    for _ in range(40):
        wide = {"anyOf": [wide] * 10}
    loop = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    for schema in (wide, loop, {"anyOf": [{}] * 100_000}):
        assert inspect.signature(of_params(result={"schema": schema}).f).return_annotation is inspect.Signature.empty


def test_what_is_huge_is_shown_in_part():
    long = "x" * 1_000_000
    params = [{"name": f"p{at}", "description": long[:1000], "schema": {"default": long}} for at in range(1000)]
    c = of_params(*params, summary=long)
    assert len(repr(c.f)) < 600
    assert len(c.f.__doc__) <= 20_000
    assert len(c.f._repr_html_()) < 2000
    assert inspect.signature(c.f).parameters["p0"].default.__repr__() == "..."
    many = knowing({"methods": [{"name": f"m{at}"} for at in range(10_000)]})
    assert "… and 9800 more" in many._repr_html_()
    assert len(many._repr_html_()) < 50_000
    assert "m9999" in dir(many)


def test_a_default_of_too_many_digits_is_not_shown():
    assert str(inspect.signature(of_params({"name": "n", "schema": {"default": 10**5000}}).f)) == "(n=...)"


def test_no_document_makes_them_raise():
    chance = random.Random(7)
    words = [
        "methods", "name", "params", "schema", "type", "items", "properties", "anyOf", "enum", "const", "default",
        "required", "result", "$ref", "$defs", "x-rest", "x-input", "summary", "description", "f", "#/$defs/f", "array",
        "object", "integer", "if", "a b", "$npy", "additionalProperties", "prefixItems",
    ]  # fmt: skip

    def value(depth: int) -> Any:
        kind = chance.randrange(4 if depth else 2)
        if kind == 0:
            return chance.choice([None, True, False, 0, 2**70, 1.5, float("nan"), ""])
        if kind == 1:
            return chance.choice(words)
        if kind == 2:
            return [value(depth - 1) for _ in range(chance.randrange(4))]
        return {chance.choice(words): value(depth - 1) for _ in range(chance.randrange(6))}

    def method() -> Any:
        params = [{"name": value(1), "schema": value(5), "required": value(1), "x-rest": value(0)} for _ in range(3)]
        return {"name": "f", "params": chance.choice([params, value(3)]), "result": {"schema": value(5)}, **value_of()}

    def value_of() -> Any:
        return {word: value(3) for word in chance.sample(["summary", "description", "x-input", "result"], 2)}

    for _ in range(200):
        all_shown(knowing({"methods": [method(), value(2)]}))
        all_shown(knowing(value(6)))


# ---- progress ----


class Bar:
    """Stands for tqdm's."""

    def __init__(self, total: int | None, desc: str) -> None:
        self.total, self.desc, self.count, self.closed = total, desc, 0, False
        bars.append(self)

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def update(self) -> None:
        self.count += 1


bars: list[Bar] = []


@pytest.fixture
def tqdm(monkeypatch) -> None:
    bars.clear()
    auto = types.ModuleType("tqdm.auto")
    auto.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)


def test_a_bar_counts_the_results_of_a_stream(uri, tqdm):
    with wirecall.connect(uri) as c:
        assert list(c.count.stream(3)) == [0, 1, 2]
        assert bars == []
        assert list(c.count.stream(3, _progress=3)) == [0, 1, 2]
        assert list(c.count.stream(2, _progress=True)) == [0, 1]
        begun = c.count.stream(1000, _progress=1000)
        assert next(begun) == 0
        assert not bars[2].closed
        begun.close()
    shown = [(bar.desc, bar.total, bar.count, bar.closed) for bar in bars]
    assert shown == [("count", 3, 3, True), ("count", None, 2, True), ("count", 1000, 1, True)]


def test_a_bar_counts_the_results_of_a_stream_in_asyncio(uri, tqdm):
    async def main() -> list[int]:
        async with wirecall.aconnect(uri) as c:
            return [item async for item in c.count.stream(3, _progress=3)]

    assert asyncio.run(main()) == [0, 1, 2]
    assert [(bar.total, bar.count, bar.closed) for bar in bars] == [(3, 3, True)]


def test_without_tqdm_only_a_bar_fails(uri, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with wirecall.connect(uri) as c:
        assert list(c.count.stream(1)) == [0]
        with pytest.raises(ImportError, match="pip install tqdm"):
            next(c.count.stream(1, _progress=True))
        with pytest.raises(TypeError, match="_progress is True, or the number of results"):
            next(c.count.stream(1, _progress="yes"))


def test_the_bar_of_tqdm_itself(uri, capsys):
    pytest.importorskip("tqdm")
    with wirecall.connect(uri) as c:
        assert list(c.count.stream(4, _progress=4)) == [0, 1, 2, 3]
    assert "4/4" in capsys.readouterr().err


# ---- frames ----


class Point(NamedTuple):
    x: int
    y: int | None = None


class Struct(msgspec.Struct):
    x: int
    y: int | None = None


class Model(pydantic.BaseModel):
    x: int
    y: int | None = None


@dataclasses.dataclass
class Data:
    x: int
    y: int | None = None


def rows_of(frame: Any) -> list[list[Any]]:
    """Of either library, with None for what is missing."""
    if hasattr(frame, "iter_rows"):
        return [list(row) for row in frame.iter_rows()]
    pandas = sys.modules["pandas"]
    return [
        [None if pandas.api.types.is_scalar(cell) and pandas.isna(cell) else cell for cell in row]
        for row in frame.itertuples(index=False, name=None)
    ]


@pytest.fixture(params=["pandas", "polars"])
def library(request) -> str:
    pytest.importorskip(request.param)
    return str(request.param)


def test_an_array_of_objects_is_a_frame(app, library):
    @app
    def rows(n: int) -> list[dict[str, Any]]:
        return [{"at": at, "name": f"n{at}", "share": at / 2} for at in range(n)]

    @app
    def stream(n: int) -> Iterator[dict[str, Any]]:
        yield from rows(n)

    with app.serving() as uri, wirecall.connect(uri) as c:
        for frame in (
            wirecall.to_frame(c.rows(2), library),
            wirecall.to_frame(c.stream.stream(2), library=library),
        ):
            assert type(frame).__module__.partition(".")[0] == library
            assert list(frame.columns) == ["at", "name", "share"]
            assert rows_of(frame) == [[0, "n0", 0.0], [1, "n1", 0.5]]


def test_what_is_missing_is_na_and_integers_stay_integers(library):
    big = 2**53 + 1
    rows = [{"a": big}, {"b": "x", "a": None}, {"a": 1, "b": None, "c": True}]
    frame = wirecall.to_frame(rows, library)
    assert list(frame.columns) == ["a", "b", "c"]
    assert rows_of(frame) == [[big, None, None], [None, "x", None], [1, None, True]]
    assert str(frame["a"].dtype) == "Int64"


@pytest.mark.parametrize("kind", [Point, Struct, Model, Data, lambda **fields: fields])
def test_rows_may_be_of_any_class_with_fields(library, kind):
    frame = wirecall.to_frame((kind(x=x, y=None if x else 7) for x in range(2)), library)
    assert list(frame.columns) == ["x", "y"]
    assert rows_of(frame) == [[0, 7], [1, None]]


def test_cells_may_be_anything(library):
    numpy = pytest.importorskip("numpy")
    rows = [{"n": 1, "list": [1, 2], "array": numpy.arange(2), "huge": 2**200}, {"n": 2.5, "list": None, "huge": 1}]
    frame = wirecall.to_frame(rows, library)
    assert [row[0] for row in rows_of(frame)] == [1.0, 2.5]
    assert list(rows_of(frame)[0][1]) == [1, 2]
    assert list(rows_of(frame)[0][2]) == [0, 1]
    assert [row[3] for row in rows_of(frame)] == [2**200, 1]


def test_no_rows_are_an_empty_frame(library):
    assert len(wirecall.to_frame([], library)) == 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"a": 1}, r"not of one object; of one, \[result\]"),
        (7, "an array of objects, not of a value of type int"),
        (None, "not of None"),
        ("text", "not of a value of type str"),
        ([{"a": 1}, 2], "row 1 is a value of type int"),
        ([[1]], "row 0 is a value of type list"),
        ([None], "row 0 is None"),
    ],
)
def test_what_is_no_array_of_objects_is_refused(rows, said):
    with pytest.raises(TypeError, match=said):
        wirecall.to_frame(rows)


def test_a_stream_of_asyncio_is_collected_first(uri):
    stream = wirecall.aconnect(uri).count.stream(1)
    with pytest.raises(TypeError, match="async for row in"):
        wirecall.to_frame(stream)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_missing_is_named(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"{library} is not installed: pip install {library}"):
        wirecall.to_frame([{"a": 1}], library)
    with pytest.raises(ValueError, match='"pandas" and "polars", not of \'excel\''):
        wirecall.to_frame([], "excel")


# ---- IPython ----

SESSION = """
import sys, warnings
import wirecall
from IPython.core.interactiveshell import InteractiveShell

warnings.simplefilter("ignore")
shell = InteractiveShell.instance()
shell.Completer.use_jedi = False
with wirecall.connect(sys.argv[1]) as c:
    shell.push({"c": c})
    assert ".sum" in shell.complete("c.s")[1]
    assert 'c["math.add' in shell.complete('c["m')[1]
    told = shell.object_inspect("c.sum")
    assert told["definition"] == "c.sum(a: int, b: int = 1) -> int"
    assert told["docstring"].startswith("Add two integers.")
    shown, _ = shell.display_formatter.format(c)
    assert "<table>" in shown["text/html"]
"""


def test_ipython_completes_and_explains(uri, tmp_path):
    pytest.importorskip("IPython")
    environment = os.environ | {"IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SESSION, uri], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
