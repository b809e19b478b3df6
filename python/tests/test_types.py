"""Values of every type, there and back, and their schemas."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import json
import math
import pathlib
import uuid
from typing import Annotated, Any, Literal, Optional, Union

import pydantic
import pytest
from hinted import CODECS, Access, Color, Level, Model, Movie, Node, Point, Range, read, round_trip
from hypothesis import given, settings
from hypothesis import strategies as st

import wirecall
from wirecall import _shapes
from wirecall._native import dumps

INTEGERS = st.integers(-(2**63), 2**64 - 1)  # what MessagePack can express; JSON takes all


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (Any, JSON_VALUES),
    (int, INTEGERS),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (str, st.text()),
    (bytes, st.binary()),
    (bytearray, st.binary().map(bytearray)),
    (bool, st.booleans()),
    (None, st.none()),
    (list[int], st.lists(INTEGERS)),
    (list, st.lists(JSON_VALUES)),
    (dict[str, float], st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False))),
    (dict[int, str], st.dictionaries(INTEGERS, st.text())),
    (dict[Color, int], st.dictionaries(st.sampled_from(Color), INTEGERS)),
    (dict[uuid.UUID, int], st.dictionaries(st.uuids(), INTEGERS)),
    (dict[dt.date, int], st.dictionaries(st.dates(), INTEGERS)),
    (tuple[int, str], st.tuples(INTEGERS, st.text())),
    (tuple[int, ...], st.lists(INTEGERS).map(tuple)),
    (tuple[()], st.just(())),
    (set[str], st.sets(st.text())),
    (frozenset[int], st.frozensets(INTEGERS)),
    (collections.deque[int], st.lists(INTEGERS).map(collections.deque)),
    (Color, st.sampled_from(Color)),
    (Level, st.sampled_from(Level)),
    (Access, st.sampled_from([Access.READ, Access.WRITE, Access.READ | Access.WRITE])),
    (dt.datetime, st.datetimes(timezones=st.none() | st.just(dt.UTC))),
    (dt.date, st.dates()),
    (dt.time, st.times()),
    (dt.timedelta, st.timedeltas()),
    (uuid.UUID, st.uuids()),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (pathlib.Path, st.text(st.characters(codec="utf-8", exclude_characters="\0")).map(pathlib.Path)),
    (Literal["a", 1, True, None], st.sampled_from(["a", 1, True, None])),
    (Optional[int], st.none() | INTEGERS),  # noqa: UP045 - both ways to say it
    (int | str | None, st.none() | INTEGERS | st.text()),
    (Union[list[int], dict[str, int]], st.lists(INTEGERS) | st.dictionaries(st.text(), INTEGERS)),  # noqa: UP007
    (Point, st.builds(Point, INTEGERS, st.floats(allow_nan=False, allow_infinity=False))),
    (Movie, st.fixed_dictionaries({"title": st.text()}, optional={"year": INTEGERS})),
    (Range, st.tuples(INTEGERS, INTEGERS).map(sorted).map(lambda pair: Range(*pair))),
    (
        Node,
        st.recursive(
            st.builds(Node, st.text(), color=st.none() | st.sampled_from(Color)),
            lambda inner: st.builds(Node, st.text(), st.lists(inner, max_size=3)),
            max_leaves=5,
        ),
    ),
    (Model, st.builds(Model, name=st.text(), sizes=st.lists(st.integers(-(2**63), 2**63 - 1)))),
]


@CODECS
@pytest.mark.parametrize(("hint", "values"), TYPES, ids=[str(hint) for hint, _ in TYPES])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_there_and_back(hint, values, encoding, data):
    value = data.draw(values)
    came = round_trip(hint, value, encoding)
    assert came == value
    assert type(came) is type(value)


@settings(max_examples=200, deadline=None)
@given(JSON_VALUES)
def test_as_pythons_own_json(value):
    text = dumps(value)
    assert repr(json.loads(text)) == repr(value)  # a float stays one
    assert repr(read(Any, text)) == repr(value)
    assert read(Any, json.dumps(value)) == value


@settings(max_examples=100, deadline=None)
@given(st.integers(2**64) | st.integers(max_value=-(2**63) - 1))
def test_integers_beyond_64_bits(value):
    assert round_trip(int, value) == value
    assert round_trip(Any, [value]) == [value]
    with pytest.raises(TypeError, match="beyond 64 bits"):
        dumps(value, "msgpack")


@CODECS
@settings(max_examples=100, deadline=None)
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_floats_to_the_last_bit(encoding, value):
    came = round_trip(float, value, encoding)
    assert math.copysign(1, came) == math.copysign(1, value)
    assert came == value


class Corner(enum.Enum):
    ORIGIN = (0, 0)
    FAR = (1, 2.5)


@CODECS
def test_enumerations_of_tuples(encoding):
    assert round_trip(list[Corner], list(Corner), encoding) == list(Corner)
    with pytest.raises(ValueError, match=r"expected one of \[0,0\], \[1,2.5\]"):
        read(Corner, "[0,1]")
    assert json.loads(_shapes.shape_of(Corner).schema)["enum"] == [[0, 0], [1, 2.5]]


def test_integers_without_bounds_have_none_in_their_schema():
    assert json.loads(_shapes.shape_of(int).schema) == {"type": "integer"}
    assert json.loads(_shapes.shape_of(list[int]).schema)["items"] == {"type": "integer"}


def test_bounds_of_integers_are_in_their_schema():
    schema = json.loads(_shapes.shape_of(Annotated[int, pydantic.Field(ge=0, lt=10)]).schema)
    assert schema == {"type": "integer", "minimum": 0, "exclusiveMaximum": 10}


def test_deep_values():
    value: Any = []
    for _ in range(200):
        value = [value]
    assert round_trip(Any, value) == value
    with pytest.raises(ValueError, match="not json"):
        read(Any, "[" * 10_000 + "]" * 10_000)


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (int, {"type": "integer"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Color, {"type": "string", "enum": ["red", "green"]}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (Any, {}),
    ],
)
def test_schemas(hint, schema):
    made = json.loads(_shapes.shape_of(hint).schema)
    for name, value in schema.items():
        assert made[name] == value


def test_by_the_wire(app):
    @app
    def plant(node: Node, when: dt.date, colors: set[Color] = frozenset()) -> Node:  # type: ignore[assignment]
        assert isinstance(node, Node)
        return Node(f"{node.name} {when.year} {len(colors)}", [node], Color.GREEN)

    with app.serving() as uri, wirecall.connect(uri) as c:
        came = c.plant(Node("oak", [Node("twig")]), dt.date(2000, 1, 2), {Color.RED})
    assert came == {
        "name": "oak 2000 1",
        "children": [{"name": "oak", "children": [{"name": "twig", "children": [], "color": None}], "color": None}],
        "color": "green",
    }
